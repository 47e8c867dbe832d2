"""The plan: all that will happen, decided by the question and the policy before any data is touched.

**Theorem.** The release of a plan is epsilon-DP for the policy's unit and relation, where epsilon is the plan's price.
Proof: after bounding, one unit moves vector i of group sums by at most d_i in L1 (`privacy/sensitivity.py`); discrete
Laplace noise of scale d_i/e_i makes its release e_i-DP, and the e_i add up to epsilon. Which groups appear, and all
that finishing does, are functions of the releases and of the policy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

from tacit.accounting import pure
from tacit.answers.recipe import Noisy, Recipe
from tacit.arithmetic import within
from tacit.errors import Code, Refused
from tacit.mechanisms.laplace import Laplace
from tacit.plan.measure import Vector, finished, kept, sensitivity, vectors
from tacit.plan.split import Halves, split
from tacit.policy.model import Policy, Table
from tacit.privacy.loss import Compose, Loss
from tacit.query.nodes import Aggregation, Measure, Query
from tacit.query.types import Key
from tacit.sampling.bits import Bits

LEAST_EPSILON = Fraction(1, 10**6)
MOST_EPSILON = Fraction(1000)


@dataclass(frozen=True)
class Part:
    """One vector, the noise it gets, and how far one unit can move it."""

    vector: Vector
    mechanism: Laplace
    sensitivity: int


@dataclass(frozen=True)
class Plan:
    """What the engine computes, what is added to it, what that costs, and how to read the result."""

    table: Table
    exact: Aggregation
    parts: tuple[Part, ...]
    recipe: Recipe
    loss: Loss
    key: str

    @property
    def epsilon(self) -> Fraction:
        """The price."""
        return pure.epsilon(self.loss)

    def release(self, exact: Mapping[tuple[Key, ...], tuple[int, ...]], bits: Bits) -> list[list[int]]:
        """The noisy integers: for each part, one for each combination of declared keys, in their declared order.

        A group that no row fell into is a group of zeros, and gets its noise like any other.
        """
        groups = list(product(*(domain.values for domain in self.exact.keys)))
        nothing = (0,) * len(self.exact.measures)
        rows = [exact.get(group, nothing) for group in groups]
        released = []
        for part in self.parts:
            terms = [(factor, self.exact.measures.index(measure)) for factor, measure in part.vector.terms]
            values = [sum(factor * row[index] for factor, index in terms) for row in rows]
            released.append(part.mechanism.release(values, bits))
        return released


def plan_for(query: Query, policy: Policy, epsilon: Any) -> Plan:
    """The plan of a question at a price, or Refused."""
    price = within("epsilon", epsilon, LEAST_EPSILON, MOST_EPSILON)
    table = policy.table(query.table)
    if table is None:
        names = ", ".join(t.name for t in policy.tables)
        raise Refused(
            Code.UNKNOWN_TABLE, f"there is no table {query.table}", at=query.table_at, fix=f"the tables are {names}"
        )
    halves = split(query, table)
    needed = [vectors(aggregate, argument) for aggregate, argument in halves.aggregates]
    chosen = sorted({vector for some in needed for vector in some}, key=repr)
    recipe = _recipe(query, halves, needed, chosen)
    unit, keep = kept(table, recipe.groups)
    moves = [sensitivity(vector, keep, policy.neighbors, recipe.groups) for vector in chosen]
    share = price / max(1, sum(move > 0 for move in moves))  # what no row can move costs nothing
    parts = [Part(v, Laplace.calibrated(share, move), move) for v, move in zip(chosen, moves, strict=True)]
    noisy = tuple(Noisy(part.vector.name, part.mechanism, part.vector.unit) for part in parts)
    loss = Compose(tuple(part.mechanism.loss(part.sensitivity) for part in parts))
    exact = Aggregation(
        table=table.name,
        where=None if halves.where is None else halves.where.scalar,
        unit=unit,
        keys=halves.keys,
        keep=keep,
        measures=_measures(chosen),
    )
    key = _key(policy, exact, parts)
    return Plan(
        table, replace(exact, salt=key[:16]), tuple(parts), replace(recipe, parts=noisy, notes=_notes(exact)), loss, key
    )


def _recipe(query: Query, halves: Halves, needed: list[tuple[Vector, ...]], chosen: list[Vector]) -> Recipe:
    """How to read the released vectors, in the order chosen."""
    values = []
    for (aggregate, argument), some in zip(halves.aggregates, needed, strict=True):
        values.append(finished(aggregate, argument, [chosen.index(vector) for vector in some]))
    return Recipe(
        keys=halves.keys,
        parts=(),
        values=tuple(values),
        results=halves.results,
        having=halves.having,
        order=halves.order,
        limit=query.limit,
        offset=query.offset,
    )


def _notes(exact: Aggregation) -> tuple[str, ...]:
    """What every answer says of the rows it is about."""
    bars = "Error bars are about the noise; what the bounds cut off is not in them."
    if exact.unit is None:
        return (bars,)
    rows = f"{exact.keep.rows} row{'s' if exact.keep.rows != 1 else ''}"
    groups = f"{exact.keep.groups} group{'s' if exact.keep.groups != 1 else ''}"
    kept_of = f"in at most {groups}, with at most {rows} in each" if exact.keys else f"with at most {rows}"
    return (f"After WHERE, each {exact.unit} counts {kept_of}.", bars)


def _measures(chosen: list[Vector]) -> tuple[Measure, ...]:
    """Every measure that some vector needs, once."""
    return tuple(dict.fromkeys(measure for vector in chosen for _, measure in vector.terms))


def _key(policy: Policy, exact: Aggregation, parts: list[Part]) -> str:
    """The name of the private half: equal for questions that differ only in finishing.

    The price is in it through the scales, and the data's epoch through the policy's digest.
    """
    text = repr((policy.digest, exact, [(part.vector, part.mechanism) for part in parts]))
    return hashlib.sha256(text.encode()).hexdigest()
