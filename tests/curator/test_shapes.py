"""The kind and the shape of an outcome do not depend on the rows.

One hostile row among ordinary ones: zeros to divide by, numbers at the ends of 64 bits, NaN and infinities, the first
and the last day, a text of a million characters, NULLs. What was answered stays answered, at the same price, with the
same columns, types, notes and public keys. A failure would tell that such a row is there.
"""

from __future__ import annotations

import datetime
import math
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from tests.support.counts import some

from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.errors import Refused
from tacit.ledger.ledger import Ledger
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.sampling.bits import ReplayBits

pytestmark = pytest.mark.slow

TYPES = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "bool": pa.bool_(), "date": pa.date32()}
COLUMNS: dict[str, dict[str, Any]] = {
    "who": {"type": "int"},
    "g": {"type": "text", "values": ["A", "B"]},
    "o": {"type": "text", "values": ["A", "B"], "other": "rest"},
    "i": {"type": "int", "lower": -5, "upper": 5},
    "wide": {"type": "int", "lower": -(2**60), "upper": 2**60},
    "free": {"type": "int"},
    "f": {"type": "float", "lower": -1, "upper": 1, "step": 0.25},
    "loose": {"type": "float"},
    "b": {"type": "bool"},
    "d": {"type": "date", "lower": "2025-01-01", "upper": "2025-12-31"},
    "day": {"type": "date"},
    "t": {"type": "text"},
}
FIRST, LAST = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)
PLAIN: dict[str, Any] = {
    **{"who": 1, "g": "A", "o": "B", "i": 1, "wide": 1, "free": 1, "f": 0.5, "loose": 0.5, "b": True},
    **{"d": datetime.date(2025, 5, 5), "day": datetime.date(2025, 5, 5), "t": "ok"},
}
HOSTILE: dict[str, dict[str, Any]] = {
    "zeros": {"i": 0, "wide": 0, "free": 0, "f": 0.0, "loose": -0.0},
    "least": {
        "i": -(2**63),
        "wide": -(2**63),
        "free": -(2**63),
        "f": -1e308,
        "loose": -1e308,
        "d": FIRST,
        "day": FIRST,
    },
    "most": {"i": 2**63 - 1, "wide": 2**63 - 1, "free": 2**63 - 1, "f": 1e308, "loose": 1e308, "d": LAST, "day": LAST},
    "no number": {"f": math.nan, "loose": math.nan},
    "infinite": {"f": math.inf, "loose": math.inf},
    "infinite below": {"f": -math.inf, "loose": -math.inf},
    "tiny": {"f": 5e-324, "loose": 5e-324},
    "huge text": {"t": "a" * 1_000_000, "g": "a" * 1_000_000, "o": "ab%_" * 1000},
    "odd text": {"t": "\u0130ß\u202e'\"\\;--\n%_\x01", "g": "'; DROP TABLE v; --", "o": ""},
    "wild cards": {"t": "%" * 5000 + "_" * 5000},
    "missing": dict.fromkeys(COLUMNS),
    "nobody": {"who": None},
    "another": {"who": -(2**63), "b": None},
}
NUMBERS = """
i / 1 | 1 / (i + 6) | LEAST(100, GREATEST(-100, 1 / i)) | LEAST(100, GREATEST(-100, f / (f + 1))) | i * i * i | wide + 1
wide * 2 | -wide | ABS(wide) | i % 3 | LEAST(9, GREATEST(-9, i % i)) | MOD(wide, 7) | POWER(i, 3) | POWER(f, 2)
SQRT(f + 1) | LEAST(5, GREATEST(-5, LN(f + 2))) | EXP(f) | SIGN(f) | FLOOR(f * 10) | CEIL(f) | COALESCE(f, 1)
LEAST(1000, LENGTH(t)) | LEAST(1000, LENGTH(CONCAT(t, t, g))) | LEAST(1000, LENGTH(SUBSTRING(t, 2, 5))) | YEAR(d)
LEAST(9999, GREATEST(0, YEAR(day))) | MONTH(day) | QUARTER(d) | DAY(day) | ISODOW(day) | d - DATE '2025-01-01'
LEAST(10, GREATEST(-10, day - DATE '2025-01-01')) | LEAST(10, GREATEST(-10, free)) | LEAST(10, GREATEST(-10, loose))
CASE WHEN t LIKE '%a%b_%' THEN 1 ELSE 0 END | CASE WHEN LOWER(t) = UPPER(t) THEN i ELSE f END | i + f * i
LEAST(10, GREATEST(-10, i / f)) | CASE WHEN loose > 1 AND NOT b THEN i END
"""
QUESTIONS = [
    *(
        f"SELECT SUM({argument.strip()}) FROM v"
        for line in NUMBERS.strip().splitlines()
        for argument in line.split("|")
    ),
    "SELECT g, COUNT(*), COUNT(DISTINCT t), AVG(f), VAR_SAMP(i), STDDEV(f) FROM v GROUP BY g",
    "SELECT o, b, AVG(wide), COUNT(loose), COUNT(free) FROM v GROUP BY o, b",
    "SELECT MEDIAN(i), MIN(f), MAX(d), QUANTILE_CONT(wide, 0.9), MODE(g) FROM v",
    "SELECT g, MEDIAN(d), MIN(DATE_TRUNC('month', d)), MODE(o) FROM v GROUP BY g",
    "SELECT g, TOP_K(o, 2), TOP_K(b, 1) FROM v GROUP BY g ORDER BY COUNT(*) LIMIT 1",
    "SELECT DATE_TRUNC('month', d) AS m, COUNT(*) FROM v GROUP BY m",
    "SELECT MONTH(day) AS m, COUNT(*) FROM v GROUP BY m",
    "SELECT FLOOR(f) AS k, SUM(i) FROM v GROUP BY k",
    "SELECT i, COUNT(DISTINCT who) FROM v GROUP BY i",
    "SELECT COUNT(*) FROM v WHERE t LIKE '%_%a' OR day > DATE '2025-01-01' OR loose < 0 OR free IN (1, 2)",
    "SELECT COUNT(*) FROM v WHERE wide + i > 1 AND f / f = 1 AND free > 0 AND loose <> 1",
    "SELECT AVG(s), MAX(n) FROM (SELECT who, LEAST(9, GREATEST(-9, SUM(wide))) AS s, LEAST(COUNT(*), 9) AS n FROM v "
    "GROUP BY who) AS u",
    "SELECT SUM(LEAST(9, GREATEST(-9, m))) FROM (SELECT who, MAX(free) AS m, MIN(day) AS first FROM v GROUP BY who) "
    "AS u WHERE first < DATE '2025-06-01'",
    "SELECT COUNT(*), SUM(a.i + c.i) FROM v AS a JOIN v AS c ON a.who = c.who AND a.t = c.t",
    "SELECT COUNT(*), SUM(code) FROM v LEFT JOIN public ON v.free = public.id",
    "SELECT SUM(i) FROM (SELECT i FROM v UNION ALL SELECT wide % 5 FROM v) AS u",
]
# Which private keys are shown is random, and so is their number; that there is an answer is not.
PRIVATE = [
    "SELECT t, COUNT(*) FROM v GROUP BY t",
    "SELECT free, day, SUM(i) FROM v GROUP BY free, day",
    "SELECT LOWER(t) AS k, MEDIAN(i) FROM v GROUP BY k",
    "SELECT t, TOP_K(g, 2) FROM v GROUP BY t",
    "SELECT SUBSTRING(t, 1, 3) AS k, g, COUNT(DISTINCT who) FROM v GROUP BY k, g",
]


def made() -> Policy:
    return load(
        {
            "privacy": {"epsilon": 100, "delta": 1e-3, "delta_per_question": 1e-6},
            "tables": {
                "v": {"unit": "who", "people": "all", "max_groups": 2, "max_rows_per_group": 2, "columns": COLUMNS},
                "public": {
                    "public": True,
                    "columns": {
                        "id": {"type": "int", "lower": 0, "upper": 9, "unique": True},
                        "code": {"type": "int", "lower": 0, "upper": 9},
                    },
                },
            },
            "analysts": {"ada": {"epsilon": 100, "delta": 1e-3}},
        }
    )


def engine_over(policy: Policy, *extra: dict[str, Any]) -> DuckDBEngine:
    rows = [PLAIN | {"who": who, "g": "AB"[who % 2]} for who in range(6)] + [PLAIN | row for row in extra]
    table = pa.table({n: pa.array([row[n] for row in rows], TYPES[c["type"]]) for n, c in COLUMNS.items()})
    return DuckDBEngine(
        table_schemas(policy), None, {"v": table, "public": pa.table({"id": [0, 1, 50], "code": [1, 2, None]})}
    )


EVERY = [*QUESTIONS, *PRIVATE]


def outcomes(policy: Policy, folder: Any, texts: list[str], *extra: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Of every question, all of the answer that must not depend on the rows."""
    ledger = Ledger(folder / f"{len(extra)}.ledger", budget_limits(policy))
    found = []
    with Curator(policy, engine_over(policy, *extra), ledger, ReplayBits(b"shapes")) as curator:
        ada = curator.analyst("ada")
        for text in texts:
            answer = ada.ask(text, epsilon=Fraction(1, 10))
            public = [] if text in PRIVATE else [len(answer), *keys(answer)]
            found.append((text, answer.headings, answer.notes, answer.receipt.cost, public))
    return found


def keys(answer: Any) -> list[Any]:
    """The public keys, which are all there and in their order."""
    return [answer[name] for name in answer.columns[:1] if len(answer) > 1]


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    policy = made()
    return policy, outcomes(policy, tmp_path_factory.mktemp("usual"), EVERY)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_row_changes_neither_kind_nor_shape(hostile, usual, tmp_path):
    # By default each question meets one of the rows, or two.
    policy, expected = usual
    first = list(HOSTILE).index(hostile)
    assert outcomes(policy, tmp_path, some(EVERY, 12, first), HOSTILE[hostile]) == some(expected, 12, first)


def test_no_rows_at_all_are_answered_alike(usual, tmp_path):
    policy, expected = usual
    empty = pa.table({name: pa.array([], TYPES[column["type"]]) for name, column in COLUMNS.items()})
    engine = DuckDBEngine(table_schemas(policy), None, {"v": empty, "public": pa.table({"id": [0], "code": [1]})})
    with Curator(policy, engine, Ledger(tmp_path / "empty", budget_limits(policy)), ReplayBits(b"none")) as curator:
        for text, headings, notes, price, _ in some(expected, 2):
            answer = curator.analyst("ada").ask(text, epsilon=Fraction(1, 10))
            assert (answer.headings, answer.notes, answer.receipt.cost) == (headings, notes, price)


def test_a_refusal_is_the_same_whatever_the_rows(usual, tmp_path):
    """A question is refused before data is touched: the engine here would raise."""

    class Raising:
        def run(self, aggregation: Any) -> Any:
            raise AssertionError("touched")

        def close(self) -> None:
            pass

    policy, _ = usual
    with Curator(policy, Raising(), Ledger(tmp_path / "none", budget_limits(policy)), ReplayBits(b"")) as curator:
        ada = curator.analyst("ada")
        for text in (
            "SELECT VARIANCE(loose) FROM v",
            "SELECT SUM(1.0 / i) FROM v",
            "SELECT COUNT(*) FROM v JOIN public ON v.free = public.code",
            "SELECT COUNT(*) FROM v AS a JOIN v AS c ON a.t = c.t",
            "SELECT COUNT(*) FROM (SELECT g FROM v ORDER BY g LIMIT 3) AS u",
            "SELECT RANDOM() FROM v",
        ):
            with pytest.raises(Refused):
                ada.ask(text, epsilon=1)
        assert ada.budget.remaining == 100
