"""Someone writes to the file behind the ledger's back; `verify` says what is wrong."""

from __future__ import annotations

from fractions import Fraction

import apsw
import pytest

from tacit.accounting.filter import Amount
from tacit.errors import Code, LedgerError
from tacit.ledger import schema
from tacit.ledger.budget import Limits
from tacit.ledger.entries import COLUMNS, from_values, seal, values
from tacit.ledger.history import History
from tacit.ledger.sqlite import Ledger
from tacit.ledger.verify import verify
from tacit.privacy.loss import LaplaceNoise

ONE = LaplaceNoise(Fraction(1), 1)  # a price of epsilon 1
TEN = Amount.cap(Fraction(10), Fraction(0))
LIMITS = Limits(TEN, {"ada": TEN, "bob": TEN})

# 1 open, 2 reserve, 3 commit, 4 reserve, 5 fail, 6 repeat by bob at a charge, 7 repeat by bob for nothing, 8 reserve
LENGTH = 8


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger"
    with Ledger(path, LIMITS) as ledger:
        ledger.commit(ledger.reserve("ada", ONE, "a"), b"12")
        ledger.fail(ledger.reserve("ada", ONE, "b"))
        ledger.reserve("bob", ONE, "a")
        ledger.reserve("bob", ONE, "a")
        ledger.reserve("ada", ONE, "c")
        assert verify(ledger).ok
    return path


def edit(path, *statements, keep_locks=False):
    """Change the file as its owner could, with the locks taken away and put back."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA ignore_check_constraints = ON")
    locks = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")]
    for name in () if keep_locks else locks:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for statement in () if keep_locks else [text for text in schema.STATEMENTS if "TRIGGER" in text]:
        connection.execute(statement)
    connection.close()


def problems(path):
    with History(path) as history:
        return verify(history).problems


def refuses_to_open(path):
    with pytest.raises(LedgerError) as error:
        Ledger(path, LIMITS)
    return error.value.code is Code.LEDGER_TAMPERED


def test_an_honest_ledger_has_no_problems(path):
    edit(path)
    with History(path) as history:
        report = verify(history)
        assert (report.entries, report.head, report.problems, report.ok) == (LENGTH, history.head(), (), True)


@pytest.mark.parametrize("column", [name for name in COLUMNS if name not in ("sequence", "kind")])
@pytest.mark.parametrize("sequence", range(1, LENGTH + 1))
def test_an_edit_of_any_field_of_any_entry_is_found(path, column, sequence):
    edit(path, f"UPDATE entries SET {column} = {column} || '7' WHERE sequence = {sequence}")
    assert any(problem.startswith(f"entry {sequence}: ") for problem in problems(path))


@pytest.mark.parametrize("kind", ["reserve", "repeat", "refund"])
def test_an_edit_of_the_kind_is_found(path, kind):
    edit(path, f"UPDATE entries SET kind = '{kind}' WHERE sequence = 5")
    assert any(problem.startswith("entry 5: ") for problem in problems(path))


@pytest.mark.parametrize("sequence", range(1, LENGTH + 1))
def test_a_deleted_entry_is_found(path, sequence):
    edit(path, f"DELETE FROM entries WHERE sequence = {sequence}")
    assert problems(path)


def test_the_last_entry_is_missed_at_opening_too(path):
    edit(path, f"DELETE FROM entries WHERE sequence = {LENGTH}")
    assert refuses_to_open(path)


def test_entries_in_another_order_are_found(path):
    edit(
        path,
        "UPDATE entries SET sequence = 100 WHERE sequence = 4",
        "UPDATE entries SET sequence = 4 WHERE sequence = 5",
        "UPDATE entries SET sequence = 5 WHERE sequence = 100",
    )
    found = problems(path)
    assert "entry 4: it does not follow from the entry before it" in found
    assert "entry 4: it was altered: its hash is another" in found


def test_a_gap_is_found(path):
    edit(path, f"UPDATE entries SET sequence = 20 WHERE sequence = {LENGTH}")
    assert "entry 20: the entry before it is 7, so that one is missing" in problems(path)


def test_an_altered_answer_is_found_and_never_shown(path):
    edit(path, "UPDATE answers SET answer = x'3133'")
    assert problems(path) == ("the answer of entry 3 was altered",)
    with Ledger(path, LIMITS) as ledger, pytest.raises(LedgerError) as error:
        ledger.reserve("ada", ONE, "a")
    assert error.value.code is Code.LEDGER_TAMPERED


def test_a_missing_answer_is_found(path):
    edit(path, "DELETE FROM answers")
    assert problems(path) == ("the answer of entry 3 is missing",)


def test_an_answer_that_nobody_committed_is_found(path):
    edit(path, "INSERT INTO answers SELECT 2, 'b', loss, answer FROM answers")
    assert problems(path) == ("the answer of entry 2 was never committed",)


@pytest.mark.parametrize("who", ["", "ada", "bob"])
def test_a_total_set_back_is_found_at_opening(path, who):
    edit(path, f"UPDATE totals SET epsilon = 0 WHERE who = '{who}'")
    (problem,) = problems(path)
    assert "is not the sum of its charges" in problem
    assert refuses_to_open(path)


def test_a_total_set_back_stops_a_ledger_that_is_open(path):
    with Ledger(path, LIMITS) as ledger:
        edit(path, "UPDATE totals SET epsilon = 0 WHERE who = ''")
        with pytest.raises(LedgerError) as error:
            ledger.reserve("ada", ONE, "d")
        assert error.value.code is Code.LEDGER_TAMPERED


def test_a_missing_total_is_found(path):
    edit(path, "DELETE FROM totals WHERE who = 'bob'")
    assert problems(path)


def test_a_raised_cap_is_found_and_does_not_help(path):
    edit(path, "UPDATE totals SET cap_epsilon = 1000000000000000")
    assert all("has a cap that was never recorded" in problem for problem in problems(path))
    with Ledger(path, LIMITS) as ledger:
        assert ledger.standing("ada").cap == TEN


def test_a_lock_taken_away_is_found(path):
    edit(path, "DROP TRIGGER entries_stay", keep_locks=True)
    assert problems(path) == ("the tables or their locks were altered",)
    assert refuses_to_open(path)


def test_a_missing_table_is_reported_not_raised(path):
    edit(path, "DROP TABLE answers", keep_locks=True)
    assert problems(path)[-1] == f"the file cannot be read beyond entry {LENGTH}"


@pytest.mark.parametrize(
    ("statement", "lock"),
    [
        ("UPDATE entries SET epsilon = 0", "entries_stay"),
        ("DELETE FROM entries", "entries_remain"),
        ("UPDATE answers SET answer = x'00'", "answers_stay"),
        ("DELETE FROM answers", "answers_remain"),
        ("DELETE FROM totals", "totals_remain"),
        ("UPDATE totals SET epsilon = epsilon - 1", "totals_grow"),
        ("UPDATE totals SET epsilon = 10000000000001", "totals_are_capped"),  # one grain beyond ten
    ],
)
def test_the_database_itself_forbids_what_the_ledger_never_does(path, statement, lock):
    with pytest.raises(apsw.ConstraintError, match=lock):
        edit(path, statement, keep_locks=True)


def test_a_cap_may_be_lowered_below_what_is_spent(path):
    edit(path, "UPDATE totals SET cap_epsilon = 0", keep_locks=True)


def rewrite(path, changes):
    """Change entries and recompute every hash and sum, as a careful forger would."""
    connection = apsw.Connection(str(path))
    rows = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM entries ORDER BY sequence").fetchall()
    connection.close()
    statements, previous, spent, overall = [], None, {}, 0
    for row in rows:
        entry = from_values(row)
        fields = {name: getattr(entry, name) for name in COLUMNS} | changes.get(entry.sequence, {})
        fields["previous"] = previous or entry.previous
        if fields["who"]:
            spent[fields["who"]] = spent.get(fields["who"], 0) + fields["epsilon"]
            fields["spent_epsilon"] = spent[fields["who"]]
        overall += fields["overall_epsilon"]
        fields["overall_spent_epsilon"] = overall
        forged = seal(type(entry)(**fields))
        previous = forged.hash
        pairs = ", ".join(
            f"{name} = {apsw.format_sql_value(value)}" for name, value in zip(COLUMNS, values(forged), strict=True)
        )
        statements.append(f"UPDATE entries SET {pairs} WHERE sequence = {entry.sequence}")
    statements.append(f"UPDATE head SET hash = '{previous}'")
    statements += [f"UPDATE totals SET epsilon = {total} WHERE who = '{who}'" for who, total in spent.items()]
    statements.append(f"UPDATE totals SET epsilon = {overall} WHERE who = ''")
    edit(path, *statements)


def test_a_careful_forger_goes_unnoticed_but_for_the_head(path):
    with History(path) as history:
        before = history.head()
    rewrite(path, {8: {"key": "d"}})
    with History(path) as history:
        report = verify(history)
    assert report.ok
    assert report.head != before  # which a receipt or a witness remembers


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {8: {"epsilon": 2, "overall_epsilon": 1}},
            "entry 8: a first answer is charged to the analyst and to all alike",
        ),
        ({8: {"epsilon": 10**13, "overall_epsilon": 10**13}}, "entry 8: it goes beyond the overall cap"),
        ({6: {"epsilon": 11 * 10**12}}, "entry 6: it goes beyond the analyst's cap"),
        ({6: {"epsilon": 0}}, "entry 6: a repeat costs its price once, and then nothing"),
        ({7: {"epsilon": 10**12}}, "entry 7: a repeat costs its price once, and then nothing"),
        ({6: {"overall_epsilon": 10**12}}, "entry 6: a repeat is charged to the analyst only"),
        ({6: {"key": "b"}}, "entry 6: it repeats what was never answered"),
        ({5: {"epsilon": 1}}, "entry 5: a fail charges nothing"),
        ({5: {"claim": 8}}, "entry 5: no open claim 8 of this analyst and question"),
        ({3: {"who": "bob"}}, "entry 3: no open claim 2 of this analyst and question"),
        ({3: {"claim": 8}}, "entry 3: no open claim 8 of this analyst and question"),
        ({5: {"kind": "commit", "key": "b"}}, "the answer of entry 5 is missing"),
        ({1: {"note": "{}"}}, "entry 1: it cannot be read"),
        ({1: {"note": '{"analysts":{},"overall":[0,0]}'}}, "entry 2: it goes beyond the analyst's cap"),
    ],
)
def test_a_forger_must_also_keep_the_rules(path, changes, problem):
    rewrite(path, changes)
    assert problem in problems(path)


@pytest.mark.parametrize("offset", range(4096, 40960, 512))
def test_a_damaged_page_is_reported_or_refused_or_held_nothing(path, offset):
    with History(path) as history:
        before = list(history.entries())
    data = path.read_bytes()
    path.write_bytes(data[:offset] + bytes(255 - byte for byte in data[offset : offset + 512]) + data[offset + 512 :])
    try:
        found = problems(path)
    except LedgerError:
        return
    if not found:
        with Ledger(path, LIMITS) as ledger:
            assert list(ledger.entries()) == before
            assert ledger.reserve("ada", ONE, "a").stored == b"12"
