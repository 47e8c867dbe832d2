"""Who asks, for how much, and for what is not listed: refused before anything is charged."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.aggregates.registry import read_question as parse
from tacit.curator.curator import Curator
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.plan.bind_question import plan_for
from tacit.policy.model import Policy


def refused(curator: Curator, sql: Any, **price: Any) -> Refused:
    """The refusal of a whole `ask`, after a look at the ledger."""
    with pytest.raises(Refused) as caught:
        curator.analyst("ada").ask(sql, **({"epsilon": 0.5} | price))
    nothing_charged(curator)
    return caught.value


def nothing_charged(curator: Curator) -> None:
    """The opening is the only entry."""
    assert [entry.kind for entry in curator.ledger.entries()] == ["open"]


# What exists in the data but not in the policy is refused in the words used for what does not exist.


@pytest.mark.slow
@pytest.mark.parametrize("where", ["SELECT COUNT(*) FROM {}", "SELECT COUNT(*) FROM {} WHERE age > 3"])
def test_a_table_of_the_data_and_no_table_read_alike(curator: Curator, where: str) -> None:
    unlisted, absent = refused(curator, where.format("staff")), refused(curator, where.format("stuff"))
    assert str(unlisted).replace("staff", "stuff") == str(absent)


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        "SELECT COUNT(*) FROM visits WHERE {} = 'n1'",
        "SELECT {} FROM visits",
        "SELECT COUNT({}) FROM visits",
        "SELECT COUNT(*) FROM visits GROUP BY {}",
        "SELECT COUNT(*) FROM visits ORDER BY {}",
        "SELECT COUNT(*) FROM visits HAVING {} IS NULL",
        "SELECT COUNT(visits.{}) FROM visits",
    ],
)
def test_a_column_of_the_data_and_no_column_read_alike(curator: Curator, where: str) -> None:
    unlisted, absent = refused(curator, where.format("name")), refused(curator, where.format("nome"))
    assert unlisted.code is ErrorCode.UNKNOWN_COLUMN
    assert str(unlisted).replace("name", "nome") == str(absent)


# Prices and confidences.

BAD_NUMBERS = [
    0,
    -1,
    -0.5,
    0.0,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    5e-324,
    1e308,
    1e-9,
    "0.5",
    b"1",
    None,
    True,
    False,
    [0.5],
    1j,
    np.float64("nan"),
    np.bool_(True),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    Decimal("1e400"),
    Fraction(-1, 3),
    Fraction(10**400),
    10**400,
    10**5000,
]


@pytest.mark.parametrize(
    "value",
    BAD_NUMBERS,
    ids=lambda value: (
        f"{type(value).__name__} {str(value)[:12]}" if not isinstance(value, int) or value < 1e300 else "huge int"
    ),
)
def test_a_bad_epsilon_names_epsilon(curator: Curator, value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        curator.analyst("ada").ask("SELECT COUNT(*) FROM visits", epsilon=value)
    check_parameter(caught.value, "epsilon")
    nothing_charged(curator)


@pytest.mark.parametrize(
    "value",
    [*BAD_NUMBERS, 1, 1.0, 2, 0.009, 95, 1 - 1e-12],
    ids=lambda value: (
        f"{type(value).__name__} {str(value)[:12]}" if not isinstance(value, int) or value < 1e300 else "huge int"
    ),
)
def test_a_bad_confidence_names_confidence(curator: Curator, value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        curator.analyst("ada").ask("SELECT COUNT(*) FROM visits", epsilon=0.5, confidence=value)
    check_parameter(caught.value, "confidence")
    with pytest.raises(ParameterError, match="confidence"):
        curator.analyst("ada").explain("SELECT COUNT(*) FROM visits", epsilon=0.5, confidence=value)
    nothing_charged(curator)


def check_parameter(error: ParameterError, name: str) -> None:
    assert error.code is ErrorCode.PARAMETER
    assert error.name == name
    assert str(error).startswith(f"error [parameter]: {name}: ")
    assert "  fix: " in str(error) and name in error.fix
    assert len(str(error)) < 300


def test_the_ends_of_epsilon(policy: Policy) -> None:
    query = parse("SELECT COUNT(*) FROM visits")
    assert plan_for(query, policy, 1000)
    assert plan_for(query, policy, 1e-6)
    with pytest.raises(ParameterError, match="between 1e-06 and 1000"):
        plan_for(query, policy, Fraction(10**6 + 1, 10**3))
    with pytest.raises(ParameterError, match="between 1e-06 and 1000"):
        plan_for(query, policy, Fraction(999, 10**9))


# Who asks, and for how much.


def test_a_price_above_the_budget_is_refused_before_the_data(curator: Curator) -> None:
    error = refused(curator, "SELECT COUNT(*) FROM visits", epsilon=5.5)
    assert str(error) == (
        "refused [budget]: it costs epsilon 5.5, and ada's own budget has 5 left of 5\n  fix: ask for at most epsilon=5"
    )


def test_an_analyst_whom_nobody_named(curator: Curator) -> None:
    with pytest.raises(Refused) as caught:
        curator.analyst("eve")
    assert caught.value.code is ErrorCode.UNKNOWN_ANALYST
    nothing_charged(curator)
