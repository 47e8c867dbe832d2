"""Someone writes to the database behind the ledger's back; `verify` says what is wrong, and nothing goes on."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import apsw
import psycopg
import pytest
from tests.ledger.conftest import by_hand, grains, limits, noise, on_both, price, write_free_repeat
from tests.support.counts import FULL, some

from tacit.accounting.filters import BudgetCharge
from tacit.errors import ErrorCode, LedgerError
from tacit.ledger import schema, sqlite
from tacit.ledger.budget import Terms
from tacit.ledger.entries import ALL_ANALYSTS, COLUMNS, EntryKind, add_hash, to_row
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.verify import verify

ONE, PRICE, NOTHING = noise("1"), price("1"), BudgetCharge.zero()
LIMITS = limits("10", ada="10", bo="10")

# 1 open, 2 reserve, 3 commit, 4 reserve, 5 fail, 6 repeat by bo at a charge, 7 repeat by bo for nothing, 8 reserve,
# 9 resume. The seventh is as an earlier version wrote it: what is free needs no entry.
LENGTH = 9


@pytest.fixture
def honest(place, witness):
    """A ledger with an entry of every kind that an analyst causes."""
    with Ledger(place, LIMITS, witness=witness) as ledger:
        ledger.commit(ledger.reserve("ada", ONE, "a", request="first"), b"12")
        ledger.fail(ledger.reserve("ada", ONE, "b"))
        ledger.reserve("bo", ONE, "a")
        write_free_repeat(ledger, "bo", "a")
        ledger.reserve("ada", ONE, "c")
    with Ledger(place, LIMITS, witness=witness) as ledger:
        ledger.reserve("ada", ONE, "c")
        assert verify(ledger, witness).ok
    return place


def locks(place):
    """The statements that take the database's locks away, and those that put them back."""
    if isinstance(place, Path):
        away = [f"DROP TRIGGER {lock.name}" for lock in schema.TRIGGERS]
        return away, [text for text in sqlite._STATEMENTS if text.startswith("CREATE TRIGGER")]
    tables = sorted({lock.table for lock in schema.TRIGGERS})
    return tuple([f"ALTER TABLE {table} {how} TRIGGER USER" for table in tables] for how in ("DISABLE", "ENABLE"))


def edit(place, *statements):
    """Change the database as its owner could, with the locks taken away and put back."""
    away, back = locks(place)
    by_hand(place, "BEGIN", *away, *statements, *back, "COMMIT")


def problems(place, witness=None):
    with LedgerReader(place) as history:
        return verify(history, witness).problems


def refusal(place, witness):
    """The code with which a ledger refuses to open."""
    with pytest.raises(LedgerError) as error:
        Ledger(place, LIMITS, witness=witness)
    assert error.value.fix
    return error.value.code


def literal(value) -> str:
    return apsw.format_sql_value(str(value) if isinstance(value, str) else value)


def test_an_honest_ledger_has_no_problems(honest, witness):
    edit(honest)
    with LedgerReader(honest) as history:
        report = verify(history, witness)
        assert (report.entries, report.head, report.problems, report.ok) == (LENGTH, history.head(), (), True)


def altered(column: str, value: object) -> object:
    if column == "shared":
        return 1 - value
    if column == "kind":
        return "repeat" if value == "fail" else "fail"
    if column in ("previous", "hash"):
        return value[1:] + ("0" if value[0] != "0" else "1")
    return value + 1 if isinstance(value, int) else value + "7"


@pytest.mark.slow
def test_an_edit_of_any_field_of_any_entry_is_found(honest, full):
    with LedgerReader(honest) as history:
        rows = [to_row(entry) for entry in history.entries()]
    if not (full or isinstance(honest, Path)):
        rows = rows[::4]  # a server is slower to ask, and the walk is the same
    away, back = locks(honest)
    by_hand(honest, *away)
    for row in rows:
        fields = some(zip(COLUMNS[1:], row[1:], strict=True), 6 if isinstance(honest, Path) else 3, row[0])
        for column, value in fields:  # by default each column in one row or more
            update = f"UPDATE entries SET {column} = {{}} WHERE sequence = {row[0]}"
            by_hand(honest, update.format(literal(altered(column, value))))
            found = problems(honest)
            assert any(problem.startswith(f"entry {row[0]}: ") for problem in found), (column, row[0], found)
            by_hand(honest, update.format(literal(value)))
    by_hand(honest, *back)
    assert problems(honest) == ()


@pytest.mark.slow
@pytest.mark.parametrize(  # the oldest, one in the middle, the newest
    ("place", "sequence"), on_both([1, 5, LENGTH], 3), indirect=["place"]
)
def test_an_edited_entry_refuses_to_open(honest, witness, sequence):
    edit(honest, f"UPDATE entries SET charge_epsilon = 0, time = '2020' WHERE sequence = {sequence}")
    assert refusal(honest, witness) is ErrorCode.LEDGER_TAMPERED


@pytest.mark.slow
@pytest.mark.parametrize(  # entries that no answer refers to
    ("place", "sequence"), on_both([2, 5, 8, LENGTH], 4), indirect=["place"]
)
def test_a_deleted_entry_is_found_and_refuses_to_open(honest, witness, sequence):
    edit(honest, f"DELETE FROM flights WHERE claim = {sequence}", f"DELETE FROM entries WHERE sequence = {sequence}")
    assert problems(honest)
    assert refusal(honest, witness) is ErrorCode.LEDGER_ORDER


def test_entries_in_another_order_are_found(honest, witness):
    edit(
        honest,
        "UPDATE entries SET sequence = 100 WHERE sequence = 4",
        "UPDATE entries SET sequence = 4 WHERE sequence = 5",
        "UPDATE entries SET sequence = 5 WHERE sequence = 100",
    )
    found = problems(honest)
    assert "entry 4: it does not follow from the entry before it" in found
    assert "entry 4: it was altered: its hash is another" in found
    assert refusal(honest, witness) is ErrorCode.LEDGER_ORDER


def test_a_gap_is_found(honest, witness):
    edit(honest, f"UPDATE entries SET sequence = 20 WHERE sequence = {LENGTH}")
    assert f"entry 20: the entry before it is {LENGTH - 1}, so that one is missing" in problems(honest)
    assert refusal(honest, witness) is ErrorCode.LEDGER_ORDER


def cut_off(place, length: int) -> None:
    """Take the last entries away, and set the head and the totals to what the others say."""
    with LedgerReader(place) as history:
        kept = list(history.entries())[:length]
    lasts = {entry.analyst: entry.spent for entry in kept if entry.analyst}
    edit(
        place,
        "DELETE FROM flights",
        f"DELETE FROM answers WHERE entry > {length}",
        f"DELETE FROM entries WHERE sequence > {length}",
        f"UPDATE head SET sequence = {length}, hash = '{kept[-1].hash}'",
        *[total(analyst, lasts.get(analyst, NOTHING)) for analyst in LIMITS.analysts],
        total(ALL_ANALYSTS, kept[-1].overall),
    )


def total(analyst: str, spent: BudgetCharge) -> str:
    pairs = zip(("epsilon", "delta_a", "rho", "delta_b"), spent.grains, strict=True)
    return f"UPDATE totals SET {', '.join(f'{name} = {number}' for name, number in pairs)} WHERE who = '{analyst}'"


@pytest.mark.slow
@pytest.mark.parametrize(("place", "length"), on_both([1, 3, 5, LENGTH - 1], 4), indirect=["place"])
def test_entries_cut_off_with_care_are_found_by_the_witness_alone(honest, witness, length):
    cut_off(honest, length)
    assert problems(honest) == ()
    missing = LENGTH - length
    assert problems(honest, witness) == (f"the witness saw {missing} entries that are not there, up to entry {LENGTH}",)
    assert refusal(honest, witness) is ErrorCode.LEDGER_OLDER


def test_an_altered_answer_is_found_and_never_shown(honest, witness):
    edit(honest, "UPDATE answers SET answer = " + ("x'3133'" if isinstance(honest, Path) else "'\\x3133'"))
    assert problems(honest) == ("the answer of entry 3 was altered",)
    with Ledger(honest, LIMITS, witness=witness) as ledger, pytest.raises(LedgerError) as error:
        ledger.reserve("ada", ONE, "a")
    assert error.value.code is ErrorCode.LEDGER_TAMPERED


def test_a_missing_answer_is_found(honest):
    edit(honest, "DELETE FROM answers")
    assert problems(honest) == ("the answer of entry 3 is missing",)


def test_an_answer_that_nobody_committed_is_found(honest):
    edit(honest, "INSERT INTO answers SELECT 2, 'b', loss, answer FROM answers")
    assert problems(honest) == ("the answer of entry 2 was never committed",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "grain", "analyst"),
    on_both(product(["epsilon", "rho"], [ALL_ANALYSTS, "ada", "bo"]), 4),
    indirect=["place"],
)
def test_a_total_set_back_is_found_at_opening(honest, witness, analyst, grain):
    edit(honest, f"UPDATE totals SET {grain} = 0 WHERE who = '{analyst}'")
    (problem,) = problems(honest)
    assert "is not the sum of its charges" in problem
    assert refusal(honest, witness) is ErrorCode.LEDGER_TAMPERED


def test_a_total_set_back_stops_a_ledger_that_is_open(honest, witness):
    with Ledger(honest, LIMITS, witness=witness) as ledger:
        edit(honest, "UPDATE totals SET epsilon = 0 WHERE who = ''")
        with pytest.raises(LedgerError) as error:
            ledger.reserve("ada", ONE, "d")
        assert error.value.code is ErrorCode.LEDGER_TAMPERED


def test_a_missing_total_is_found(honest, witness):
    edit(honest, "DELETE FROM totals WHERE who = 'bo'")
    assert problems(honest)
    with Ledger(honest, LIMITS, witness=witness) as ledger, pytest.raises(LedgerError) as error:
        ledger.reserve("bo", ONE, "d")
    assert error.value.code is ErrorCode.LEDGER_TAMPERED


def test_a_raised_cap_is_found_and_does_not_help(honest, witness):
    edit(honest, "UPDATE totals SET cap_epsilon = 1000000000000000")
    assert len(problems(honest)) == 3
    assert all("has a cap that was never recorded" in problem for problem in problems(honest))
    with Ledger(honest, LIMITS, witness=witness) as ledger:
        assert ledger.standing("ada").cap == LIMITS.overall


@pytest.mark.slow
def test_a_lock_taken_away_is_found(honest, witness):
    drop = "DROP TRIGGER entries_stay" + ("" if isinstance(honest, Path) else " ON entries")
    by_hand(honest, drop)
    assert problems(honest) == ("the tables or their locks were altered",)
    assert refusal(honest, witness) is ErrorCode.LEDGER_TAMPERED


def test_a_missing_table_is_reported_not_raised(honest):
    by_hand(honest, "DROP TABLE answers")
    first, second = problems(honest)
    assert first == "the tables or their locks were altered"
    assert "cannot be used" in second or "has lost its tables" in second


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "lock"),
    [
        ("UPDATE entries SET charge_epsilon = 0", "entries_stay"),
        ("DELETE FROM entries", "entries_remain"),
        ("UPDATE answers SET key = 'b'", "answers_stay"),
        ("DELETE FROM answers", "answers_remain"),
        ("DELETE FROM totals", "totals_remain"),
        ("UPDATE totals SET epsilon = epsilon - 1", "totals_grow"),
        ("UPDATE totals SET rho = rho - 1", "totals_grow"),
        ("UPDATE totals SET epsilon = 10000000000001", "totals_are_capped"),  # one grain beyond ten, and no rho
    ],
)
def test_the_database_itself_forbids_what_the_ledger_never_does(honest, statement, lock):
    with pytest.raises((apsw.ConstraintError, psycopg.IntegrityError), match=lock):
        by_hand(honest, statement)


@pytest.mark.slow
def test_a_cap_may_be_lowered_below_what_is_spent(honest):
    by_hand(honest, "UPDATE totals SET cap_epsilon = 0")


def rewrite(place, changes):
    """Change entries and recompute every hash and sum, as a careful forger would."""
    with LedgerReader(place) as history:
        entries = list(history.entries())
    statements, spent, months, everyone, previous = [], {ALL_ANALYSTS: NOTHING}, {}, NOTHING, entries[0].previous
    for entry in entries:
        made = replace(entry, **changes.get(entry.sequence, {}))
        analyst, then = made.analyst, months.get(made.analyst, "")
        if analyst != ALL_ANALYSTS:
            begun = NOTHING if made.month > then > "" else spent.get(analyst, NOTHING)
            spent[analyst], months[analyst] = begun + made.charge, made.month
        spent[ALL_ANALYSTS] += made.shared_charge
        everyone += made.charge
        own = NOTHING if analyst == ALL_ANALYSTS else spent[analyst]
        made = add_hash(replace(made, spent=own, overall=spent[ALL_ANALYSTS], everyone=everyone, previous=previous))
        previous = made.hash
        pairs = ", ".join(f"{name} = {literal(value)}" for name, value in zip(COLUMNS, to_row(made), strict=True))
        statements.append(f"UPDATE entries SET {pairs} WHERE sequence = {entry.sequence}")
    months[ALL_ANALYSTS] = ""
    statements += [total(analyst, cost) for analyst, cost in spent.items()]
    statements += [f"UPDATE totals SET month = '{month}' WHERE who = '{analyst}'" for analyst, month in months.items()]
    edit(place, *statements, f"UPDATE head SET hash = '{previous}'")


@pytest.mark.slow
def test_a_careful_forger_goes_unnoticed_but_for_the_witness(honest, witness):
    with LedgerReader(honest) as history:
        before = history.head()
    rewrite(honest, {4: {"key": "d"}, 5: {"key": "d"}})
    with LedgerReader(honest) as history:
        report = verify(history)
        assert report.ok
        assert report.head != before  # which a receipt remembers
    found = problems(honest, witness)
    assert found[0] == "entry 4: the witness saw another in its place"
    assert len(found) == LENGTH - 3  # and everything after it
    assert refusal(honest, witness) is ErrorCode.LEDGER_OLDER


FOREIGN = Terms(limits("0")).encode()
MONTHLY = Terms(limits("10", ada="10", bo="10", monthly=["ada"])).encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "changes", "problem"),
    on_both(
        [
            ({8: {"shared": 0}}, "entry 8: a first answer is charged to the analyst and to all alike"),
            ({8: {"charge": price("9")}}, "entry 8: it goes beyond the overall cap"),  # 1 + 1 + 9
            ({6: {"charge": price("11")}}, "entry 6: it goes beyond the analyst's cap"),
            ({6: {"charge": NOTHING}}, "entry 6: a repeat is charged its privacy loss once, and then nothing"),
            ({7: {"charge": PRICE}}, "entry 7: a repeat is charged its privacy loss once, and then nothing"),
            ({6: {"shared": 1}}, "entry 6: a repeat is charged to the analyst only"),
            ({6: {"key": "b"}}, "entry 6: it repeats what was never answered"),
            ({5: {"charge": PRICE}}, "entry 5: a fail charges nothing"),
            ({9: {"charge": PRICE}}, "entry 9: a resume charges nothing"),
            ({9: {"claim": 4}}, "entry 9: no open claim 4 of this analyst and question"),
            ({9: {"analyst": "bo"}}, "entry 9: no open claim 8 of this analyst and question"),
            ({9: {"loss": "another"}}, "entry 9: no open claim 8 of this analyst and question"),
            ({9: {"request": "first"}}, "entry 9: its request was used before"),
            ({5: {"claim": 8}}, "entry 5: no open claim 8 of this analyst and question"),
            ({3: {"analyst": "bo"}}, "entry 3: no open claim 2 of this analyst and question"),
            ({3: {"claim": 8}}, "entry 3: no open claim 8 of this analyst and question"),
            ({5: {"kind": EntryKind.COMMIT}}, "the answer of entry 5 is missing"),
            ({1: {"note": "{}"}}, "entry 1: it cannot be read"),
            ({1: {"note": FOREIGN}}, "entry 2: it goes beyond the analyst's cap"),
            ({1: {"note": MONTHLY}}, "entry 2: its month is not what the terms say"),
            ({8: {"month": "2020-01"}}, "entry 8: its month is not a later one"),
            ({2: {"month": "2999-12"}}, "entry 2: its month has not come yet"),
            ({8: {"time": "2020"}}, "entry 8: it is earlier than the entry before it"),
            ({1: {"kind": EntryKind.ACCEPT}}, "entry 2: it comes before any terms"),
        ],
        6,
    ),
    indirect=["place"],
)
def test_a_forger_must_also_keep_the_rules(honest, changes, problem):
    if any(change.get("request") for change in changes.values()):
        by_hand(honest, "DROP INDEX entries_by_request")  # which forbids it too
    rewrite(honest, changes)
    assert problem in problems(honest)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_damaged_page_is_reported_or_refused_or_held_nothing(honest, witness):
    with LedgerReader(honest) as history:
        before = list(history.entries())
    data = honest.read_bytes()
    for offset in range(4096, len(data), 512 if FULL else 1536):
        flipped = bytes(255 - byte for byte in data[offset : offset + 512])
        honest.write_bytes(data[:offset] + flipped + data[offset + 512 :])
        try:
            found = problems(honest)
        except LedgerError:
            continue
        if not found:
            with Ledger(honest, LIMITS, witness=witness) as ledger:
                assert list(ledger.entries()) == before
                with ledger.store.read() as session:
                    assert session.run("SELECT answer FROM answers") == [(b"12",)]


@pytest.mark.slow
def test_the_price_of_the_session_is_what_the_comments_say(honest):
    # ada: 2, 4 and 8; bo: 6, which all together do not pay.
    with LedgerReader(honest) as history:
        assert history.standing("ada").spent.epsilon == history.overall().spent.epsilon == grains("3")
        assert history.standing("bo").spent.epsilon == grains("1")
