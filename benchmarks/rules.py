"""Settles the constants of private learning's default rules, on made-up problems alone.

    python benchmarks/rules.py            # about a quarter of an hour on one core; writes benchmarks/rules.md
    python benchmarks/rules.py --quick    # a few tiny problems, as a check of the script; prints and writes nothing

What was declared before any result was seen: the problems (`rules_family.py`), the constants with their candidates
(`CONSTANTS`), and how one is chosen (`choice`); but for grids at whose end the choice fell in a first run, which were
made longer before all was run again. Every fit is that of the public estimators. Noise is replayed, the same for all
candidates, so that a run gives the same page again, whatever constants the package has.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import rules_report
from environment import HERE, say
from numpy.typing import NDArray
from rules_family import Drawn, Kind, additive, drawn, family, wide
from threadpoolctl import threadpool_limits

from tacit.errors import Failed
from tacit.learn import AdditiveClassifier, LogisticRegression, Ridge
from tacit.learn.auto import THRESHOLDS, MethodThresholds, _calibrate, choose_method
from tacit.sampling.bits import ReplayBits

Array = NDArray[Any]
Half = list[Kind]

ROUNDS = 2  # over the constants of a method
SMALL = 4_000  # rows: problems of at most so many are fitted twice


@dataclass(frozen=True)
class Constant:
    """A constant, what is fitted to settle it, and its candidates: the middle one is the start."""

    fitted: str
    module: str
    name: str
    candidates: tuple[Any, ...]

    @property
    def key(self) -> str:
        """Its place in the package."""
        return f"{self.module}.{self.name}"

    @property
    def start(self) -> Any:
        """Where the search begins: no value that was there before is preferred."""
        return self.candidates[len(self.candidates) // 2]


def _parts(*denominators: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(1, denominator) for denominator in denominators)


_QUARTERS = tuple(Fraction(part, 4) for part in range(4))
CONSTANTS = (
    Constant("gradient", "gradient", "_REACH", (1.0, 2.0, 4.0, 8.0, 16.0)),
    Constant("gradient", "gradient", "_PATIENCE", (0.5, 1.0, 2.0, 4.0)),
    Constant("gradient", "gradient", "_FEWEST", (4, 8, 16, 32)),
    Constant("gradient", "gradient", "_MOST", (50, 100, 200, 400)),
    Constant("gradient", "gradient", "_SKIPPED", _QUARTERS),
    Constant("gradient", "gradient", "_CUT", (60.0, 125.0, 250.0, 500.0, 1000.0, 2000.0)),
    Constant("output", "output", "_SCORES", (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)),
    Constant("objective", "objective", "_SCORES", (0.25, 0.5, 1.0, 2.0, 4.0)),
    Constant("objective", "objective", "_GROWTH", (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75)),
    Constant("objective", "objective", "_DETERMINANT", _parts(16, 8, 4, 2)),
    Constant("newton", "newton", "_SHARE", _parts(96, 48, 24, 12, 6)),
    Constant("newton", "newton", "_STEPS", (10, 20, 40, 80)),
    Constant("newton", "newton", "_SKIPPED", _QUARTERS),
    Constant("newton", "newton", "_FLOOR", (0.125, 0.25, 0.5, 1.0, 2.0)),
    Constant("moments", "moments", "_SHARE", (Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3))),
    Constant("moments", "moments", "_FLOOR", (0.125, 0.25, 0.5, 0.75, 1.0, 2.0)),
    Constant("auto", "Rule", "plenty", (0.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0, 6400.0, 12800.0)),
    Constant("wide", "Rule", "wide", (0, 8, 16, 32, 64, 128, 256, 512, 1024)),
    Constant("intercept", "LogisticRegression", "intercept_scaling", (0.125, 0.25, 0.5, 1.0, 2.0)),
    Constant("additive", "AdditiveClassifier", "knots", (4, 6, 8, 12, 16, 24)),
)
LATE = (
    "gradient._SKIPPED",
    "newton._SKIPPED",
    "newton._FLOOR",
    "moments._FLOOR",
    "LogisticRegression.intercept_scaling",
    "AdditiveClassifier.knots",
)


@dataclass(frozen=True)
class Line:
    """What each candidate of a constant did on the problems of both halves, the other constants as settled."""

    constant: Constant
    value: Any
    settled: dict[Any, Array]
    held_out: dict[Any, Array]

    @property
    def again(self) -> Any:
        """What one more round would choose."""
        return choice(self.settled)


def choice(found: dict[Any, Array]) -> Any:
    """The candidate with the least mean error. Of those within one standard error of it, the one with the best
    probabilities, by their mean squared error; a regression has none, and takes the least.

    An error of a classifier is the chance to be wrong on a test row, by the truth; of a regression, the part of the
    variance that it does not explain. Standard errors are those of the difference on each problem, over problems.
    """
    least = min(found, key=lambda candidate: found[candidate][:, 0].mean())
    near = [candidate for candidate in found if _within(found[candidate], found[least])]
    return least if np.isnan(found[least]).any() else min(near, key=lambda candidate: found[candidate][:, 1].mean())


def _within(one: Array, least: Array) -> bool:
    difference = one[:, 0] - least[:, 0]
    return bool(difference.mean() <= difference.std(ddof=1) / len(difference) ** 0.5)


class Bench:
    """Fits candidates and remembers what came of it."""

    def __init__(self, quick: bool = False) -> None:
        count, cells = (4, 10_000) if quick else (30, 1_000_000)
        self.families = {
            "": [family(half, count, cells=cells) for half in (0, 1)],
            "moments": [family(half, count, classes=1, cells=cells) for half in (0, 1)],
            "wide": [wide(half)[: 2 if quick else None] for half in (0, 1)],
            "additive": [additive(half, 4 if quick else 12) for half in (0, 1)],
        }
        self.values: dict[str, Any] = {}
        self._known: dict[Any, Array] = {}
        self._fitted: dict[Any, tuple[float, float]] = {}

    def half(self, fitted: str, which: int) -> Half:
        return self.families.get(fitted, self.families[""])[which]

    def settle(self, group: Sequence[Constant], lasting: int = ROUNDS) -> Iterator[Line]:
        """The constants that are settled by the same fits: round after round, each with the others as they stand."""
        self.values |= {constant.key: constant.start for constant in group}
        for _ in range(lasting):
            before = dict(self.values)
            for constant in group:
                self.values[constant.key] = choice(self.tried(constant, 0))
                say(f"{time.strftime('%H:%M:%S')} {constant.key} = {self.values[constant.key]}")
            if self.values == before:
                break
        for constant in group:
            yield Line(constant, self.values[constant.key], self.tried(constant, 0), self.tried(constant, 1))

    def tried(self, constant: Constant, which: int) -> dict[Any, Array]:
        """Every candidate on one half: (error, squared error of probabilities) of each problem."""
        return {
            candidate: self.judged(constant.fitted, self.values | {constant.key: candidate}, which)
            for candidate in constant.candidates
        }

    def judged(self, fitted: str, values: dict[str, Any], which: int) -> Array:
        """The mean over the epsilons of each problem."""
        if fitted in {"auto", "wide"}:
            return self._by_rule(fitted, values, which)
        key = fitted, which, tuple(sorted(values.items()))
        if key not in self._known:
            with having(values):
                self._known[key] = np.array([self._fits(fitted, kind, values) for kind in self.half(fitted, which)])
        return np.asarray(self._known[key].mean(axis=1))

    def _by_rule(self, fitted: str, values: dict[str, Any], which: int) -> Array:
        """What a threshold gives: of two methods the one that it chooses, for each problem and epsilon."""
        pair = ("objective", "gradient") if fitted == "auto" else ("newton", "gradient")
        place = "" if fitted == "auto" else "wide"
        rule = _rule(values)
        kinds = self.half(place, which)
        key = fitted, which
        if key not in self._known:
            with having(values):
                both = [[self._fits(f"{place}{method}", kind, values) for kind in kinds] for method in pair]
            self._known[key] = np.array(both)
        first, second = self._known[key].copy()
        for row, kind in enumerate(kinds):
            for column, epsilon in enumerate(kind.epsilons):
                if _name(_model(kind, epsilon, "auto", values), kind, rule) != pair[0]:
                    first[row, column] = second[row, column]
        return np.asarray(first.mean(axis=1))

    def _fits(self, fitted: str, kind: Kind, values: dict[str, Any]) -> Array:
        """(error, squared error of probabilities) at each epsilon, the mean of a fit or two."""
        found = []
        for epsilon in kind.epsilons:
            model = _model(kind, epsilon, fitted, values)
            if fitted in {"intercept", "additive"}:
                model.set_params(method=_name(model, kind, _rule(values)))
            times = 1 + (kind.rows <= SMALL)
            found.append(np.mean([self._fit(model, kind, epsilon, again, values) for again in range(times)], axis=0))
        return np.array(found)

    def _fit(self, model: Any, kind: Kind, epsilon: float, again: int, values: dict[str, Any]) -> tuple[float, float]:
        """One fit. Candidates that come to the same plan have the same fit."""
        plan = model.plan(kind.columns, kind.rows)
        late = tuple(values.get(key) for key in LATE)  # what a fit uses beside its plan
        key = kind, epsilon, again, plan.name, plan.method, late
        if key not in self._fitted:
            problem = drawn(kind)
            model.set_params(bits=partial(ReplayBits, f"{kind.seed} {epsilon} {again}".encode()))
            try:
                self._fitted[key] = _judged(model.fit(problem.features, problem.labels), problem)
            except Failed:  # a minimum that could not be proved: a model that says nothing
                say(f"no fit: {kind}, epsilon {epsilon}, penalty {plan.method.penalty:.3g}")
                self._fitted[key] = 100 * (1 - 1 / kind.classes), 100 * (1 - 1 / kind.classes)
        return self._fitted[key]


@contextmanager
def having(values: dict[str, Any]) -> Iterator[None]:
    """The package with these constants."""
    before = []
    for key, value in values.items():
        place, name = key.split(".")
        if place.islower():
            module = importlib.import_module(f"tacit.learn.{place}")
            before.append((module, name, getattr(module, name)))
            setattr(module, name, value)
    _calibrate.cache_clear()
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
        _calibrate.cache_clear()


def _rule(values: dict[str, Any]) -> MethodThresholds:
    return MethodThresholds(
        plenty=values.get("Rule.plenty", THRESHOLDS.plenty), wide=values.get("Rule.wide", THRESHOLDS.wide)
    )


def _name(model: Any, kind: Kind, rule: MethodThresholds) -> str:
    """The method that a rule chooses."""
    plan = model.plan(kind.columns, kind.rows)
    return choose_method(plan.facts, plan.loss, rule)


def _model(kind: Kind, epsilon: float, fitted: str, values: dict[str, Any]) -> Any:
    problem = drawn(kind)
    public: dict[str, Any] = {"bounds": problem.bounds, "neighbors": kind.neighbors}
    public["rows"] = kind.rows if kind.neighbors == "add-remove" else None
    classes = list(range(kind.classes))
    if fitted == "additive":
        return AdditiveClassifier(epsilon, classes=classes, knots=values["AdditiveClassifier.knots"], **public)
    public["norm"] = problem.norm
    public["intercept_scaling"] = values.get("LogisticRegression.intercept_scaling", 0.5)
    public["scaling"] = "bounds"  # the constants here are for columns as declared
    method = {"moments": "newton", "intercept": "auto"}.get(fitted, fitted.removeprefix("wide"))
    if kind.classes == 1:
        return Ridge(epsilon, target_bounds=(-1, 1), method=method, **public)
    return LogisticRegression(epsilon, classes=classes, method=method, **public)


def _judged(model: Any, problem: Drawn) -> tuple[float, float]:
    """The chance to be wrong on a test row, and the squared error of its probabilities; in points of a hundred."""
    truth = problem.truth
    if truth.ndim == 1:
        told = np.clip(model.predict(problem.test), -1, 1)
        return float(100 * np.mean((told - truth) ** 2) / np.var(truth)), float("nan")
    told = model.predict_proba(problem.test)
    right = np.take_along_axis(truth, told.argmax(axis=1)[:, None], axis=1)
    return float(100 * (1 - right.mean())), float(100 * np.mean(np.sum((told - truth) ** 2, axis=1)))


def settled(quick: bool = False) -> list[Line]:
    """All constants, method after method."""
    bench, lines = Bench(quick), []
    for fitted in dict.fromkeys(constant.fitted for constant in CONSTANTS):
        group = [constant for constant in CONSTANTS if constant.fitted == fitted]
        if quick:
            group = [replace(constant, candidates=constant.candidates[:2]) for constant in group]
        lines += bench.settle(group, 1 if quick else ROUNDS)
        bench.values.setdefault("LogisticRegression.intercept_scaling", 0.5)
    return lines


def main() -> None:
    """Settle, and write the page."""
    quick = "--quick" in sys.argv[1:]
    with threadpool_limits(1):
        page = rules_report.markdown(settled(quick))
    if not quick:
        (HERE / "rules.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
