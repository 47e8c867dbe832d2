"""What many tests share: whether to run the full counts, and what the SQL for engines may be made of.

Nothing in it is volatile, looks at where a row lies, or takes longer for one row than for another of its length. A
regular expression is there because DuckDB's never go back.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from tests.support.compile_once import let_workers_take_turns
from tests.support.counts import FULL

if TYPE_CHECKING:
    from sqlglot.expressions import Expression

for _library in ("MKL", "OMP", "OPENBLAS"):  # before numpy is loaded; tests run side by side, and so would its threads
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

MEMORY = Path("/dev/shm")  # each charge waits until its ledger is stored: on a disk at full counts
if not FULL and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 2**33:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # of a job in the background; some tests interrupt themselves
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("quick", max_examples=25, deadline=None)  # of tests that do not say how many
settings.register_profile("full", max_examples=100, deadline=None)  # how long a machine takes is no fact
settings.load_profile("full" if FULL else "quick")

if "PYTEST_XDIST_WORKER" in os.environ:
    let_workers_take_turns()


SERVERS = {"postgres", "served", "serving", "spark"}
"""Fixtures that start a server, and a parameter that stands for one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what a server is started for."""
    for item in items:
        parameters = getattr(item, "callspec", None)
        given = [value for value in parameters.params.values() if isinstance(value, str)] if parameters else []
        if SERVERS & {*getattr(item, "fixturenames", ()), *given}:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import and collect without the garbage collector: hardly anything of it is garbage, and it is looked at often."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what was imported and collected, which lives to the end."""
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let all be collected as the process ends: libraries complain of what is left."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def full() -> bool:
    """Whether to run the full counts: TACIT_FULL=1."""
    return FULL


@dataclass(frozen=True)
class Allowed:
    """Functions that every question may need, those that an analyst's scalars become, operators, and clauses."""

    skeleton: frozenset[str]
    scalars: frozenset[str]
    operators: frozenset[str]
    clauses: frozenset[str]


_SKELETON = (
    "AND CASE CAST CHR COALESCE COUNT DENSE_RANK FIRST_VALUE FLOOR IS_NAN LAG LAST_VALUE LEAD LEAST MAX MD5_NUMBER MIN "
    "NTH_VALUE NTILE OR RANK ROW_NUMBER SUM TRY TRY_CAST"
)
_SCALARS = (
    "ABS CEIL DATE_TRUNC EXP EXTRACT GREATEST LENGTH LN LOWER NULLIF POWER REGEXP_FULL_MATCH SIGN SQRT SUBSTRING "
    "TIMESTAMP_TRUNC TRIM UPPER"
)
_OPERATORS = "Add Between BitwiseRightShift DPipe Div EQ GT GTE In IntDiv Is LT LTE Like Mod Mul NEQ Neg Not Paren Sub"
_CLAUSES = (
    "Alias Boolean Column DataType Distinct From Group Having Identifier If Join Literal Null Order Ordered Qualify "
    "Select Star Subquery Table TableAlias Union Var Where Window WindowSpec"
)


@pytest.fixture(scope="session")
def allowed() -> Allowed:
    """The names of all that a statement may call, compute with and be built of."""
    return Allowed(*(frozenset(names.split()) for names in (_SKELETON, _SCALARS, _OPERATORS, _CLAUSES)))


@lru_cache(maxsize=1)
def _parse(statement: str) -> Expression:
    """The tree of a statement, which is asked for twice in a row."""
    import sqlglot

    return sqlglot.parse_one(statement, dialect="duckdb")


@pytest.fixture(scope="session")
def called() -> Callable[[str], set[str]]:
    """Makes the set of all functions that a statement calls."""
    from sqlglot import exp

    def names(statement: str) -> set[str]:
        tree = _parse(statement)
        found = [node for node in tree.find_all(exp.Func) if not isinstance(node, exp.If)]  # a branch of a CASE
        return {(node.name if isinstance(node, exp.Anonymous) else node.sql_name()).upper() for node in found}

    return names


@pytest.fixture(scope="session")
def built_of() -> Callable[[str], set[str]]:
    """Makes the set of all operators and clauses of a statement: every node of it that is no function."""
    from sqlglot import exp

    def names(statement: str) -> set[str]:
        nodes = _parse(statement).walk()
        return {type(node).__name__ for node in nodes if isinstance(node, exp.If) or not isinstance(node, exp.Func)}

    return names
