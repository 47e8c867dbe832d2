"""Where dialects of SQL differ, and engines must not: one body, run for each of them, with what Python says beside."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction

import pytest
from tests.support.counts import some

from tacit.engines.reference import ReferenceEngine
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregation,
    Call,
    Case,
    Clamp,
    ColumnReference,
    EquiJoin,
    ExactStatistic,
    GroupKey,
    Literal,
    PerUnitAggregation,
    Projection,
    Quantize,
    RowUnion,
    Scan,
    ToFloat,
)

pytestmark = pytest.mark.slow

COLUMNS = {"n": "int", "i": "int", "x": "float", "s": "text", "d": "date", "b": "bool"}
NEW_YEAR = datetime.date(2024, 12, 30)  # a Monday, in the first ISO week of 2025
ROWS = [
    (1, 7, 0.5, "B", NEW_YEAR, True),
    (2, -7, -0.5, "a", datetime.date(2025, 1, 5), False),
    (3, 2**63 - 1, math.nan, "A", datetime.date(1, 1, 1), None),
    (4, -(2**63), math.inf, "", datetime.date(9999, 12, 31), True),
    (5, None, -math.inf, None, None, False),
    (6, 0, None, "ä", datetime.date(1582, 10, 10), None),
    (7, 2**53 + 1, -0.0, "a ", datetime.date(1900, 2, 28), True),
    (8, 3, 1e300, "a\\'\n\"`${x}", datetime.date(2024, 2, 29), False),
    (9, -1, 2.5, "日本🦆", datetime.date(2000, 1, 1), None),
]
TABLE = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
TABLES = {"t": (COLUMNS, TABLE)}
SCAN = Scan("t", tuple((name, name) for name in COLUMNS))
n, i, x, s, d, b = map(ColumnReference, COLUMNS)
COUNT = ExactStatistic("count", None)


@pytest.fixture
def values(every_engine_over):
    """The values of scalars on each row, by its number; those of floats as the truth of comparisons."""
    engine, reference = every_engine_over(TABLES), ReferenceEngine({"t": TABLE})

    def compute(*scalars, source=SCAN):
        keys = tuple(GroupKey(scalar, None) for scalar in (ColumnReference("n"), *scalars))
        node = Aggregation(source, None, None, keys, ContributionBounds(1, 1), (COUNT,))
        found = engine.run(node)
        assert dict(found) == dict(reference.run(node))
        by_row = {key[0]: key[1:] for key in found}
        return [by_row[number] for number, *_ in ROWS if number in by_row]

    return compute


def call(function, *arguments):
    return Call(function, arguments)


def small(scalar):
    return Clamp(scalar, Fraction(-9), Fraction(9), whole=True)


def equal(one, other):
    return call(Function.EQUAL, one, other)


def test_a_quotient_of_integers_is_a_float(values):
    half = call(Function.DIVIDE, ToFloat(small(i)), Literal(Fraction(2)))
    # 7 / 2 is 3.5 and -7 / 2 is -3.5, not 3 or -4
    assert values(equal(half, Literal(Fraction(7, 2))), equal(half, Literal(Fraction(-7, 2))))[:2] == [
        (True, False),
        (False, True),
    ]


def test_a_division_by_zero_is_null(values):
    found = values(
        call(Function.IS_NULL, call(Function.DIVIDE, Literal(Fraction(1)), ToFloat(small(i)))),
        call(Function.MOD, small(i), call(Function.ABS, small(call(Function.SUBTRACT, small(i), Literal(7))))),
    )
    assert found[0] == (False, None)  # 7 - 7 is 0
    assert found[5][0] is True


def test_remainders_have_the_sign_of_the_dividend_at_the_ends_too(values):
    found = values(call(Function.MOD, i, Literal(5)), call(Function.MOD, i, call(Function.ABS, Literal(-1))))
    # 2^63 - 1 = 5 * 1844674407370955161 + 2
    assert [part for part, _ in found[:4]] == [2, -2, 2, -3]
    assert {part for _, part in found} == {0, None}


def test_halves_are_rounded_up_on_a_grid(values):
    # 0.5, -0.5 and 2.5 on whole numbers: 1, 0 and 3, not 0, -0 and 2; infinities are at the ends, NaN is NULL
    found = [value for (value,) in values(Quantize(x, Fraction(1), -5, 5))]
    assert found == [1, 0, None, 5, -5, None, 0, 5, 3]


def test_floor_and_ceil_stay_floats(values):
    bounded = Clamp(x, Fraction(-(10**200)), Fraction(10**200), whole=False)
    found = values(
        equal(call(Function.FLOOR, bounded), Literal(Fraction(-1))),
        equal(call(Function.CEIL, bounded), Literal(Fraction(3))),
        call(Function.GREATER, call(Function.FLOOR, bounded), Literal(Fraction(10**199))),
    )
    assert found[1] == (True, False, False)
    assert found[8] == (False, True, False)
    assert found[7] == (False, False, True)  # beyond 64 bits


def test_nan_is_equal_to_itself_and_above_all(values):
    found = values(
        equal(x, x),
        call(Function.GREATER, x, Literal(Fraction(10**200))),
        call(Function.IN, x, Literal(Fraction(5, 2)), Literal(Fraction(0))),
        call(Function.IS_NULL, Clamp(x, None, None, whole=False)),
    )
    assert found[2] == (True, True, False, True)
    assert found[3] == (True, True, False, False)
    assert found[5] == (None, None, None, True)
    assert found[6] == (True, False, True, False)  # -0.0 = 0.0


def test_least_and_greatest_skip_nulls(values):
    assert values(call(Function.LEAST, i, Literal(3)), call(Function.GREATEST, i, Literal(3)))[4] == (3, 3)
    three = Literal(Fraction(3))
    found = values(*(equal(call(f, x, three), three) for f in (Function.LEAST, Function.GREATEST)))
    assert found[2] == (True, False)  # NaN is above all
    assert found[5] == (True, True)


def test_three_valued_logic(values):
    true, false = Literal(True), Literal(False)
    parts = [call(f, b, constant) for f in (Function.AND, Function.OR) for constant in (true, false)]
    found = values(*parts, call(Function.NOT, b))
    assert found[0] == (True, False, True, True, False)
    assert found[2] == (None, False, True, None, None)


def test_texts_are_compared_letter_by_letter(values):
    found = values(equal(s, Literal("a")), equal(s, Literal("a ")), equal(s, Literal("")), call(Function.IS_NULL, s))
    assert [row[0] for row in found] == [False, True, False, False, None, False, False, False, False]
    assert found[6] == (False, True, False, False)
    assert found[3] == (False, False, True, False)  # the empty text is not NULL


def test_texts_are_ordered_by_their_letters_numbers(values):
    # "A" < "B" < "a" < "ä", whatever the language
    fold = PerUnitAggregation(
        SCAN, (("n", Literal(1)),), (("least", ExactStatistic("min", s)), ("most", ExactStatistic("max", s)))
    )
    letters = PerUnitAggregation(
        Projection(SCAN, (("s", s),), call(Function.IN, s, Literal("a"), Literal("B"), Literal("A"))),
        (("n", Literal(1)),),
        (("least", ExactStatistic("min", ColumnReference("s"))), ("most", ExactStatistic("max", ColumnReference("s")))),
    )
    assert values(ColumnReference("least"), ColumnReference("most"), source=fold) == [("", "日本🦆")]
    assert values(ColumnReference("least"), ColumnReference("most"), source=letters) == [("A", "a")]


def test_any_text_is_quoted_and_measured_in_characters(values):
    odd = ROWS[7][3]
    found = values(
        equal(s, Literal(odd)),
        call(Function.LENGTH, s),
        call(Function.SUBSTRING, s, Literal(2), Literal(2)),
        call(Function.CONCAT, s, Literal("'\\${y}")),
        call(Function.TRIM, s),
        call(Function.UPPER, s),
    )
    assert found[7] == (True, len(odd), "\\'", odd + "'\\${y}", odd, odd.upper())
    assert found[8][1:3] == (3, "本🦆")
    assert found[4] == (None,) * 6
    assert found[5][5] == "Ä"
    assert found[6][4] == "a"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a_", [7]),
        ("%\n%", [8]),
        ("%${x}", [8]),
        ("_本_", [9]),
        ("%'_\"%", [8]),
        ("_", [1, 2, 3, 6]),
        ("%", [*range(1, 10)]),
    ],
)
def test_patterns_match_whole_texts_and_any_character(pattern, expected, values):
    found = values(call(Function.LIKE, s, Literal(pattern)))
    assert [row[0] for row, (like,) in zip(ROWS, found, strict=True) if like] == [n for n in expected if n != 5]


def test_dates_have_no_time_zone(values):
    parts = [
        call(part, d) for part in (Function.YEAR, Function.QUARTER, Function.MONTH, Function.DAY, Function.WEEKDAY)
    ]
    starts = [call(Function.DATE_TRUNC, Literal(unit), d) for unit in ("year", "quarter", "month", "week")]
    found = values(*parts, *starts, call(Function.DAYS, d, Literal(NEW_YEAR)))
    assert found[0] == (
        *(2024, 4, 12, 30, 1),
        *(datetime.date(2024, 1, 1), datetime.date(2024, 10, 1), datetime.date(2024, 12, 1), NEW_YEAR),
        0,
    )
    assert found[1][4:] == (
        7,
        datetime.date(2025, 1, 1),
        datetime.date(2025, 1, 1),
        datetime.date(2025, 1, 1),
        NEW_YEAR,
        6,
    )
    assert found[2][:5] == (1, 1, 1, 1, 1)  # in the calendar that goes on backward
    assert found[5][4] == datetime.date(1582, 10, 10).isoweekday()
    assert found[3][-1] == (datetime.date.max - NEW_YEAR).days


def test_functions_at_the_ends_of_floats(values):
    wide = Clamp(x, Fraction(-(10**90)), Fraction(10**90), whole=False)
    capped = call(Function.LEAST, wide, Literal(Fraction(400)))
    zero = Literal(Fraction(0))
    found = values(
        equal(call(Function.EXP, capped), zero),
        call(Function.IS_NULL, call(Function.SQRT, wide)),
        call(Function.IS_NULL, call(Function.LN, wide)),
        equal(call(Function.POWER, wide, zero), Literal(Fraction(1))),
        call(Function.SIGN, wide),
    )
    assert found[4] == (True, True, True, True, -1)  # -infinity is read as -1e90
    assert found[6] == (False, False, True, True, 0)
    assert found[0] == (False, False, False, True, 1)


def test_integers_beyond_the_floats_are_exact(values):
    large = Clamp(i, Fraction(-(2**62)), Fraction(2**62), whole=True)
    found = values(
        call(Function.ADD, large, Literal(1)),
        call(Function.NEGATE, large),
        call(Function.ABS, large),
        call(Function.SIGN, i),
    )
    assert found[6] == (2**53 + 2, -(2**53) - 1, 2**53 + 1, 1)
    assert found[3] == (-(2**62) + 1, 2**62, 2**62, -1)


def test_sums_beyond_64_bits(every_engine_over):
    engine = every_engine_over({"t": (COLUMNS, TABLE * 5)})
    most = ExactStatistic("sum", Literal(2**63 - 1))
    node = Aggregation(SCAN, None, None, (), ContributionBounds(1, 1), (most, ExactStatistic("sum", i)))
    assert engine.run(node) == {(): (45 * (2**63 - 1), 5 * sum(row[1] or 0 for row in ROWS))}


def test_null_is_a_key_and_comes_last_among_rows(every_engine_over):
    # One unit, 9 rows in the order of their arguments: which are kept depends on where NULL stands.
    engine, reference = every_engine_over(TABLES), ReferenceEngine({"t": TABLE})
    source = Projection(SCAN, (("who", Literal("u")), ("i", i), ("n", n), ("b", b)))
    for salt in some("abc", 3):
        for keys in ((), (GroupKey(ColumnReference("b"), None),)):
            measures = (ExactStatistic("histogram", ColumnReference("i")), ExactStatistic("sum", ColumnReference("n")))
            node = Aggregation(source, None, "who", keys, ContributionBounds(2, 2), measures, salt)
            assert dict(engine.run(node)) == dict(reference.run(node))


def test_null_and_no_branch_go_with_any_type(values):
    nothing = Literal(None)
    source = RowUnion(
        (
            Projection(SCAN, (("n", n), ("v", Case(((b, i),), nothing)), ("w", Case(((b, d),), nothing)))),
            Projection(SCAN, (("n", call(Function.ADD, small(n), Literal(9))), ("v", Literal(3)), ("w", nothing))),
        )
    )
    found = values(ColumnReference("v"), ColumnReference("w"), source=source)
    assert found[:2] == [(7, NEW_YEAR), (None, None)]


def test_a_match_compares_what_it_computes(values):
    other = Scan("t", (("n", "m"), ("s", "r")))
    source = EquiJoin(SCAN, other, ((call(Function.LOWER, s), ColumnReference("r")),), outer=True)
    # only "A" and "a" become "a"
    assert [row[0] for row in values(ColumnReference("m"), source=source)][:3] == [None, 2, 2]
