"""What is kept of a unit: at most so much, fairly chosen, whatever the other units hold and wherever rows lie."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.support.counts import FULL, some

from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.nodes import Aggregation, ColumnReference, ExactStatistic, GroupKey, Literal, Scan

pytestmark = pytest.mark.slow

COLUMNS = {"who": "text", "key": "text", "flag": "int", "tag": "int"}
UNITS = ("u", "v", "w", "v\x1fa")
KEYS = (None, "", "a", "b", "-", "c\x1fd", "é")

examples = settings(
    max_examples=20 if FULL else 5,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
rows = st.lists(
    st.tuples(st.sampled_from([None, "u", *UNITS]), st.sampled_from(KEYS), st.integers(0, 1)),
    max_size=40,
)
pairs = st.tuples(st.integers(1, 4), st.integers(1, 4))
bounds = pairs | st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 7))  # the last is of all rows


def numbered(some: list[tuple[Any, Any, int]]) -> list[dict[str, Any]]:
    """Rows with a tag of their own, by which a row that is kept is known."""
    return [{"who": who, "key": key, "flag": flag, "tag": tag} for tag, (who, key, flag) in enumerate(some)]


def over(
    measures: tuple[ExactStatistic, ...],
    keep: tuple[int, ...],
    table: str = "t",
    salt: str = "salt",
    values: tuple[str, ...] | None = None,
) -> Aggregation:
    source = Scan(table, tuple((name, name) for name in COLUMNS))
    return Aggregation(
        source, None, "who", (GroupKey(ColumnReference("key"), values),), ContributionBounds(*keep), measures, salt
    )


def histogram(argument: str, keep: tuple[int, ...], table: str = "t", salt: str = "salt") -> Aggregation:
    """Which values are kept in each group."""
    return over((ExactStatistic("histogram", ColumnReference(argument)),), keep, table, salt)


def tables(**some: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: (COLUMNS, rows) for name, rows in some.items()}


def kept(
    engine, rows: list[dict[str, Any]], keep: tuple[int, ...], table: str = "t"
) -> dict[Any, dict[Any, list[int]]]:
    """For each unit and group, the tags of the rows that are kept."""
    owners = {row["tag"]: row["who"] for row in rows}
    found: dict[Any, dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (key,), (tags,) in engine.run(histogram("tag", keep, table)).items():
        for tag, times in tags.items():
            assert times == 1
            found[owners[tag]][key].append(tag)
    return {who: {key: sorted(tags) for key, tags in groups.items()} for who, groups in found.items()}


@examples
@given(some=rows, keep=pairs)
def test_as_many_groups_and_rows_as_may_be_kept_are_kept(engine_over, some, keep):
    table = numbered(some)
    own: dict[Any, Counter[Any]] = defaultdict(Counter)
    for row in table:
        if row["who"] is not None:
            own[row["who"]][row["key"]] += 1
    found = kept(engine_over(tables(t=table)), table, keep)
    assert set(found) == set(own)  # nobody is lost, and rows of nobody are
    for who, groups in found.items():
        assert len(groups) == min(keep[0], len(own[who]))
        for key, tags in groups.items():
            assert len(tags) == min(keep[1], own[who][key])
            assert all(table[tag]["who"] == who and table[tag]["key"] == key for tag in tags)


@examples
@given(some=rows, keep=bounds)
def test_of_all_rows_of_a_unit_no_more_are_kept_than_may_be(engine_over, some, keep):
    table = numbered(some)
    own = Counter(row["who"] for row in table if row["who"] is not None)
    groups, rows_of_group, total = (*keep, keep[0] * keep[1])[:3]
    engine = engine_over(tables(t=table))
    found = kept(engine, table, keep)
    assert set(found) == set(own)
    for of_unit in found.values():
        assert len(of_unit) <= groups
        assert all(len(tags) <= rows_of_group for tags in of_unit.values())
        assert sum(map(len, of_unit.values())) <= total
    # Where no other cap bites, just so many are kept, whatever their groups.
    for who, of_unit in kept(engine, table, (total, total, total)).items():
        assert sum(map(len, of_unit.values())) == min(total, own[who])


@examples
@given(some=rows, others=rows, keep=bounds, shuffle=st.randoms(use_true_random=False))
def test_the_choice_for_a_unit_depends_on_its_own_rows_only(engine_over, some, others, keep, shuffle):
    """The theorem behind bounding: rows of others come, go and change places, and what is kept of a unit stays."""
    table = numbered(some)
    changed = {}
    for who in UNITS:
        strangers = [row | {"tag": 1000 + row["tag"]} for row in numbered(others) if row["who"] != who]
        changed[who] = [row for row in table if row["who"] == who] + strangers
        shuffle.shuffle(changed[who])
    engine = engine_over(tables(t=table, **changed))
    before = kept(engine, table, keep)
    for who in UNITS:
        assert kept(engine, changed[who], keep, who).get(who) == before.get(who)


@examples
@given(some=rows, keep=bounds, shuffle=st.randoms(use_true_random=False))
def test_rows_that_are_alike_may_change_places(engine_over, some, keep, shuffle):
    # Flags are 0 or 1, so that most rows tie: which of them is kept cannot be seen.
    table = numbered(some)
    moved = list(table)
    shuffle.shuffle(moved)
    engine = engine_over(tables(t=table, moved=moved))
    assert dict(engine.run(histogram("flag", keep))) == dict(engine.run(histogram("flag", keep, "moved")))


@examples
@given(some=rows, keep=bounds)
def test_taking_a_unit_away_takes_away_what_was_kept_of_it(engine_over, some, keep):
    table = numbered(some)
    engine = engine_over(tables(t=table, **{who: [row for row in table if row["who"] != who] for who in UNITS}))
    whole = dict(engine.run(histogram("flag", keep)))
    for who in UNITS:
        rest = dict(engine.run(histogram("flag", keep, who)))
        lost = {key: Counter(flags) - Counter(rest.get(key, ({},))[0]) for key, (flags,) in whole.items()}
        gained = [key for key, (flags,) in rest.items() if Counter(flags) - Counter(whole[key][0])]
        assert not gained
        assert sum(1 for flags in lost.values() if flags) <= keep[0]
        assert all(flags.total() <= keep[1] for flags in lost.values())
        assert sum(flags.total() for flags in lost.values()) <= keep[-1] or len(keep) == 2


@examples
@given(some=rows, keep=bounds)
def test_all_measures_are_of_the_same_rows(engine_over, some, keep):
    measures = (
        ExactStatistic("histogram", ColumnReference("tag")),
        ExactStatistic("histogram", ColumnReference("flag")),
        ExactStatistic("sum", ColumnReference("tag")),
        ExactStatistic("sum", ColumnReference("flag")),
        ExactStatistic("count", None),
        ExactStatistic("distinct", ColumnReference("tag")),
        ExactStatistic("units", None),
    )
    found = engine_over(tables(t=numbered(some))).run(over(measures, keep))
    for tags, flags, total, flagged, count, distinct, units in found.values():
        assert total == sum(tags)
        assert flagged == flags.get(1, 0) == sum(some[tag][2] for tag in tags)
        assert count == distinct == len(tags) == sum(flags.values())
        assert units == len({some[tag][0] for tag in tags})


@examples
@given(some=rows, keep=bounds, values=st.sampled_from([None, ("a", "b"), ("", "-", "é", "c\x1fd")]))
def test_counting_without_a_choice_counts_what_a_choice_keeps(engine_over, some, keep, values):
    engine = engine_over(tables(t=numbered(some)))
    counts = (ExactStatistic("count", None), ExactStatistic("units", None))
    chosen = engine.run(over((*counts, ExactStatistic("sum", Literal(1))), keep, values=values))
    assert dict(engine.run(over(counts, keep, values=values))) == {key: cells[:2] for key, cells in chosen.items()}


def units_of(sizes: dict[str, int], units: int) -> list[dict[str, Any]]:
    """Units that all hold the same: so many rows under each key, of which only the first has the flag."""
    shapes = [(key, int(place == 0)) for key, size in sizes.items() for place in range(size)]
    return numbered([(f"unit {unit}", key, flag) for unit in range(units) for key, flag in shapes])


def far(count: int, trials: int, chance: float) -> bool:
    """Whether a count is beyond what a fair choice gives once in 10^9 times."""
    return not binom.ppf(5e-10, trials, chance) <= count <= binom.isf(5e-10, trials, chance)


@pytest.mark.parametrize(("size", "most"), some([(10, 1), (10, 3), (4, 3), (7, 2)], 2))
def test_every_row_of_a_unit_has_the_same_chance(size, most, engine_over):
    # One row in `size` has the flag, so it is kept for r/n of the units. A choice among values rather than rows would
    # keep it for every second unit when r = 1: 1000 of 2000, where 200 are expected and 290 would be far.
    engine = engine_over(tables(t=units_of({"a": size}, 2000)))
    ((flags,),) = engine.run(histogram("flag", (1, most))).values()
    assert flags[0] + flags[1] == 2000 * most
    assert not far(flags[1], 2000, most / size)
    assert far(1000, 2000, 1 / 10) and far(290, 2000, 1 / 10)


def test_every_group_of_a_unit_has_the_same_chance(engine_over):
    # However many rows it has: 2 groups of 5 are kept.
    engine = engine_over(tables(t=units_of({"a": 1, "b": 9, "c": 1, "d": 2, "-": 1}, 2000)))
    found = engine.run(histogram("tag", (2, 1)))
    counts = [len(tags) for (tags,) in found.values()]
    assert sum(counts) == 4000
    assert not any(far(count, 2000, 2 / 5) for count in counts)
    assert far(2000, 2000, 2 / 5) and far(2000 * 9 // 14, 2000, 2 / 5)


def test_with_a_cap_on_all_rows_every_row_of_a_unit_has_the_same_chance(engine_over):
    # 3 of 12 rows, whatever their groups: one in four of each group's. Groups chosen first would keep "a", with 1 row
    # of the 12, for all of 2000 units, or for one in three of them.
    sizes = {"a": 1, "b": 8, "-": 3}
    engine = engine_over(tables(t=units_of(sizes, 2000)))
    found = engine.run(histogram("flag", (3, 3, 3)))
    counts = {key: flags for (key,), (flags,) in found.items()}
    assert sum(sum(flags.values()) for flags in counts.values()) == 6000
    # the first row of each group, which has the flag
    assert not any(far(flags[1], 2000, 3 / 12) for flags in counts.values())
    assert far(2000, 2000, 3 / 12) and far(2000 // 3, 2000, 3 / 12)
    # evenly spaced: of the 8 rows of "b" every unit keeps 8/4
    assert sum(counts["b"].values()) == 4000


def test_with_a_cap_on_all_rows_they_are_kept_evenly_over_groups_and_values(engine_over):
    # Of 60 rows under "a" and 40 under "b", tagged in this order, every tenth is kept: 6 and 4, whatever the salt.
    engine = engine_over(tables(t=numbered([("u", "a", 0)] * 60 + [("u", "b", 0)] * 40)))
    for number in range(5):
        found = engine.run(histogram("tag", (10, 10, 10), salt=str(number)))
        tags = sorted(tag for (some,) in found.values() for tag in some)
        assert tags == list(range(tags[0], 100, 10))
        assert {key: len(some) for (key,), (some,) in found.items()} == {"a": 6, "b": 4}


def test_rows_are_kept_evenly_over_their_values(engine_over):
    # Of the tags 0 to 99 of one unit every tenth is kept, whatever the salt: an offset from 0 to 9.
    engine = engine_over(tables(t=numbered([("u", "a", 0)] * 100)))
    offsets = set()
    for number in range(60):
        ((tags,),) = engine.run(histogram("tag", (1, 10), salt=str(number))).values()
        first = min(tags)
        assert sorted(tags) == list(range(first, 100, 10))
        offsets.add(first)
    # 60 draws of 10 offsets miss a given one with chance 0.9^60 = 0.002, fixed by the salts
    assert offsets == set(range(10))


def test_another_salt_chooses_others(engine_over):
    engine = engine_over(tables(t=units_of({"a": 6, "b": 6, "c": 6}, 50)))
    first, second, again = (dict(engine.run(histogram("tag", (1, 1), salt=salt))) for salt in ("x", "y", "x"))
    assert first == again != second


def test_no_more_rows_than_there_are_however_much_may_be_kept(engine_over):
    engine = engine_over(tables(t=units_of({"a": 3, "b": 2}, 4)))
    assert dict(engine.run(histogram("flag", (2**62, 2**62)))) == {("a",): ({0: 8, 1: 4},), ("b",): ({0: 4, 1: 4},)}


@pytest.mark.parametrize(
    ("kind", "size"), [("duckdb", 150_000 if FULL else 125_000), ("postgres", 15_000 if FULL else 5_000)]
)
def test_order_does_not_matter_in_a_table_of_many_parts(kind, size, opened):
    # Rows are read by several threads or processes, in parts of 122,880 rows at most, in whatever order.
    rng = random.Random(5)
    table = numbered([(f"u{rng.randrange(size // 16)}", rng.choice(KEYS), rng.randrange(2)) for _ in range(size)])
    moved = list(table)
    rng.shuffle(moved)
    measures = (
        ExactStatistic("histogram", ColumnReference("flag")),
        ExactStatistic("sum", ColumnReference("flag")),
        ExactStatistic("units", None),
    )
    engine = opened(kind, tables(t=table, moved=moved))
    found = [dict(engine.run(over(measures, (3, 2), name))) for name in ("t", "t", "moved", "moved")]
    engine.close()
    assert all(one == found[0] for one in found)
