"""What every engine says, fact by fact: one body, run for each of them and for the reference."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest

from tacit.privacy.sensitivity import Contribution
from tacit.query.functions import Fn
from tacit.query.nodes import (
    Aggregation,
    Call,
    Case,
    Clamp,
    Column,
    Fold,
    GroupKey,
    Literal,
    Match,
    Measure,
    Quantize,
    Scan,
    Select,
    Stack,
)

pytestmark = pytest.mark.slow

JANUARY, MAY = datetime.date(2025, 1, 31), datetime.date(2025, 5, 1)
VISITS = {"patient": "text", "ward": "text", "age": "int", "cost": "float", "day": "date", "urgent": "bool"}
ROWS = [
    ("ann", "A", 30, 1.5, JANUARY, True),
    ("ann", "A", 30, float("nan"), MAY, False),
    ("ann", "B", None, 2.5, None, None),
    ("bob", None, 50, float("inf"), MAY, True),
    ("cid", "C", 7, None, MAY, False),
    (None, "A", 99, 4.0, JANUARY, True),
]
WARDS = {"name": "text", "floor": "int"}
TABLES = {
    "visits": (VISITS, [dict(zip(VISITS, row, strict=True)) for row in ROWS]),
    "wards": (WARDS, [{"name": "A", "floor": 1}, {"name": "B", "floor": 2}, {"name": None, "floor": 3}]),
    "empty": (VISITS, []),
}

scan = Scan("visits", tuple((name, f"c{i}") for i, name in enumerate(VISITS)))
nothing = Scan("empty", scan.columns)
wards = Scan("wards", (("name", "w0"), ("floor", "w1")))
patient, ward, age, cost, day, urgent = (Column(f"c{i}") for i in range(6))

count = Measure("count", None)


@pytest.fixture
def ask(every_engine_over):
    """The groups over the tables above."""
    engine = every_engine_over(TABLES)

    def run(*measures, source=scan, keys=(), unit=None, keep=(9, 9), where=None, salt=""):
        node = Aggregation(source, where, unit, tuple(keys), Contribution(*keep), measures, salt)
        return dict(engine.run(node))

    return run


def public(scalar, *values):
    return GroupKey(scalar, values)


def private(scalar):
    return GroupKey(scalar, None)


def is_null(scalar):
    return Call(Fn.IS_NULL, (scalar,))


def test_rows_and_values_are_counted(ask):
    assert ask(count, Measure("count", age), Measure("count", day)) == {(): (6, 5, 5)}


def test_sums_skip_nulls_and_are_zero_of_nothing(ask):
    # 30 + 30 + 50 + 7 + 99
    assert ask(Measure("sum", age)) == {(): (216,)}
    assert ask(Measure("sum", age), where=Call(Fn.EQUAL, (ward, Literal("B")))) == {(): (0,)}


def test_a_sum_may_be_wider_than_64_bits(ask):
    # 6 rows of 2^62
    assert ask(Measure("sum", Literal(2**62))) == {(): (6 * 2**62,)}


def test_nan_and_infinities_on_a_grid(ask):
    # 1.5, 2.5, 4.0 and infinity, which is read as 5, in steps of 1/2: 3 + 5 + 8 + 10
    argument = Quantize(Clamp(cost, Fraction(0), Fraction(5), whole=False), Fraction(1, 2), 0, 10)
    assert ask(Measure("sum", argument), Measure("count", argument)) == {(): (26, 4)}


def test_distinct_values_and_units(ask):
    assert ask(Measure("distinct", age), Measure("distinct", ward)) == {(): (4, 3)}
    assert ask(Measure("units", None), count, unit="c0") == {(): (3, 5)}


def test_where_each_row_is_a_unit_rows_are_units(ask):
    assert ask(Measure("units", None)) == {(): (6,)}


def test_without_keys_there_is_one_group_even_of_no_rows(ask):
    measures = [count, *(Measure(f, age) for f in ("count", "sum", "distinct", "histogram")), Measure("units", None)]
    assert ask(*measures, source=nothing) == {(): (0, 0, 0, 0, {}, 0)}
    assert ask(*measures, source=nothing, unit="c0") == {(): (0, 0, 0, 0, {}, 0)}
    assert ask(count, source=nothing, unit="c0") == {(): (0,)}
    assert ask(Measure("histogram", age), source=nothing) == {(): ({},)}
    assert ask(source=nothing) == {(): ()}
    assert ask(count, where=Literal(False)) == {(): (0,)}


def test_with_keys_groups_without_rows_are_left_out(ask):
    assert ask(count, source=nothing, keys=[public(ward, "A", "B")]) == {}
    assert ask(count, source=nothing, keys=[private(ward)], unit="c0") == {}
    assert ask(count, Measure("histogram", age), source=nothing, keys=[private(ward)]) == {}


def test_public_keys_leave_all_others_out(ask):
    assert ask(count, keys=[public(ward, "A", "C", "Z")]) == {("A",): (3,), ("C",): (1,)}
    assert ask(count, keys=[public(ward)]) == {}


def test_private_keys_are_those_that_occur_and_null_is_one(ask):
    assert ask(count, keys=[private(ward)]) == {("A",): (3,), ("B",): (1,), (None,): (1,), ("C",): (1,)}
    assert ask(count, keys=[private(ward)], unit="c0") == {("A",): (2,), ("B",): (1,), (None,): (1,), ("C",): (1,)}


def test_private_keys_of_several_types_beside_a_public_one(ask):
    keys = [private(day), private(urgent), public(ward, "A", "B")]
    expected = {
        (JANUARY, True, "A"): (2, 129),
        (MAY, False, "A"): (1, 30),
        (None, None, "B"): (1, 0),
    }
    found = ask(count, Measure("sum", age), keys=keys)
    assert found == expected
    assert {tuple(map(type, key)) for key in found} == {(datetime.date, bool, str), (type(None), type(None), str)}


def test_a_key_may_be_computed(ask):
    older = Call(Fn.GREATER_EQUAL, (age, Literal(30)))
    assert ask(count, keys=[private(older)]) == {(True,): (4,), (False,): (1,), (None,): (1,)}
    assert ask(count, keys=[private(Literal("all"))]) == {("all",): (6,)}


def test_a_computed_key_that_is_null_is_no_public_one(ask):
    # Statistics say that the key is always "yes", which is so where it is not NULL.
    answer = Case(((urgent, Literal("yes")),), Literal(None))
    assert ask(count, keys=[public(answer, "yes", "no")]) == {("yes",): (3,)}
    assert ask(count, where=Call(Fn.IN, (answer, Literal("yes"), Literal("no")))) == {(): (3,)}


def test_histograms_of_integers_dates_texts_and_truth(ask):
    found = ask(*(Measure("histogram", column) for column in (age, day, ward, urgent)))
    assert found == {
        (): (
            {30: 2, 50: 1, 7: 1, 99: 1},
            {JANUARY: 2, MAY: 3},
            {"A": 3, "B": 1, "C": 1},
            {True: 3, False: 2},
        )
    }


def test_histograms_stand_in_the_order_of_the_measures(ask):
    found = ask(count, Measure("histogram", age), Measure("sum", age), Measure("histogram", day), keys=[private(ward)])
    # B has rows, but no age and no day
    assert found["A",] == (3, {30: 2, 99: 1}, 159, {JANUARY: 2, MAY: 1})
    assert found["B",] == (1, {}, 0, {})


def test_a_group_of_nulls_only_has_an_empty_histogram(ask):
    found = ask(Measure("histogram", age), keys=[private(ward)], unit="c0")
    assert found == {("A",): ({30: 2},), ("B",): ({},), (None,): ({50: 1},), ("C",): ({7: 1},)}


def test_rows_without_a_unit_are_dropped(ask):
    assert ask(count, Measure("sum", age), unit="c0") == {(): (5, 117)}
    assert ask(count, unit="c0") == {(): (5,)}
    assert ask(Measure("histogram", age), unit="c0") == {(): ({30: 2, 50: 1, 7: 1},)}


def test_a_condition_that_is_null_is_not_true(ask):
    assert ask(count, where=urgent) == {(): (3,)}
    assert ask(count, where=Call(Fn.NOT, (urgent,))) == {(): (2,)}
    assert ask(count, where=is_null(urgent)) == {(): (1,)}


def test_bounding_keeps_so_many_groups_and_rows(ask):
    # ann has two rows in A and one in B; bob and cid have one row each
    for measures in ([count], [count, Measure("sum", Literal(1))], [count, Measure("histogram", age)]):
        both = ask(*measures, keys=[public(ward, "A", "B", "C")], unit="c0", keep=(2, 1))
        assert {key: cells[0] for key, cells in both.items()} == {("A",): 1, ("B",): 1, ("C",): 1}
        one = ask(*measures, keys=[private(ward)], unit="c0", keep=(1, 1))
        assert sum(cells[0] for cells in one.values()) == 3
        assert ask(*measures, unit="c0", keep=(1, 2))[()][0] == 4


def test_counts_alone_choose_the_groups_that_other_measures_choose(ask):
    for salt in "abcd":
        bounds = {"keys": [private(ward)], "unit": "c0", "keep": (1, 1), "salt": salt}
        alone = ask(count, **bounds)
        assert alone == {key: cells[:1] for key, cells in ask(count, Measure("sum", age), **bounds).items()}


def test_select_computes_and_filters(ask):
    older = Call(Fn.GREATER, (age, Literal(7)))
    source = Select(scan, (("x", Call(Fn.SUBTRACT, (age, Literal(7)))), ("y", ward)), older)
    # 23 + 23 + 43 + 92
    assert ask(count, Measure("sum", Column("x")), source=source) == {(): (4, 181)}
    assert ask(count, source=source, keys=[private(Column("y"))]) == {("A",): (3,), (None,): (1,)}


def test_select_may_swap_names(ask):
    source = Select(scan, (("c1", patient), ("c0", ward)), Call(Fn.EQUAL, (patient, Literal("ann"))))
    assert ask(count, source=source, keys=[private(Column("c0"))]) == {("A",): (2,), ("B",): (1,)}


def test_a_match_leaves_out_what_matches_nothing(ask):
    source = Match(scan, wards, ((ward, Column("w0")),))
    # NULL matches nothing, though both sides have one
    assert ask(count, source=source, keys=[private(Column("w1"))]) == {(1,): (3,), (2,): (1,)}


def test_an_outer_match_keeps_what_matches_nothing(ask):
    source = Match(scan, wards, ((ward, Column("w0")),), outer=True)
    found = ask(count, Measure("count", Column("w0")), source=source, keys=[private(Column("w1"))])
    assert found == {(1,): (3, 3), (2,): (1, 1), (None,): (2, 0)}


def test_a_match_with_no_rows(ask):
    for left, right, outer, rows in [(scan, "empty", False, 0), (scan, "empty", True, 6), (nothing, "visits", True, 0)]:
        other = Scan(right, (("ward", "x0"),))
        source = Match(left, other, ((ward, Column("x0")),), outer)
        assert ask(count, Measure("count", Column("x0")), source=source) == {(): (rows, 0)}


def test_a_match_has_every_pair_and_may_compare_several_values(ask):
    other = Scan("visits", (("patient", "x0"), ("ward", "x1"), ("age", "x2")))
    on_patient = Match(scan, other, ((patient, Column("x0")),))
    # ann 3 x 3, bob and cid 1 x 1
    assert ask(count, source=on_patient, unit="c0", keep=(1, 99)) == {(): (11,)}
    on_both = Match(scan, other, ((patient, Column("x0")), (ward, Column("x1"))))
    # ann in A 2 x 2 and in B 1; cid 1; bob has no ward
    assert ask(count, source=on_both) == {(): (6,)}


def test_a_match_may_compute_what_it_compares(ask):
    other = Scan("wards", (("floor", "w1"),))
    ten = Call(Fn.MULTIPLY, (Column("w1"), Literal(10)))
    # 30 = 3 * 10, twice
    assert ask(count, source=Match(scan, other, ((age, ten),))) == {(): (2,)}


def test_a_fold_has_a_row_for_each_combination_of_keys(ask):
    measures = (
        ("rows", count),
        ("ages", Measure("count", age)),
        ("total", Measure("sum", age)),
        ("first", Measure("min", day)),
        ("last", Measure("max", ward)),
        ("kinds", Measure("distinct", day)),
    )
    source = Fold(scan, (("who", patient),), measures)
    keys = [private(Column(name)) for name in ("who", "rows", "ages", "total", "first", "last", "kinds")]
    assert set(ask(count, source=source, keys=keys)) == {
        ("ann", 3, 2, 60, JANUARY, "B", 2),
        ("bob", 1, 1, 50, MAY, None, 1),
        ("cid", 1, 1, 7, MAY, "C", 1),
        (None, 1, 1, 99, JANUARY, "A", 1),
    }


def test_a_fold_of_nulls_is_null_but_for_counts(ask):
    measures = [("n", Measure("count", age)), ("d", Measure("distinct", age))]
    measures += [(function, Measure(function, age)) for function in ("sum", "min", "max")]
    source = Fold(scan, (("ward", ward),), tuple(measures))
    found = ask(
        count, source=source, keys=[private(Column(name)) for name, _ in measures], where=is_null(Column("sum"))
    )
    # only B has no age at all
    assert found == {(0, 0, None, None, None): (1,)}


def test_a_sum_inside_a_fold_has_64_bits(ask):
    large = Case(((urgent, Literal(2**62)),), Literal(-(2**62)))
    source = Fold(
        scan, (("c", Literal(1)),), (("most", Measure("sum", Literal(2**62))), ("some", Measure("sum", large)))
    )
    # 6 * 2^62 is beyond; three are urgent and three are not
    found = ask(count, source=source, keys=[private(Column("most")), private(Column("some"))])
    assert found == {(2**63 - 1, 0): (1,)}
    least = Fold(scan, (("c", Literal(1)),), (("least", Measure("sum", Literal(-(2**62)))),))
    assert ask(count, source=least, keys=[private(Column("least"))]) == {(-(2**63),): (1,)}


def test_a_fold_of_no_rows_has_none(ask):
    for keys in ((), (("who", patient),)):
        assert ask(count, source=Fold(nothing, keys, (("n", count),))) == {(): (0,)}
    assert ask(count, Measure("sum", Column("n")), source=Fold(scan, (), (("n", count),))) == {(): (1, 6)}


def test_a_fold_without_measures_has_the_keys_once(ask):
    assert ask(count, source=Fold(scan, (("a", ward), ("b", age)), ())) == {(): (5,)}


def test_visits_of_each_patient(ask):
    # ann has 3, bob and cid have 1
    source = Fold(scan, (("who", patient),), (("n", count),))
    assert ask(Measure("histogram", Column("n")), source=source, unit="who", keep=(1, 1)) == {(): ({1: 2, 3: 1},)}


def test_a_stack_has_the_rows_of_all_parts(ask):
    urgents = Select(scan, (("p", patient), ("x", age)), urgent)
    all_of_them = Select(scan, (("p", patient), ("x", Literal(1000))))
    none = Select(nothing, (("p", patient), ("x", Literal(None))))
    source = Stack((urgents, all_of_them, none))
    # 30 + 50 + 99 and 6 times 1000
    assert ask(count, Measure("sum", Column("x")), source=source) == {(): (9, 6179)}
    assert ask(count, Measure("units", None), source=source, unit="p", keep=(1, 9)) == {(): (7, 3)}


def test_nodes_inside_nodes(ask):
    folded = Fold(scan, (("who", patient), ("where", ward)), (("n", count), ("oldest", Measure("max", age))))
    joined = Match(folded, wards, ((Column("where"), Column("w0")),), outer=True)
    chosen = Select(joined, (("who", Column("who")), ("floor", Column("w1")), ("n", Column("n"))))
    source = Stack((chosen, Select(chosen, (("who", Column("who")), ("floor", Literal(0)), ("n", Column("n"))))))
    # ann: A 2 rows on floor 1 and B 1 on floor 2; cid: C and bob: no ward, on no floor
    found = ask(count, Measure("sum", Column("n")), source=source, keys=[private(Column("floor"))], unit="who")
    assert found == {(1,): (1, 2), (2,): (1, 1), (None,): (2, 2), (0,): (4, 5)}


def test_unique_is_about_values_and_null_is_none(every_engine_over):
    columns = {"once": "int", "twice": "text", "absent": "date"}
    rows = [(1, "a", None), (None, "b", None), (2, "a", None), (None, None, None)]
    table = (columns, [dict(zip(columns, row, strict=True)) for row in rows])
    engine = every_engine_over({"t": table, "none": (columns, [])})
    assert [engine.is_unique("t", column) for column in columns] == [True, False, True]
    assert all(engine.is_unique("none", column) for column in columns)
