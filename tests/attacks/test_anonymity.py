"""k-anonymity, l-diversity and t-closeness are their definitions; releases told apart by brute force."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.attacks import anonymity
from tacit.attacks.anonymity import measure_anonymity
from tacit.attacks.intersection import intersect_releases
from tacit.errors import ParameterError

rows = st.lists(
    st.fixed_dictionaries(
        {
            "a": st.none() | st.integers(0, 3),
            "b": st.sampled_from("xy"),
            "s": st.sampled_from([1, 4, 9, 10, 30]),
        }
    ),
    min_size=1,
    max_size=30,
)


def group(table, key, sensitive):
    """The sensitive values of each key."""
    found = defaultdict(list)
    for row in table:
        found[tuple(row[name] for name in key)].append(row[sensitive])
    return list(found.values())


def cheapest_transport(p, q, distance):
    """The least work that turns p into q, by the flow of successive shortest paths: no formula of the code is used."""
    have, need, work = dict(enumerate(p)), dict(enumerate(q)), Fraction(0)
    moved = defaultdict(Fraction)  # how much of i lies at j
    for place in range(len(p)):  # what need not move stays, which loses nothing for a metric
        stay = min(have[place], need[place])
        have[place] -= stay
        need[place] -= stay
    while any(have.values()):
        cost, path = cheapest_path(have, need, moved, distance, len(p))
        amount = min([have[path[0][1]], need[path[-1][1]], *(moved[b[1], a[1]] for a, b in pairwise(path) if a[0])])
        for one, two in pairwise(path):
            if one[0] == 0:
                moved[one[1], two[1]] += amount
            else:
                moved[two[1], one[1]] -= amount
        have[path[0][1]] -= amount
        need[path[-1][1]] -= amount
        work += cost * amount
    return work


def cheapest_path(have, need, moved, distance, size):
    """Bellman and Ford: nodes (0, i) are sources and (1, j) sinks; what was moved may be moved back."""
    best = {(0, i): (Fraction(0), [(0, i)]) for i in range(size) if have[i]}
    for _ in range(2 * size):
        for i in range(size):
            for j in range(size):
                steps = [((0, i), (1, j), distance(i, j))]
                if moved[i, j]:
                    steps.append(((1, j), (0, i), -distance(i, j)))
                for one, two, cost in steps:
                    if one in best and (two not in best or best[one][0] + cost < best[two][0]):
                        best[two] = (best[one][0] + cost, [*best[one][1], two])
    return min((best[1, j] for j in range(size) if need[j] and (1, j) in best), key=lambda found: found[0])


def shares(values, domain):
    return [Fraction(values.count(value), len(values)) for value in domain]


@pytest.mark.slow
@given(rows)
def test_it_is_the_definitions(table):
    found = measure_anonymity(table, ["a", "b"], "s")
    groups = group(table, ["a", "b"], "s")
    assert found.groups == len(groups)
    assert found.k == min(map(len, groups))
    assert dict(found.sizes) == dict(Counter(size for size in map(len, groups) for _ in range(size)))
    assert found.distinct == min(len(set(values)) for values in groups)
    assert found.homogeneous == sum(len(values) for values in groups if len(set(values)) == 1)
    tops = [Fraction(max(Counter(values).values()), len(values)) for values in groups]
    assert found.largest_share == max(tops)
    entropies = [-math.fsum(float(p) * math.log(p) for p in shares(values, set(values))) for values in groups]
    assert found.entropy == pytest.approx(math.exp(min(entropies)), rel=1e-12)
    for place in range(1, 5):
        ratios = []
        for values in groups:
            ordered = sorted(Counter(values).values(), reverse=True)
            rest = sum(ordered[place - 1 :])
            ratios.append(Fraction(ordered[0], rest) if rest else math.inf)
        assert found.recursive_ratio(place) == max(ratios)
        assert not found.is_recursive(1, place) or max(ratios) < 1


@pytest.mark.slow
@given(rows)
def test_closeness_is_the_cheapest_transport(table):
    found = measure_anonymity(table, ["a"], "s")
    domain = sorted({row["s"] for row in table})
    whole = shares([row["s"] for row in table], domain)
    widest = max(len(domain) - 1, 1)
    groups = [shares(values, domain) for values in group(table, ["a"], "s")]
    assert found.closeness == max(cheapest_transport(p, whole, lambda i, j: Fraction(i != j)) for p in groups)
    steps = [cheapest_transport(p, whole, lambda i, j: Fraction(abs(i - j), widest)) for p in groups]
    assert found.ordered_closeness == max(steps)


@pytest.mark.slow
@given(rows)
def test_large_tables_are_counted_in_the_same_way(table):
    # beyond 64 bits the sums are Python's integers; here they are from the start
    plain = measure_anonymity(table, ["a", "b"], "s")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anonymity, "_FITS", 0)
        wide = measure_anonymity(table, ["a", "b"], "s")
    assert (plain.closeness, plain.ordered_closeness) == (wide.closeness, wide.ordered_closeness)


def test_the_figures_of_li_li_and_venkatasubramanian():
    # Salaries 3k..11k, one each; the groups {3, 4, 5} and {6, 8, 11}: t is 0.375 and 0.167 (their section 5)
    pay = list(range(3, 12))
    first = {"g": ["x" if value in (3, 4, 5) else "y" for value in pay], "pay": pay}
    assert measure_anonymity(first, ["g"], "pay").ordered_closeness == Fraction(3, 8)
    second = {"g": ["x" if value in (6, 8, 11) else "y" for value in pay], "pay": pay}
    assert measure_anonymity(second, ["g"], "pay").ordered_closeness == Fraction(1, 6)


def test_order_is_given_where_values_have_none():
    # 2 low, 1 mid, 3 high; a group of 2 low, 1 high: cdf differences 1/3 and 1/6 over d - 1 = 2
    table = {"g": [1, 1, 1, 2, 2, 2], "pain": ["low", "high", "low", "mid", "high", "high"]}
    assert measure_anonymity(table, ["g"], "pain").ordered_closeness is None
    found = measure_anonymity(table, ["g"], "pain", order=["low", "mid", "high"])
    assert found.ordered_closeness == Fraction(1, 4)
    # a value that nobody has makes the steps smaller: 1/3 + 1/6 + 1/6 over 3
    wider = measure_anonymity(table, ["g"], "pain", order=["low", "mid", "middle", "high"])
    assert wider.ordered_closeness == Fraction(2, 9)


def test_nulls_are_values_of_their_own():
    found = measure_anonymity({"a": [None, None, 1, 1], "s": [None, 1, None, 1]}, ["a"], "s")
    assert (found.k, found.groups, found.distinct, found.ordered_closeness) == (2, 2, 2, None)


def test_without_a_sensitive_column():
    found = measure_anonymity({"a": [1, 1, 2]}, "a")
    assert (found.k, found.verdict, found.distinct, found.closeness) == (1, "rows are unique", None, None)
    assert "1 rows are alone" in str(found)
    with pytest.raises(ParameterError, match="no sensitive column was measured"):
        found.recursive_ratio(2)


def test_every_kind_of_table_is_read():
    columns = {"age": ["x", "x", "y", "y"], "s": [1, 2, 1, 1]}
    for kind in (pa.table, pd.DataFrame, pl.DataFrame, dict):
        assert measure_anonymity(kind(columns), ["age"], "s").homogeneous == 2
    frame = pd.DataFrame(columns).astype({"age": "category", "s": "category"})
    assert measure_anonymity(frame, ["age"], "s").homogeneous == 2


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((["b"],), "key: the table has no column 'b'"),
        (([],), "key: does not name a column"),
        ((["a"], "b"), "sensitive: the table has no column 'b'"),
        ((["a", "s"], "s"), "sensitive: 's' is in the key"),
    ],
)
def test_mistakes_are_told(arguments, what):
    with pytest.raises(ParameterError, match=what):
        measure_anonymity({"a": [1], "s": ["x"]}, *arguments)


def test_values_that_cannot_be_compared_are_named():
    with pytest.raises(ParameterError, match="key: 'a' has values that cannot be compared: list"):
        measure_anonymity({"a": [[1]], "s": ["x"]}, ["a"], "s")
    with pytest.raises(ParameterError, match="sensitive: 's' has values that cannot be compared: list"):
        measure_anonymity({"a": [1], "s": [["x"]]}, ["a"], "s")
    with pytest.raises(ParameterError, match="order: is no list of values"):
        measure_anonymity({"a": [1], "s": ["x"]}, ["a"], "s", order=[["x"]])
    with pytest.raises(ParameterError, match="people: 'a' does not have one type in all tables: int64, string"):
        intersect_releases([({"a": [1], "s": ["x"]}, ["a"])], {"a": ["1"]}, "s")


@pytest.mark.parametrize(("order", "what"), [(["y"], "lacks the value 'x'"), (["x", "x"], "has a value twice")])
def test_an_order_has_every_value_once(order, what):
    with pytest.raises(ParameterError, match=what):
        measure_anonymity({"a": [1], "s": ["x"]}, ["a"], "s", order=order)


@pytest.mark.slow
def test_what_is_shown(tmp_path):
    found = measure_anonymity({"<b>": ["x"] * 3 + ["y"] * 2, "s": [1, 2, 2, 3, 3]}, ["<b>"], "s")
    assert "k = 2" in str(found)
    assert "2 rows are in groups with one value of s: their key tells it." in str(found)
    assert "&lt;b&gt;" in found._repr_html_()
    assert "<b>" not in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict()))["recursive_c_of_2"] == "infinite"
    found.plot(tmp_path / "groups.svg")
    measure_anonymity({"a": [1, 1]}, ["a"]).plot(tmp_path / "sizes.svg")
    assert all("<svg" in file.read_text(encoding="utf-8") for file in tmp_path.iterdir())


@pytest.mark.slow
@given(rows, rows, rows)
def test_an_intersection_is_its_definition(one, other, known):
    found = intersect_releases([(one, ["a"]), (other, ["b"])], known, "s")
    for place, person in enumerate(known):
        first = {row["s"] for row in one if row["a"] == person["a"]}
        second = {row["s"] for row in other if row["b"] == person["b"]}
        assert found.alone[place].tolist() == [len(first), len(second)]
        assert found.together[place] == len(first & second)
        assert found.values[place] == (min(first & second) if len(first & second) == 1 else None)


@pytest.mark.slow
@given(rows)
def test_who_is_in_all_releases_is_told_rightly(table):
    # the theorem: each row is a person, in both releases with the same value
    found = intersect_releases([(table, ["a"]), (table, ["b"])], table, "s", truth=[row["s"] for row in table])
    assert found.right == found.told >= found.told_alone
    assert found.together.min() >= 1


def test_two_five_anonymous_releases_tell_most_values():
    # 1,000 people with one of 40 values, in groups of five by two keys that have nothing to do with each other. The
    # others of both groups have no value in common, nor the person's, with probability about (1 - 4/40)^4 = 0.66: a
    # standard deviation of sqrt(0.66 0.34/200) = 0.034 if only the groups were independent; 6.5 of them are 0.22.
    draw = np.random.default_rng(5)
    values = draw.integers(0, 40, 1000)
    keys = [draw.permutation(1000) // 5 for _ in range(2)]
    table = {"one": keys[0], "two": keys[1], "s": values}
    for key in ("one", "two"):
        assert measure_anonymity(table, [key], "s").k == 5
    found = intersect_releases([(table, ["one"]), (table, ["two"])], table, "s", truth=values.tolist())
    assert found.told == found.right
    assert abs(found.share - 0.66) < 0.22
    assert found.told_alone == 0
    assert "values are told" in found._repr_html_()
    assert found.to_dict()["told"] == found.told


def test_mistakes_of_releases_are_told():
    table = {"a": [1], "s": ["x"]}
    for arguments, what in [
        (([], table, "s"), "needs tables"),
        (([(table, [])], table, "s"), "needs tables"),
        (([(table, ["b"])], table, "s"), "a release has no column 'b'"),
        (([(table, ["a"])], {"b": [1]}, "s"), "people: has no column 'a'"),
    ]:
        with pytest.raises(ParameterError, match=what):
            intersect_releases(*arguments)
    with pytest.raises(ParameterError, match="truth: needs 1 values"):
        intersect_releases([(table, ["a"])], table, "s", truth=[])
