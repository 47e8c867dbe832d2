"""No row of anybody's makes a fit fail, or end otherwise than its noise does: attacks through the curator.

An analyst builds rows from a stranger's bit by SQL, and chooses parameters for which a solver is near its limits. A fit
that fails for one value of the bit and not for the other tells it, whatever its epsilon.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.errors import Failed, TacitError
from tacit.learn import LinearSVC, LogisticRegression, minimize
from tacit.ledger.ledger import Ledger
from tacit.policy.load import load
from tacit.sampling.bits import ReplayBits

pytestmark = pytest.mark.slow

PERSONS, ROWS = 40, 400
SECRETS = np.random.default_rng(7).integers(0, 2, ROWS)


COLUMNS = {
    "id": {"type": "int", "lower": 0, "upper": 10_000, "nullable": False},
    "bit": {"type": "int", "lower": 0, "upper": 1, "nullable": False},
}


def opened(folder, bits) -> Curator:
    policy = load(
        {
            "privacy": {"epsilon": 100, "delta": 1e-3, "delta_per_question": 1e-6},
            "tables": {"people": {"unit": "row", "columns": COLUMNS}},
            "analysts": {"eve": {"epsilon": 50, "delta": 5e-4}},
        }
    )
    people = pa.table({"id": np.arange(len(bits)), "bit": np.asarray(bits, dtype=np.int64)})
    engine = DuckDBEngine(table_schemas(policy), None, {"people": people})
    return Curator(policy, engine, Ledger(folder / "ledger", budget_limits(policy)), ReplayBits(b"edges"))


def question(person: int, value: str) -> str:
    """One feature: the value in the row of a person whose bit is 1, and 0 in all others. Bounds are 0 and 1."""
    feature = f"CASE WHEN id = {person} AND bit = 1 THEN {value} WHEN id < 0 THEN 1.0 ELSE 0.0 END"
    return f"SELECT {feature} AS x, CASE WHEN id < 0 THEN 0 ELSE 1 END AS y FROM people"


def outcomes(curator, model, value, epsilon) -> list[str]:
    """What the analyst sees of each person's fit, but for its weights."""
    found = []
    for person in range(PERSONS):
        try:
            fitted = curator.fit(model, question(person, value), "y", "eve", epsilon)
        except Failed:
            found.append("failed")
        except TacitError as error:
            found.append(str(error))
        else:
            finite = np.all(np.isfinite(fitted.coef_)) and np.all(np.isfinite(fitted.intercept_))
            found.append("fitted" if finite else "not finite")
    return found


ATTACKS = {
    "a hinge too sharp": (LinearSVC(width=1e-9, C=1, method="output"), "1.0", 0.001),
    "a penalty too small": (LogisticRegression(C=1e30, method="output"), "1e-7", 0.001),
    "a hinge too flat": (LinearSVC(width=1e298, method="gradient"), "1.0", 0.005),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_how_a_fit_ends_tells_no_bit(tmp_path, name):
    model, value, epsilon = ATTACKS[name]
    model.set_params(classes=[0, 1], rows=1000, fit_intercept=model.method == "gradient")
    with opened(tmp_path, SECRETS) as curator:
        found = outcomes(curator, model, value, epsilon)
    assert len(set(found)) == 1 and found[0] not in {"failed", "not finite"}


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("edges"), SECRETS) as made:
        yield made


@pytest.mark.parametrize("method", ["output", "objective", "gradient", "newton"])
@pytest.mark.parametrize("kind", ["sharp", "flat", "loose", "tight"])
def test_at_the_edges_of_what_is_admitted_fits_end_alike(curator, monkeypatch, method, kind):
    # the sharpest and the flattest hinge, the least and the largest penalty that a plan admits
    model = LinearSVC(width=1 / 16 if kind == "sharp" else 512, classes=[0, 1], rows=1000, method=method)
    bend = 8.0 if kind == "sharp" else 2.0**-10
    norm = 1.25 * (1 + 2.0**-39)  # of a feature and its constant, squared
    model.C = {"loose": 2.0**7.9 / bend / norm, "tight": 2.0**-63.9 / bend / norm}.get(kind)
    if method == "objective" and kind in {"sharp", "loose"}:
        model.C = 1e-4 / bend  # less than this is refused for such an epsilon
    steps = []
    original = minimize.solve
    monkeypatch.setattr(minimize, "solve", lambda *given: steps.append(original(*given)) or steps[-1])
    for person in range(2):
        for value in ("1e-7", "1.0"):
            fitted = curator.fit(model, question(person, value), "y", "eve", 0.05)
            assert np.all(np.isfinite(fitted.coef_)) and np.all(np.isfinite(fitted.intercept_))
    assert len({found.steps for found in steps}) == (method in {"output", "objective"})
