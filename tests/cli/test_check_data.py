"""What `tacit check` tells the owner: what was not read, and whether the data is still what the epoch began with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.curator.value_report import _share

pytestmark = pytest.mark.slow

POLICY = """
[data]
source = "visits.csv"
{copy}
epoch = {epoch}

[privacy]
epsilon = 10

[tables.visits]
unit = "who"
max_groups = 2
max_rows_per_group = 2

[tables.visits.columns]
age = {{ type = "int", lower = 0, upper = 120 }}
day = {{ type = "date" }}
dx = {{ type = "text" }}

[analysts.ada]
epsilon = 10
"""
ROWS = "who,age,day,dx\n1,30,2026-01-01,flu\n2,old,2026-13-01,flu\n,41,2026-01-02,ok\n3,,,ok\n"


def place(folder: Path, copy: str = "", epoch: int = 1) -> Path:
    policy = folder / "visits.toml"
    policy.write_text(POLICY.format(copy=copy, epoch=epoch), encoding="utf-8")
    return policy


def test_what_could_not_be_read_is_counted(tacit, tmp_path):
    (tmp_path / "visits.csv").write_text(ROWS, encoding="utf-8")
    said = tacit("check", "-p", place(tmp_path)).stdout
    assert "1 of 4 rows have no who" in said
    assert "columns.age: 1 of 4 rows hold a value that is not int" in said
    assert "columns.day: 1 of 4 rows hold a value that is not date" in said
    assert "columns.dx: 1 of" not in said and "has changed" not in said


def test_a_number_that_may_be_of_thousands_is_told(tacit, tmp_path):
    (tmp_path / "visits.csv").write_text("who;age;dx\n1;1.250;flu\n2;980,5;flu\n3;7;ok\n", encoding="utf-8")
    policy = place(tmp_path)
    text = policy.read_text().replace('day = { type = "date" }\n', "").replace('"int", lower = 0', '"float", lower = 0')
    policy.write_text(text)
    said = " ".join(tacit("check", "-p", policy).stdout.split())
    assert "columns.age: 1 of 3 rows hold a value that is not float" in said and "which may be 1234" in said


def test_a_source_that_has_changed_since_it_was_read_is_told(tacit, tmp_path):
    source = tmp_path / "visits.csv"
    source.write_text(ROWS, encoding="utf-8")
    policy = place(tmp_path, 'copy = "visits.copy"')
    asked = ("ask", "-p", policy, "--as", "ada", "--epsilon", "1", "SELECT COUNT(*) AS n FROM visits")
    assert tacit(*asked).returncode == 0
    assert "has changed" not in tacit("check", "-p", policy).stdout
    source.write_text(ROWS + "4,50,2026-01-03,flu\n", encoding="utf-8")
    said = tacit("check", "-p", policy).stdout
    assert "tables.visits: has changed since epoch 1 was read" in said and "raise epoch to 2" in said
    assert tacit(*asked[:-1], "SELECT SUM(age) AS s FROM visits").returncode == 0  # still about what was read
    said = tacit("check", "-p", place(tmp_path, 'copy = "memory"')).stdout
    assert "data.epoch: the data of visits is not the data with which epoch 1 began" in said
    refused = tacit("ask", "-p", policy, "--as", "ada", "--epsilon", "1", "SELECT SUM(age) AS t FROM visits")
    assert refused.returncode != 0 and "ledger-epoch" in refused.stderr
    policy = place(tmp_path, 'copy = "memory"', epoch=2)
    assert tacit("ask", "-p", policy, *asked[3:]).returncode == 0
    assert "has changed" not in tacit("check", "-p", policy).stdout


def test_values_that_are_not_as_declared_are_told_exactly(tacit, tmp_path):
    ages = [*range(15, 25), "", "", "nan"]
    rows = "\n".join(f"{who},{age},{'Male' if who % 2 else 'male'}" for who, age in enumerate(ages))
    (tmp_path / "visits.csv").write_text(f"who,age,dx\n{rows}\n", encoding="utf-8")
    text = POLICY.format(copy="", epoch=1).replace('day = { type = "date" }\n', "")
    text = text.replace(
        'age = { type = "int", lower = 0, upper = 120 }', 'age = { type = "float", lower = 0, upper = 20 }'
    )
    policy = tmp_path / "visits.toml"
    policy.write_text(text.replace('dx = { type = "text" }', 'dx = { type = "text", values = ["Male"] }'))
    said = tacit("check", "-p", policy).stdout
    assert "Not all data is as declared: see below" in said
    assert "columns.age: 5 of 10 values (50 %) lie outside of its bounds" in said  # 21 to 24, and what is no number
    assert "columns.dx: 7 of 13 values (54 %) are none of its declared values" in said
    assert 'the most frequent is "male"' in said
    assert "columns.age: 3 of 13 values (23 %) are NULL" in said


def test_a_share_of_all_values_is_written_without_an_exponent(tacit, tmp_path):
    (tmp_path / "p.csv").write_text("v\n" + "NA\n" * 1_000, encoding="utf-8")
    policy = tmp_path / "p.toml"
    policy.write_text(
        """\
[data]
source = "p.csv"
[privacy]
epsilon = 1
[tables.p]
unit = "row"
[tables.p.columns]
v = { type = "int" }
[analysts.ada]
epsilon = 1
"""
    )
    assert "1,000 of 1,000 values (100 %) are NULL" in tacit("check", "-p", policy).stdout


@pytest.mark.parametrize(
    ("some", "of", "said"),
    [
        (1_000, 1_000, "100 %"),
        (999_999, 1_000_000, "more than 99.9 %"),
        (997, 1_000, "99.7 %"),
        (995, 1_000, "99.5 %"),
        (1, 2, "50 %"),
        (1, 300, "0.33 %"),
        (1, 10**9, "less than 0.001 %"),
    ],
)
def test_a_share_is_told_from_nothing_and_from_all(some, of, said):
    assert _share(some, of) == f"{some:,} of {of:,} values ({said})"
