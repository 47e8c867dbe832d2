"""Ibis expressions ask the same questions as SQL."""

from __future__ import annotations

import ibis
import pytest
from ibis import _

import tacit
from tacit.demo.clinic import build_clinic
from tacit.errors import Refused


@pytest.fixture(scope="module")
def ada(tmp_path_factory):
    with tacit.open(build_clinic(tmp_path_factory.mktemp("clinic"))) as curator:
        yield curator.analyst("ada")


@pytest.mark.slow
def test_an_expression_and_its_sql_are_one_question(ada):
    visits = ada.table("visits")
    first = ada.ask(visits.group_by("ward").agg(n=_.count()), epsilon=0.1)
    again = ada.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.1)
    assert list(again) == list(first)
    assert again.receipt.repeat


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build_expression", "sql"),
    [
        (lambda t, w: t.filter(_.age > 40).agg(n=_.count()), "SELECT COUNT(*) AS n FROM visits WHERE age > 40"),
        (lambda t, w: t.agg(n=(_.age > 40).sum()), "SELECT SUM(CASE WHEN age > 40 THEN 1 ELSE 0 END) AS n FROM visits"),
        (lambda t, w: t.agg(q=_.cost.quantile(0.9)), "SELECT QUANTILE(cost, 0.9) AS q FROM visits"),
        (
            lambda t, w: t.agg(s=_.cost.std(), u=_.patient_id.nunique()),
            "SELECT STDDEV(cost), COUNT(DISTINCT patient_id) FROM visits",
        ),
        (
            lambda t, w: t.group_by(d=(_.age / 10).floor()).agg(n=_.count()).order_by(ibis.desc("n")).limit(3),
            "SELECT FLOOR(age / 10) AS d, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY n DESC LIMIT 3",
        ),
        (
            lambda t, w: t.group_by("ward").agg(n=_.count()).filter(_.n > 100).mutate(half=_.n / 2),
            "SELECT ward, COUNT(*) AS n, COUNT(*) / 2 AS half FROM visits GROUP BY ward HAVING COUNT(*) > 100",
        ),
        (
            lambda t, w: t.join(w, "ward").group_by("ward").agg(n=_.count()),
            "SELECT ward, COUNT(*) AS n FROM visits JOIN wards USING (ward) GROUP BY ward",
        ),
        (
            lambda t, w: t.group_by("patient_id").agg(s=_.nights.sum()).agg(a=ibis.least(_.s, 100).mean()),
            "SELECT AVG(LEAST(s, 100)) AS a FROM (SELECT patient_id, SUM(nights) AS s FROM visits GROUP BY patient_id)",
        ),
        (
            lambda t, w: t.group_by(m=_.visited.truncate("M")).agg(n=_.count()),
            "SELECT DATE_TRUNC('month', visited) AS m, COUNT(*) AS n FROM visits GROUP BY 1",
        ),
        (
            lambda t, w: t.agg(a=_.age.cast("float64").mean()),
            "SELECT AVG(CAST(age AS DOUBLE)) AS a FROM visits",
        ),
    ],
)
def test_expressions_cost_and_measure_what_their_sql_does(ada, build_expression, sql):
    expression = build_expression(ada.table("visits"), ada.table("wards"))
    one, other = ada.explain(expression, epsilon=0.5), ada.explain(sql, epsilon=0.5)
    assert [(noise.law, noise.sensitivity, noise.scale) for noise in one.noise] == [
        (noise.law, noise.sensitivity, noise.scale) for noise in other.noise
    ]
    assert (one.groups, one.epsilon, one.delta) == (other.groups, other.epsilon, other.delta)


def test_a_table_that_is_not_in_the_policy(ada):
    with pytest.raises(Refused, match="there is no table doctors"):
        ada.table("doctors")


def test_rows_stay_private(ada):
    with pytest.raises(Refused):
        ada.ask(ada.table("visits").select("age"), epsilon=0.1)
