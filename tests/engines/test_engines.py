"""What every engine says, fact by fact: one body, run for each of them and for the reference."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest
from tests.engines.conftest import rarely_on_spark
from tests.support.counts import some

from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregation,
    Call,
    Case,
    Clamp,
    ColumnReference,
    Constants,
    EquiJoin,
    ExactStatistic,
    GroupKey,
    Literal,
    PerUnitAggregation,
    Projection,
    Quantize,
    RowUnion,
    Scan,
)
from tacit.query.types import Type

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
patient, ward, age, cost, day, urgent = (ColumnReference(f"c{i}") for i in range(6))

count = ExactStatistic("count", None)


@pytest.fixture
def ask(every_engine_over):
    """The groups over the tables above."""
    engine = every_engine_over(TABLES)

    def run(*measures, source=scan, keys=(), unit=None, keep=(9, 9), where=None, salt=""):
        node = Aggregation(source, where, unit, tuple(keys), ContributionBounds(*keep), measures, salt)
        return dict(engine.run(node))

    return run


def public(scalar, *values):
    return GroupKey(scalar, values)


def private(scalar):
    return GroupKey(scalar, None)


def is_null(scalar):
    return Call(Function.IS_NULL, (scalar,))


def test_rows_and_values_are_counted(ask):
    assert ask(count, ExactStatistic("count", age), ExactStatistic("count", day)) == {(): (6, 5, 5)}


def test_sums_skip_nulls_and_are_zero_of_nothing(ask):
    # 30 + 30 + 50 + 7 + 99
    assert ask(ExactStatistic("sum", age)) == {(): (216,)}
    assert ask(ExactStatistic("sum", age), where=Call(Function.EQUAL, (ward, Literal("B")))) == {(): (0,)}


@rarely_on_spark
def test_a_sum_may_be_wider_than_64_bits(ask):
    # 6 rows of 2^62
    assert ask(ExactStatistic("sum", Literal(2**62))) == {(): (6 * 2**62,)}


@rarely_on_spark
def test_nan_and_infinities_on_a_grid(ask):
    # 1.5, 2.5, 4.0 and infinity, which is read as 5, in steps of 1/2: 3 + 5 + 8 + 10
    argument = Quantize(Clamp(cost, Fraction(0), Fraction(5), whole=False), Fraction(1, 2), 0, 10)
    assert ask(ExactStatistic("sum", argument), ExactStatistic("count", argument)) == {(): (26, 4)}


@rarely_on_spark
def test_distinct_values_and_units(ask):
    assert ask(ExactStatistic("distinct", age), ExactStatistic("distinct", ward)) == {(): (4, 3)}
    assert ask(ExactStatistic("units", None), count, unit="c0") == {(): (3, 5)}


def test_distinct_values_are_added_up_once_each(ask):
    # 30 twice, 50, 7, 99 and NULL: 30 + 50 + 7 + 99
    assert ask(ExactStatistic("distinct_sum", age), ExactStatistic("sum", age)) == {(): (186, 216)}
    assert ask(ExactStatistic("distinct_sum", age), unit="c0", keep=(1, 9))[()][0] <= 186
    assert ask(ExactStatistic("distinct_sum", age), where=Literal(False)) == {(): (0,)}
    assert ask(ExactStatistic("distinct_sum", Literal(2**62))) == {(): (2**62,)}


@rarely_on_spark
def test_where_each_row_is_a_unit_rows_are_units(ask):
    assert ask(ExactStatistic("units", None)) == {(): (6,)}


@rarely_on_spark
def test_without_keys_there_is_one_group_even_of_no_rows(ask):
    measures = [
        count,
        *(ExactStatistic(f, age) for f in ("count", "sum", "distinct", "histogram")),
        ExactStatistic("units", None),
    ]
    assert ask(*measures, source=nothing) == {(): (0, 0, 0, 0, {}, 0)}
    assert ask(*measures, source=nothing, unit="c0") == {(): (0, 0, 0, 0, {}, 0)}
    assert ask(count, source=nothing, unit="c0") == {(): (0,)}
    assert ask(ExactStatistic("histogram", age), source=nothing) == {(): ({},)}
    assert ask(source=nothing) == {(): ()}
    assert ask(count, where=Literal(False)) == {(): (0,)}


@rarely_on_spark
def test_with_keys_groups_without_rows_are_left_out(ask):
    assert ask(count, source=nothing, keys=[public(ward, "A", "B")]) == {}
    assert ask(count, source=nothing, keys=[private(ward)], unit="c0") == {}
    assert ask(count, ExactStatistic("histogram", age), source=nothing, keys=[private(ward)]) == {}


@rarely_on_spark
def test_public_keys_leave_all_others_out(ask):
    assert ask(count, keys=[public(ward, "A", "C", "Z")]) == {("A",): (3,), ("C",): (1,)}
    assert ask(count, keys=[public(ward)]) == {}


@rarely_on_spark
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
    found = ask(count, ExactStatistic("sum", age), keys=keys)
    assert found == expected
    assert {tuple(map(type, key)) for key in found} == {(datetime.date, bool, str), (type(None), type(None), str)}


@rarely_on_spark
def test_a_key_may_be_computed(ask):
    older = Call(Function.GREATER_EQUAL, (age, Literal(30)))
    assert ask(count, keys=[private(older)]) == {(True,): (4,), (False,): (1,), (None,): (1,)}
    assert ask(count, keys=[private(Literal("all"))]) == {("all",): (6,)}


@rarely_on_spark
def test_a_computed_key_that_is_null_is_no_public_one(ask):
    # Statistics say that the key is always "yes", which is so where it is not NULL.
    answer = Case(((urgent, Literal("yes")),), Literal(None))
    assert ask(count, keys=[public(answer, "yes", "no")]) == {("yes",): (3,)}
    assert ask(count, where=Call(Function.IN, (answer, Literal("yes"), Literal("no")))) == {(): (3,)}


def test_histograms_of_integers_dates_texts_and_truth(ask):
    found = ask(*(ExactStatistic("histogram", column) for column in (age, day, ward, urgent)))
    assert found == {
        (): (
            {30: 2, 50: 1, 7: 1, 99: 1},
            {JANUARY: 2, MAY: 3},
            {"A": 3, "B": 1, "C": 1},
            {True: 3, False: 2},
        )
    }


@rarely_on_spark
def test_histograms_stand_in_the_order_of_the_measures(ask):
    found = ask(
        count,
        ExactStatistic("histogram", age),
        ExactStatistic("sum", age),
        ExactStatistic("histogram", day),
        keys=[private(ward)],
    )
    # B has rows, but no age and no day
    assert found["A",] == (3, {30: 2, 99: 1}, 159, {JANUARY: 2, MAY: 1})
    assert found["B",] == (1, {}, 0, {})


@rarely_on_spark
def test_a_group_of_nulls_only_has_an_empty_histogram(ask):
    found = ask(ExactStatistic("histogram", age), keys=[private(ward)], unit="c0")
    assert found == {("A",): ({30: 2},), ("B",): ({},), (None,): ({50: 1},), ("C",): ({7: 1},)}


@rarely_on_spark
def test_rows_without_a_unit_are_dropped(ask):
    assert ask(count, ExactStatistic("sum", age), unit="c0") == {(): (5, 117)}
    assert ask(count, unit="c0") == {(): (5,)}
    assert ask(ExactStatistic("histogram", age), unit="c0") == {(): ({30: 2, 50: 1, 7: 1},)}


@rarely_on_spark
def test_a_condition_that_is_null_is_not_true(ask):
    assert ask(count, where=urgent) == {(): (3,)}
    assert ask(count, where=Call(Function.NOT, (urgent,))) == {(): (2,)}
    assert ask(count, where=is_null(urgent)) == {(): (1,)}


@rarely_on_spark
def test_bounding_keeps_so_many_groups_and_rows(ask):
    # ann has two rows in A and one in B; bob and cid have one row each
    for measures in ([count], [count, ExactStatistic("sum", Literal(1))], [count, ExactStatistic("histogram", age)]):
        both = ask(*measures, keys=[public(ward, "A", "B", "C")], unit="c0", keep=(2, 1))
        assert {key: cells[0] for key, cells in both.items()} == {("A",): 1, ("B",): 1, ("C",): 1}
        one = ask(*measures, keys=[private(ward)], unit="c0", keep=(1, 1))
        assert sum(cells[0] for cells in one.values()) == 3
        assert ask(*measures, unit="c0", keep=(1, 2))[()][0] == 4


def test_counts_alone_choose_the_groups_that_other_measures_choose(ask):
    for salt in some("abcd", 2):
        bounds = {"keys": [private(ward)], "unit": "c0", "keep": (1, 1), "salt": salt}
        alone = ask(count, **bounds)
        assert alone == {key: cells[:1] for key, cells in ask(count, ExactStatistic("sum", age), **bounds).items()}
        assert sum(rows for (rows,) in alone.values()) == 3  # one of ann, of bob and of cid


@rarely_on_spark
def test_select_computes_and_filters(ask):
    older = Call(Function.GREATER, (age, Literal(7)))
    source = Projection(scan, (("x", Call(Function.SUBTRACT, (age, Literal(7)))), ("y", ward)), older)
    # 23 + 23 + 43 + 92
    assert ask(count, ExactStatistic("sum", ColumnReference("x")), source=source) == {(): (4, 181)}
    assert ask(count, source=source, keys=[private(ColumnReference("y"))]) == {("A",): (3,), (None,): (1,)}


def test_select_may_swap_names(ask):
    source = Projection(scan, (("c1", patient), ("c0", ward)), Call(Function.EQUAL, (patient, Literal("ann"))))
    assert ask(count, source=source, keys=[private(ColumnReference("c0"))]) == {("A",): (2,), ("B",): (1,)}


def test_a_match_leaves_out_what_matches_nothing(ask):
    source = EquiJoin(scan, wards, ((ward, ColumnReference("w0")),))
    # NULL matches nothing, though both sides have one
    assert ask(count, source=source, keys=[private(ColumnReference("w1"))]) == {(1,): (3,), (2,): (1,)}


@rarely_on_spark
def test_an_outer_match_keeps_what_matches_nothing(ask):
    source = EquiJoin(scan, wards, ((ward, ColumnReference("w0")),), outer=True)
    found = ask(
        count, ExactStatistic("count", ColumnReference("w0")), source=source, keys=[private(ColumnReference("w1"))]
    )
    assert found == {(1,): (3, 3), (2,): (1, 1), (None,): (2, 0)}


@rarely_on_spark
def test_a_match_with_no_rows(ask):
    for left, right, outer, rows in [(scan, "empty", False, 0), (scan, "empty", True, 6), (nothing, "visits", True, 0)]:
        other = Scan(right, (("ward", "x0"),))
        source = EquiJoin(left, other, ((ward, ColumnReference("x0")),), outer)
        assert ask(count, ExactStatistic("count", ColumnReference("x0")), source=source) == {(): (rows, 0)}


@rarely_on_spark
def test_a_match_has_every_pair_and_may_compare_several_values(ask):
    other = Scan("visits", (("patient", "x0"), ("ward", "x1"), ("age", "x2")))
    on_patient = EquiJoin(scan, other, ((patient, ColumnReference("x0")),))
    # ann 3 x 3, bob and cid 1 x 1
    assert ask(count, source=on_patient, unit="c0", keep=(1, 99)) == {(): (11,)}
    on_both = EquiJoin(scan, other, ((patient, ColumnReference("x0")), (ward, ColumnReference("x1"))))
    # ann in A 2 x 2 and in B 1; cid 1; bob has no ward
    assert ask(count, source=on_both) == {(): (6,)}


@rarely_on_spark
def test_a_match_may_compute_what_it_compares(ask):
    other = Scan("wards", (("floor", "w1"),))
    ten = Call(Function.MULTIPLY, (ColumnReference("w1"), Literal(10)))
    # 30 = 3 * 10, twice
    assert ask(count, source=EquiJoin(scan, other, ((age, ten),))) == {(): (2,)}


def test_a_fold_has_a_row_for_each_combination_of_keys(ask):
    measures = (
        ("rows", count),
        ("ages", ExactStatistic("count", age)),
        ("total", ExactStatistic("sum", age)),
        ("first", ExactStatistic("min", day)),
        ("last", ExactStatistic("max", ward)),
        ("kinds", ExactStatistic("distinct", day)),
    )
    source = PerUnitAggregation(scan, (("who", patient),), measures)
    keys = [private(ColumnReference(name)) for name in ("who", "rows", "ages", "total", "first", "last", "kinds")]
    assert set(ask(count, source=source, keys=keys)) == {
        ("ann", 3, 2, 60, JANUARY, "B", 2),
        ("bob", 1, 1, 50, MAY, None, 1),
        ("cid", 1, 1, 7, MAY, "C", 1),
        (None, 1, 1, 99, JANUARY, "A", 1),
    }


def test_a_fold_of_nulls_is_null_but_for_counts(ask):
    measures = [("n", ExactStatistic("count", age)), ("d", ExactStatistic("distinct", age))]
    measures += [(function, ExactStatistic(function, age)) for function in ("sum", "min", "max")]
    source = PerUnitAggregation(scan, (("ward", ward),), tuple(measures))
    found = ask(
        count,
        source=source,
        keys=[private(ColumnReference(name)) for name, _ in measures],
        where=is_null(ColumnReference("sum")),
    )
    # only B has no age at all
    assert found == {(0, 0, None, None, None): (1,)}


def test_a_sum_inside_a_fold_has_64_bits(ask):
    large = Case(((urgent, Literal(2**62)),), Literal(-(2**62)))
    source = PerUnitAggregation(
        scan,
        (("c", Literal(1)),),
        (("most", ExactStatistic("sum", Literal(2**62))), ("some", ExactStatistic("sum", large))),
    )
    # 6 * 2^62 is beyond; three are urgent and three are not
    found = ask(count, source=source, keys=[private(ColumnReference("most")), private(ColumnReference("some"))])
    assert found == {(2**63 - 1, 0): (1,)}
    least = PerUnitAggregation(scan, (("c", Literal(1)),), (("least", ExactStatistic("sum", Literal(-(2**62)))),))
    assert ask(count, source=least, keys=[private(ColumnReference("least"))]) == {(-(2**63),): (1,)}


def test_a_fold_of_no_rows_has_none(ask):
    for keys in ((), (("who", patient),)):
        assert ask(count, source=PerUnitAggregation(nothing, keys, (("n", count),))) == {(): (0,)}
    assert ask(
        count, ExactStatistic("sum", ColumnReference("n")), source=PerUnitAggregation(scan, (), (("n", count),))
    ) == {(): (1, 6)}


def test_a_fold_without_measures_has_the_keys_once(ask):
    assert ask(count, source=PerUnitAggregation(scan, (("a", ward), ("b", age)), ())) == {(): (5,)}


@rarely_on_spark
def test_visits_of_each_patient(ask):
    # ann has 3, bob and cid have 1
    source = PerUnitAggregation(scan, (("who", patient),), (("n", count),))
    assert ask(ExactStatistic("histogram", ColumnReference("n")), source=source, unit="who", keep=(1, 1)) == {
        (): ({1: 2, 3: 1},)
    }


@rarely_on_spark
def test_a_stack_has_the_rows_of_all_parts(ask):
    urgents = Projection(scan, (("p", patient), ("x", age)), urgent)
    all_of_them = Projection(scan, (("p", patient), ("x", Literal(1000))))
    none = Projection(nothing, (("p", patient), ("x", Literal(None))))
    source = RowUnion((urgents, all_of_them, none))
    # 30 + 50 + 99 and 6 times 1000
    assert ask(count, ExactStatistic("sum", ColumnReference("x")), source=source) == {(): (9, 6179)}
    assert ask(count, ExactStatistic("units", None), source=source, unit="p", keep=(1, 9)) == {(): (7, 3)}


def test_nodes_inside_nodes(ask):
    folded = PerUnitAggregation(
        scan, (("who", patient), ("where", ward)), (("n", count), ("oldest", ExactStatistic("max", age)))
    )
    joined = EquiJoin(folded, wards, ((ColumnReference("where"), ColumnReference("w0")),), outer=True)
    chosen = Projection(
        joined, (("who", ColumnReference("who")), ("floor", ColumnReference("w1")), ("n", ColumnReference("n")))
    )
    source = RowUnion(
        (
            chosen,
            Projection(chosen, (("who", ColumnReference("who")), ("floor", Literal(0)), ("n", ColumnReference("n")))),
        )
    )
    # ann: A 2 rows on floor 1 and B 1 on floor 2; cid: C and bob: no ward, on no floor
    found = ask(
        count,
        ExactStatistic("sum", ColumnReference("n")),
        source=source,
        keys=[private(ColumnReference("floor"))],
        unit="who",
    )
    assert found == {(1,): (1, 2), (2,): (1, 1), (None,): (2, 2), (0,): (4, 5)}


def test_unique_is_about_values_and_null_is_none(every_engine_over):
    columns = {"once": "int", "twice": "text", "absent": "date"}
    rows = [(1, "a", None), (None, "b", None), (2, "a", None), (None, None, None)]
    table = (columns, [dict(zip(columns, row, strict=True)) for row in rows])
    engine = every_engine_over({"t": table, "none": (columns, [])})
    assert [engine.is_unique("t", column) for column in columns] == [True, False, True]
    assert all(engine.is_unique("none", column) for column in some(columns, 3))


CONSTANTS = Constants(
    (("n", Type.INT), ("t", Type.TEXT), ("f", Type.FLOAT), ("d", Type.DATE), ("b", Type.BOOL)),
    ((5, "A", Fraction(1, 2), MAY, True), (None, "it's", None, None, None), (2**40, "B", Fraction(3), JANUARY, False)),
)


def test_public_rows_are_read_and_no_more_than_are_asked_for(every_engine_over):
    engine = every_engine_over(TABLES)
    assert sorted(engine.read(wards, 9), key=str) == [("A", 1), ("B", 2), (None, 3)]
    assert len(engine.read(wards, 2)) == 2
    grouped = PerUnitAggregation(wards, (("k", Literal(1)),), (("s", ExactStatistic("sum", ColumnReference("w1"))),))
    assert engine.read(grouped, 9) == [(1, 6)]


def test_rows_of_constants(ask, every_engine_over):
    engine = every_engine_over(TABLES)
    rows = [(5, "A", 0.5, MAY, True), (None, "it's", None, None, None), (2**40, "B", 3.0, JANUARY, False)]
    assert sorted(engine.read(CONSTANTS, 9), key=str) == sorted(rows, key=str)
    assert engine.read(Constants(CONSTANTS.columns, ()), 9) == []
    one = Projection(Constants((), ((),)), (("x", Literal(7)),))
    assert engine.read(one, 9) == [(7,)]
    joined = EquiJoin(scan, CONSTANTS, ((ward, ColumnReference("t")),))
    assert ask(count, source=joined, keys=[private(ColumnReference("n"))]) == {(5,): (3,), (2**40,): (1,)}
    every = EquiJoin(wards, Constants((("n", Type.INT),), ((1,), (2,))), ())
    assert ask(count, source=every) == {(): (6,)}
