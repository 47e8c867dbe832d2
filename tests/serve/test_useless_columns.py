"""An answer that would tell nothing is known before it is asked, from the policy and what was released."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.plan.explain import explain
from tacit.plan.question import Question
from tacit.serve.console.useless_columns import count_most_rows, find_useless_columns

pytestmark = pytest.mark.slow


def warn(curator, sql, epsilon, most_rows=None):
    plan = curator.planner.plan(Question(sql, Fraction(epsilon)), "ada")
    return find_useless_columns(plan, explain(plan, curator.policy, Fraction(95, 100)), most_rows)


def test_a_count_that_may_be_off_by_more_rows_than_there_are_tells_nothing(curator):
    sql = "SELECT COUNT(*) AS n, SUM(cost) AS total FROM visits"
    # A patient has at most 2 rows of cost 100 at most in the one group. At epsilon 0.01, half of it for each, both are
    # off by 2/0.005 ln 20 = 1198 rows for 95%.
    found = warn(curator, sql, "0.01", 800)
    assert set(found) == {"n", "total"} and all(warning.is_useless for warning in found.values())
    assert "off by what 1,198 rows add, of about 800 at most" in found["n"].text
    unsure = warn(curator, sql, "0.01")  # nobody said how many rows there are
    assert not unsure["n"].is_useless and "fewer than 1,198 rows cannot be told" in unsure["n"].text
    assert warn(curator, sql, "0.1", 800) == {}  # 120 rows


def test_a_mean_tells_nothing_where_its_interval_is_all_of_the_range(curator):
    assert warn(curator, "SELECT AVG(age) AS mean FROM visits", "0.001")["mean"].is_useless
    assert warn(curator, "SELECT AVG(age) AS mean FROM visits", "10") == {}
    # Between both, small groups only: the error of a mean of n rows falls as 1/n.
    some = warn(curator, "SELECT AVG(age) AS mean FROM visits", "0.02")["mean"]
    assert not some.is_useless and "all of 0 to 110" in some.text


def test_how_many_rows_there_are_at_most_is_known_once_it_was_released(curator):
    assert count_most_rows(curator.policy, None) is None
    profile = curator.profile(epsilon=400)
    # 200 patients, of whom 2 groups with 2 rows each count; columns of text without declared values may hide some
    assert 780 <= count_most_rows(curator.policy, profile) <= 820
    warned = warn(curator, "SELECT COUNT(*) AS n FROM visits", "0.005", count_most_rows(curator.policy, profile))
    assert warned["n"].is_useless


def test_what_is_computed_from_releases_is_not_judged(curator):
    assert warn(curator, "SELECT COUNT(*) / 2 AS half FROM visits", "0.001", 10) == {}
