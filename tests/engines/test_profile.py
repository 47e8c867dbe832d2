"""The profile of contributions: every engine and the reference say the same, and a clip bounds what one unit moves."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.engines.test_differential import KEYED, VALUES, Questions
from tests.support.counts import FULL

from tacit.engines import profile_statements
from tacit.engines.limit_joins import limit_clipped_joins
from tacit.privacy.contribution_profile import OCTAVES, ContributionProfile
from tacit.query.clipped_aggregation import ClippedAggregation, WeightedVector
from tacit.query.nodes import Clamp, ExactStatistic, GroupKey

pytestmark = pytest.mark.slow


class ClippedQuestions(Questions):
    """Draws questions in which a clip bounds what a unit adds."""

    def grouped(self, columns: dict[str, str]) -> tuple[tuple[GroupKey, ...], tuple[tuple[Any, ...], ...]]:
        """Keys with public values or without, and groups of which some do not occur."""
        keys, pools = [], []
        for _ in range(self.rng.choice([0, 1, 1, 2, 3])):
            kind = self.rng.choice(KEYED)
            values = self.rng.sample(VALUES[kind], self.rng.randint(1, len(VALUES[kind])))
            keys.append(GroupKey(self.scalar(kind, columns, 1), tuple(values[:4]) if self.rng.random() < 0.4 else None))
            pools.append([*values, *([None] if self.rng.random() < 0.5 else [])])
        groups = list(itertools.product(*pools))
        return tuple(keys), tuple(self.rng.sample(groups, self.rng.randint(1, min(len(groups), 60))))

    def vector(self, columns: dict[str, str]) -> WeightedVector:
        terms, weight, most = [], self.rng.choice([1, 1, 2, 5, 1000]), 0
        for _ in range(self.rng.choice([1, 1, 2])):
            factor = self.rng.choice([1, 1, -1, 3])
            match self.rng.choice(["rows", "count", "sum", "sum", "units"]):
                case "sum":
                    bound = self.rng.choice([1, 9, 2**20, 2**40])
                    clamped = Clamp(self.scalar("int", columns, 1), Fraction(-bound), Fraction(bound), whole=True)
                    terms.append((factor, ExactStatistic("sum", clamped)))
                    most += abs(factor) * bound
                    continue
                case "count":
                    argument = self.scalar(self.rng.choice(list(VALUES)), columns, 1)
                    terms.append((factor, ExactStatistic("count", argument)))
                case "rows":
                    terms.append((factor, ExactStatistic("count", None)))
                case "units":
                    terms.append((factor, ExactStatistic("units", None)))
            most += abs(factor)
        return WeightedVector(tuple(terms), weight, weight * most)

    def clipped(self) -> ClippedAggregation:
        while True:
            source, columns = self.rows(self.rng.choice([0, 1, 1, 2]))
            units = [name for name, kind in columns.items() if kind in KEYED]
            if units:
                break
        keys, groups = self.grouped(columns)
        return ClippedAggregation(
            source=source,
            where=self.scalar("bool", columns) if self.rng.random() < 0.3 else None,
            unit=self.rng.choice(units),
            keys=keys,
            groups=groups,
            vectors=tuple(self.vector(columns) for _ in range(self.rng.choice([1, 1, 2, 3]))),
            largest=self.rng.choice([1, 3, 100, 2**30, 2**62, 2**80]),
        )


def assert_equal(found: ContributionProfile, expected: ContributionProfile, node: Any = None) -> None:
    assert (found.clips, found.size, set(found.sums)) == (expected.clips, expected.size, {1}), node
    assert found.units.shape == (OCTAVES, 1) and found.units.tolist() == expected.units.tolist(), node
    for place in range(len(found.clips)):
        assert found.clip(place, 1) == expected.clip(place, 1), (place, node)


SEEDS = [("duckdb", seed, 40) for seed in range(300 if FULL else 4)]
SEEDS += [("postgres", seed, 40) for seed in range(300 if FULL else 3)]
SEEDS += [("spark", 1000 + seed, 8) for seed in range(20 if FULL else 1)]


@pytest.mark.parametrize(("kind", "seed", "size"), SEEDS)
def test_random_profiles(kind, seed, size, opened):
    questions = ClippedQuestions(random.Random(seed))
    tables = questions.tables()
    engine, reference = opened(kind, tables), opened("reference", tables)
    units = 0
    try:
        for _ in range(size):
            node = limit_clipped_joins(questions.clipped(), 2)
            found = engine.profile(node)
            assert_equal(found, reference.profile(node), node)
            units += int(np.sum(found.units))
    finally:
        engine.close()
    assert units >= size // 4 or any(len(rows) <= 1 for _, rows in tables.values())  # not all are about nothing


def test_every_statement_calls_only_what_is_allowed(called, built_of, allowed):
    questions = ClippedQuestions(random.Random(7))
    seen = set()
    for _ in range(60):
        node = limit_clipped_joins(questions.clipped(), 2)
        statement = profile_statements.write_profile(node, {"r": "r", "s": "s"})
        seen |= called(statement)
        assert built_of(statement) <= allowed.operators | allowed.clauses | {"Values", "Tuple"}
    assert seen - allowed.scalars <= allowed.skeleton
