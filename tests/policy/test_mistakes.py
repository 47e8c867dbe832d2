"""All mistakes of a policy file at once: as many as were put into it, each where it was put."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.errors import PolicyError
from tacit.policy.load import find_mistakes, load

HERE = Path(__file__).parent
CLINIC = (HERE / "clinic.toml").read_text(encoding="utf-8")
# One for each section, two in one table, and one for each of two analysts.
PUT_IN = {
    "epoch = ": 'epoch = "x" # ',
    "epsilon = ": "epsilon = -1 # ",
    "max_groups = ": "max_group = ",
    'type = "int"': 'type = "integer"',
    'type = "text"': 'type = "txt"',
}


def test_a_policy_in_order_has_none():
    assert find_mistakes(HERE / "clinic.toml") == []


@pytest.mark.parametrize("file", sorted((HERE / "mistakes").glob("*.toml")), ids=lambda file: file.stem)
def test_the_first_is_the_one_that_loading_raises(file: Path):
    with pytest.raises(PolicyError) as caught:
        load(file)
    assert str(caught.value) in [str(mistake) for mistake in find_mistakes(file)]


@pytest.mark.parametrize("several", range(1, len(PUT_IN) + 1))
def test_all_that_were_put_in_are_found(tmp_path: Path, several: int):
    text, places = CLINIC, []
    for before, after in list(PUT_IN.items())[:several]:
        assert before in text
        text = text.replace(before, after, 1)
        places.append(after)
    file = tmp_path / "clinic.toml"
    file.write_text(text, encoding="utf-8")
    found = find_mistakes(file)
    lines = text.split("\n")
    assert len(found) >= several
    for put in places:
        at = next(number for number, line in enumerate(lines, 1) if put.strip() in line)
        assert at in [mistake.at.line for mistake in found if mistake.at is not None], put
    told = [mistake.at.line for mistake in found if mistake.at is not None]
    assert told == sorted(told)


def test_what_is_no_toml_is_one_mistake(tmp_path: Path):
    file = tmp_path / "t.toml"
    file.write_text("[privacy\nepsilon = 1\n")
    assert len(find_mistakes(file)) == 1
    assert "cannot read" in find_mistakes(tmp_path / "absent.toml")[0].what
