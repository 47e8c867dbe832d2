from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.arithmetic import format_decimal
from tacit.policy.check import DELTA_RULE, PolicyAdvice, check_policy
from tacit.policy.load import load

QUIET: dict[str, Any] = {
    "privacy": {"epsilon": 1, "delta": 1e-6},
    "tables": {
        "visits": {
            "unit": "patient_id",
            "max_groups": 4,
            "max_rows_per_group": 3,
            "columns": {
                "age": {"type": "int", "lower": 0, "upper": 110},
                "cost": {"type": "float", "lower": 0, "upper": 5000, "step": 0.01},
                "ward": {"type": "text", "values": ["A", "B"]},
                "smoker": {"type": "bool"},
            },
        }
    },
    "analysts": {"ada": {"epsilon": 0.5, "delta": 1e-7}, "bo": {"epsilon": 0.5, "delta": 1e-7}},
}


def about(section: str, **changes: Any) -> list[tuple[str, str]]:
    entries = QUIET | {section: QUIET[section] | changes}
    return [(r.path, r.text) for r in check_policy(load(entries))]


def about_table(**changes: Any) -> list[tuple[str, str]]:
    return about("tables", visits=QUIET["tables"]["visits"] | changes)


def test_nothing_to_say():
    assert check_policy(load(QUIET)) == ()


@pytest.mark.parametrize(("epsilon", "word"), [(5.1, "is large"), (10, "is large"), (10.5, "close to meaningless")])
def test_epsilon(epsilon: float, word: str):
    [(path, text)] = about("privacy", epsilon=epsilon)
    assert path == "privacy.epsilon"
    assert word in text
    assert about("privacy", epsilon=5) == []


def test_delta():
    [(path, text)] = about("privacy", delta=1e-4)
    assert (path, text[:6]) == ("privacy.delta", "0.0001")
    assert about("privacy", delta=1e-5) == []


def test_without_a_delta_epsilons_add_up():
    (path, text), *_ = about("privacy", delta=0)
    assert (path, text[:32]) == ("privacy.delta", "0 means that epsilons add up one")
    # the analysts' own deltas are above the overall one then, and that is all there is to say about them
    assert [path for path, _ in about("privacy", delta=0)[1:]] == ["analysts.ada.delta", "analysts.bo.delta"]
    [(path, text)] = about("analysts", bo={"epsilon": 0.5})
    assert path == "analysts"
    assert "epsilons add up one by one (bo);" in text


def about_ledger(**ledger: str) -> list[tuple[str, str]]:
    return [(r.path, r.text) for r in check_policy(load(QUIET | {"ledger": ledger}))]


def test_a_witness_beside_the_ledger():
    [(path, text)] = about_ledger(store="clinic.ledger")
    assert path == "ledger.witness"
    assert "an older copy of the whole folder goes unnoticed" in text
    assert about_ledger(store="kept/clinic.ledger", witness="clinic.witness") == []
    assert about_ledger(store="postgresql://host/office") == []


def test_a_password_in_a_public_policy():
    [(path, text)] = about_ledger(store="postgresql://ada:s3cret@host/office")
    assert (path, "s3cret" in text) == ("ledger.store", False)
    assert "~/.pgpass" in text


def test_analysts_beyond_the_overall_cap():
    [(path, text)] = about("analysts", bo={"epsilon": 0.6, "delta": 1e-7})
    assert path == "analysts"
    assert "add up to 1.1, more than the overall 1:" in text
    own, total = about("analysts", bo={"epsilon": 2, "delta": 1e-7})
    assert own == ("analysts.bo.epsilon", "2 is more than the overall 1, which binds")
    assert "2.5" in total[1]
    assert about("analysts", bo={"epsilon": 0.5, "delta": 1e-3})[0][0] == "analysts.bo.delta"


def test_contribution():
    # 10 * 10 = 100 is still fine, 11 * 10 = 110 is not
    assert about_table(max_groups=10, max_rows_per_group=10) == []
    [(path, text)] = about_table(max_groups=11, max_rows_per_group=10)
    assert path == "tables.visits"
    assert "is 110" in text
    # with a cap of 20 on all rows the other two do not matter; one of 110 is no cap
    assert about_table(max_groups=11, max_rows_per_group=10, max_rows=20) == []
    (path, text), _ = about_table(max_groups=11, max_rows_per_group=10, max_rows=110)
    assert path == "tables.visits.max_rows"
    assert "leaves nothing out, because max_groups times max_rows_per_group is 110" in text
    [(path, text)] = about_table(max_groups=200, max_rows_per_group=200, max_rows=200)
    assert (path, text[:15]) == ("tables.visits", "max_rows is 200")


@pytest.mark.parametrize(
    ("column", "word"),
    [
        ({"type": "int"}, "bounds chosen for each question"),
        ({"type": "float"}, "bounds chosen for each question"),
        ({"type": "float", "lower": 0, "upper": 1}, "default grid"),
        ({"type": "text"}, "in GROUP BY a value is shown only where enough units hold it; values make"),
        ({"type": "date"}, "in GROUP BY a value is shown only where enough units hold it; lower and upper make"),
    ],
)
def test_columns(column: dict[str, Any], word: str):
    [(path, text)] = about_table(columns={"x y": column})
    assert path == 'tables.visits.columns."x y"'
    assert word in text


def test_columns_that_leave_nothing_to_say():
    fine = [
        {"type": "text", "values": ["A"], "other": "B"},
        {"type": "date", "lower": "2025-01-01", "upper": "2025-12-31"},
        {"type": "int", "lower": 0, "upper": 60, "nullable": False},
    ]
    assert about_table(columns={f"c{i}": column for i, column in enumerate(fine)}) == []


def test_without_a_delta_private_keys_are_no_keys():
    tables = {"visits": QUIET["tables"]["visits"] | {"columns": {"x": {"type": "text"}}}}
    said = {r.path: r.text for r in check_policy(load(QUIET | {"tables": tables, "privacy": {"epsilon": 1}}))}
    assert said["tables.visits.columns.x"].startswith("no GROUP BY key, because which values occur is private")
    privacy = QUIET["privacy"] | {"delta_per_question": 0}
    unused = check_policy(load(QUIET | {"tables": tables, "privacy": privacy}))
    assert [r.path for r in unused] == ["privacy.delta_per_question", "tables.visits.columns.x"]


@pytest.mark.parametrize(
    ("delta", "said"),
    [
        (None, "showing them costs a delta, and no analyst has one"),
        # a question costs 1e-9, a thousandth of 1e-6; half of 1.5e-9 is less, and half of 2e-9 is not
        (1.5e-9, "showing them costs delta 1e-9, and half of no analyst's delta is so much"),
        (2e-9, "a value is shown only where enough units hold it"),
    ],
)
def test_where_no_analyst_can_pay_for_private_keys_nobody_is_told_that_they_are_shown(delta: float | None, said: str):
    tables = {"visits": QUIET["tables"]["visits"] | {"columns": {"x": {"type": "text"}}}}
    analysts = {"ada": {"epsilon": 0.5} | ({} if delta is None else {"delta": delta})}
    found = {r.path: r.text for r in check_policy(load(QUIET | {"tables": tables, "analysts": analysts}))}
    assert said in found["tables.visits.columns.x"]


def test_a_unit_that_is_listed_as_a_column():
    columns = {"Patient_ID": {"type": "int"}, "smoker": {"type": "bool"}}
    [(path, text)] = about_table(columns=columns)
    assert path == "tables.visits.columns.Patient_ID"
    assert text.startswith("is the unit, and listed it may be named in WHERE, to ask about one alone; leave it out")


def test_the_rule_for_delta_is_one():
    for delta in (0, 1e-4):
        assert about("privacy", delta=delta)[0][1].endswith(f"keep it {DELTA_RULE}")


WARDS = {"public": True, "columns": {"ward": {"type": "text", "unique": True}}}


def test_a_public_table_that_nothing_can_join():
    assert about("tables", wards=WARDS) == []
    [(path, text)] = about("tables", wards=WARDS | {"columns": {"ward": {"type": "text"}}})
    assert path == "tables.wards"
    assert "no unique column, so no question can join it" in text


def test_a_column_named_row():
    table = {"unit": "row", "columns": {"Row": {"type": "bool"}}}
    assert about("tables", visits=table)[0][0] == "tables.visits.unit"


def test_a_remark_in_words():
    assert str(PolicyAdvice("privacy.delta", "is large")) == "privacy.delta: is large"


@settings(deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20))
def test_decimal_text_is_exact(number: Any):
    assert Fraction(format_decimal(Fraction(number))) == Fraction(number)


def test_decimal_text_of_a_very_long_fraction():
    assert format_decimal(Fraction(10**5000, 3 * 10**5000 + 1)) == "about 0.333333"
