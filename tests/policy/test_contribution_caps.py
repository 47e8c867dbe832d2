"""`max_rows = "auto"`: what a table means by it, what its digest says, and what is shown of it."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.curator.describe_schema import describe_schema
from tacit.errors import PolicyError
from tacit.mechanisms.clip_choice import share_for_choice
from tacit.plan.key_selection import MOST_KEYS
from tacit.policy.check import check_policy
from tacit.policy.contribution_caps import KEYS_PER_UNIT, MAX_GROUPS, MAX_ROWS_PER_GROUP
from tacit.policy.load import load
from tacit.policy.model import Policy, Table
from tacit.serve.console.view_models import view_schema

MISTAKES = Path(__file__).parent / "mistakes"
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "policy.md"


def policy_of(**caps: Any) -> Policy:
    table = {"unit": "who", **caps, "columns": {"a": {"type": "bool"}}}
    return load({"privacy": {"epsilon": 1}, "tables": {"t": table}, "analysts": {"ada": {"epsilon": 1}}})


def caps_of(table: Table) -> tuple[int, int, int | None]:
    return table.max_groups, table.max_rows_per_group, table.max_rows


def test_plain_numbers_are_fixed_caps():
    for caps in ({"max_groups": 2, "max_rows_per_group": 3}, {"max_groups": 2, "max_rows_per_group": 3, "max_rows": 4}):
        [table] = policy_of(**caps).tables
        assert (table.auto, table.auto_up_to, table.has_caps) == (False, None, True)
        assert caps_of(table) == (2, 3, caps.get("max_rows"))


def test_rows_and_public_tables_have_nothing_to_choose():
    columns = {"a": {"type": "bool"}}
    tables = {"t": {"unit": "row", "columns": columns}, "p": {"public": True, "columns": columns}}
    policy = load({"privacy": {"epsilon": 1}, "tables": tables, "analysts": {"ada": {"epsilon": 1}}})
    assert [(table.auto, table.has_caps) for table in policy.tables] == [(False, True)] * 2


@pytest.mark.parametrize(
    ("declared", "caps", "has_caps"),
    [
        # no caps: 10 private keys of a unit are looked at, and all its rows
        ({"max_rows": "auto"}, (KEYS_PER_UNIT, MAX_ROWS_PER_GROUP, None), False),
        # declared caps are kept for questions that cannot use a clip
        ({"max_rows": "auto", "max_groups": 4, "max_rows_per_group": 3}, (4, 3, None), True),
        # a maximum is also a cap on all rows; groups are never more than MAX_GROUPS
        ({"max_rows": {"auto_up_to": 500}}, (500, 500, 500), True),
        ({"max_rows": {"auto_up_to": 1}}, (1, 1, 1), True),
        ({"max_rows": {"auto_up_to": 1_000_000}}, (MAX_GROUPS, 1_000_000, 1_000_000), True),
        # what is not declared beside a maximum is the maximum
        ({"max_rows": {"auto_up_to": 500}, "max_groups": 4}, (4, 500, 500), True),
        ({"max_rows": {"auto_up_to": 20_000}, "max_rows_per_group": 3}, (MAX_GROUPS, 3, 20_000), True),
        ({"max_rows": {"auto_up_to": 500}, "max_groups": 4, "max_rows_per_group": 3}, (4, 3, 500), True),
        ({"max_rows": {"auto_up_to": 5}, "max_groups": 5, "max_rows_per_group": 5}, (5, 5, 5), True),
    ],
)
def test_what_auto_means(declared: dict[str, Any], caps: tuple[int, int, int | None], has_caps: bool):
    [table] = policy_of(**declared).tables
    assert table.auto
    most = declared["max_rows"]
    assert table.auto_up_to == (None if most == "auto" else most["auto_up_to"])
    assert caps_of(table) == caps
    assert table.has_caps is has_caps


def test_a_table_that_reaches_its_unit_may_have_it_too():
    tables = {
        "t": {"unit": "who", "max_rows": "auto", "columns": {"id": {"type": "int"}}},
        "u": {"unit": {"through": "t_id", "to": "t.id"}, "max_rows": "auto", "columns": {"a": {"type": "bool"}}},
    }
    policy = load({"privacy": {"epsilon": 1}, "tables": tables, "analysts": {"ada": {"epsilon": 1}}})
    assert [(table.auto, table.has_caps, table.people) for table in policy.tables] == [(True, False, "t")] * 2


def test_the_digest_of_plain_tables_is_what_it_was():
    # as written by the release before "auto"
    assert (
        policy_of(max_groups=2, max_rows_per_group=3).digest
        == "d35e7e7301c56327074dbe03190bb6b245aec25274a6304b2a99195c98338e6e"
    )
    assert (
        policy_of(max_groups=2, max_rows_per_group=3, max_rows=4).digest
        == "08d8ef93d403b3c7ddd0971d762a356e05de49ee87db3ab31176b3ba2f3d00c6"
    )


def test_the_digest_tells_what_is_declared():
    most = {"max_groups": KEYS_PER_UNIT, "max_rows_per_group": MAX_ROWS_PER_GROUP}
    few = {"max_groups": 5, "max_rows_per_group": 5}
    declared: list[dict[str, Any]] = [
        most,
        {"max_rows": "auto"},
        {"max_rows": "auto", **most},  # the same numbers, and they are caps
        few,
        {"max_rows": 5, **few},
        {"max_rows": "auto", **few},
        {"max_rows": {"auto_up_to": 5}},
        {"max_rows": {"auto_up_to": 6}},
    ]
    assert len({policy_of(**caps).digest for caps in declared}) == len(declared)
    # what a maximum implies may be written out
    assert policy_of(max_rows={"auto_up_to": 5}, **few).digest == policy_of(max_rows={"auto_up_to": 5}).digest


@pytest.mark.parametrize("field", ["auto", "auto_up_to", "has_caps"])
def test_each_field_is_in_the_digest(field: str):
    policy = policy_of(max_rows="auto")
    [table] = policy.tables
    changed = {"auto": False, "auto_up_to": 7, "has_caps": True}[field]
    assert replace(policy, tables=(replace(table, **{field: changed}),)).digest != policy.digest


def test_the_guide_says_the_shares_of_epsilon_and_shows_tables_that_load():
    page = GUIDE.read_text(encoding="utf-8").partition("## How many rows of one unit count")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) (?:and more|to (\d+)) \| (\d+) % \|$", page, re.MULTILINE)
    for least, most, share in rows:
        for groups in (int(least), int(most or 10**6)):
            assert share_for_choice(groups) == int(share) / 100
    # every number of groups is in one row of the table
    assert [int(most) for _, most, _ in rows[1:]] == [int(least) - 1 for least, _, _ in rows[:-1]]
    assert rows[-1][0] == "1"
    shown = re.findall(r"^```text\n(max_.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert [policy_of(**tomllib.loads(text)).tables[0].auto for text in shown] == [True, True, False]
    assert f"up to {MOST_KEYS:,} keys of a patient count" in GUIDE.read_text(encoding="utf-8")


def toml_of(caps: dict[str, Any]) -> str:
    def written(value: Any) -> str:
        return "{ auto_up_to = " + str(value["auto_up_to"]) + " }" if isinstance(value, dict) else json.dumps(value)

    return "".join(f"{name} = {written(value)}\n" for name, value in caps.items())


BOTH = st.fixed_dictionaries(
    {"max_groups": st.integers(1, MAX_GROUPS), "max_rows_per_group": st.integers(1, MAX_ROWS_PER_GROUP)}
)
AUTO = st.builds(lambda caps: {"max_rows": "auto", **caps}, st.just({}) | BOTH)


@st.composite
def with_maximum(draw: st.DrawFn) -> dict[str, Any]:
    most = draw(st.integers(1, MAX_ROWS_PER_GROUP))
    caps: dict[str, Any] = {"max_rows": {"auto_up_to": most}}
    for name, limit in (("max_groups", MAX_GROUPS), ("max_rows_per_group", MAX_ROWS_PER_GROUP)):
        if draw(st.booleans()):
            caps[name] = draw(st.integers(1, min(most, limit)))
    return caps


@pytest.mark.slow
@settings(deadline=None)
@given(AUTO | with_maximum())
def test_every_such_table_loads_again_from_what_the_schema_shows(caps: dict[str, Any]):
    policy = policy_of(**caps)
    assert policy_of(**tomllib.loads(toml_of(caps))) == policy
    shown = describe_schema(policy).to_dict()["tables"]["t"]
    assert json.loads(json.dumps(shown)) == shown
    again = policy_of(**{name: shown[name] for name in shown if name.startswith("max_")})
    assert (again, again.digest) == (policy, policy.digest)
    for name, value in caps.items():
        assert shown[name] == value


@pytest.mark.parametrize(
    "caps",
    [
        {"max_rows": "auto"},
        {"max_rows": {"auto_up_to": 500}},  # no advice about noise for 500 rows: a count has the noise of its clip
        {"max_rows": {"auto_up_to": 500}, "max_groups": 2, "max_rows_per_group": 2},
        {"max_rows": "auto", "max_groups": 20, "max_rows_per_group": 20},
    ],
)
def test_nothing_is_advised_about_caps_that_counts_do_not_use(caps: dict[str, Any]):
    assert not [remark for remark in check_policy(policy_of(**caps)) if remark.path.startswith("tables")]


@pytest.mark.parametrize(
    ("caps", "said"),
    [
        ({"max_rows": "auto"}, "how much it may add is chosen for each question"),
        (
            {"max_rows": {"auto_up_to": 500}, "max_groups": 4},
            "how much it may add is chosen for each question, up to what 500 rows add; where a question cannot use "
            "that, it counts in at most 4 groups, with at most 500 rows in each, and at most 500 in all",
        ),
        (
            {"max_rows": "auto", "max_groups": 4, "max_rows_per_group": 3},
            "how much it may add is chosen for each question; where a question cannot use that, it counts in at most "
            "4 groups, with at most 3 rows in each",
        ),
    ],
)
def test_analysts_are_told_that_it_is_chosen(caps: dict[str, Any], said: str):
    assert f"each unit, a who, is protected; {said}\n" in str(describe_schema(policy_of(**caps)))


@pytest.mark.parametrize(
    ("caps", "said"),
    [
        ({"max_rows": "auto"}, "Each who is protected. How much it may add is chosen for each question."),
        (
            {"max_rows": {"auto_up_to": 500}},
            "Each who is protected. How much it may add is chosen for each question, up to what 500 rows add. Where a "
            "question cannot use that, it counts in at most 500 groups, with at most 500 rows in each and 500 in all.",
        ),
    ],
)
def test_the_console_says_that_it_is_chosen(caps: dict[str, Any], said: str):
    [table] = view_schema(policy_of(**caps))
    assert table.protected == said


@pytest.mark.parametrize(
    ("mistake", "before", "after"),
    [
        ("no_caps_at_all", 'unit = "patient_id"\n', 'unit = "patient_id"\nmax_rows = "auto"\n'),
        ("auto_of_rows", 'max_rows = "auto"\n', ""),
        ("auto_up_to_of_rows", "max_rows = { auto_up_to = 500 }\n", ""),
        ("auto_misspelled", 'max_rows = "Auto"', 'max_rows = "auto"'),
        ("auto_with_max_groups_alone", "max_groups = 4\n", ""),
        ("auto_with_max_groups_alone", "max_groups = 4\n", "max_groups = 4\nmax_rows_per_group = 10\n"),
        ("auto_with_max_rows_per_group_alone", "max_rows_per_group = 4\n", ""),
        ("auto_with_max_rows_per_group_alone", "group = 4\n", "group = 4\nmax_groups = 10\n"),
        ("auto_up_to_zero", "max_rows = { auto_up_to = 0 }", "max_rows = { auto_up_to = 500 }"),
        ("auto_up_to_missing", "max_rows = {}", 'max_rows = "auto"'),
        ("groups_above_auto_up_to", "max_groups = 7", "max_groups = 6"),
        ("rows_per_group_above_auto_up_to", "max_rows_per_group = 7", "max_rows_per_group = 6"),
    ],
)
def test_the_fix_works_when_it_is_pasted(mistake: str, before: str, after: str, tmp_path: Path):
    with pytest.raises(PolicyError):  # `tests/policy/test_load.py` compares the fix with what the file says of it
        load(MISTAKES / f"{mistake}.toml")
    _, body = (MISTAKES / f"{mistake}.toml").read_text().split("\n\n", 1)
    assert body.count(before) == 1
    (tmp_path / "clinic.toml").write_text(body.replace(before, after))
    assert load(tmp_path / "clinic.toml").tables
