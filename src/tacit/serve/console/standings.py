"""What the ledger says of the past: who was charged what and when, and what is left of each budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from markupsafe import Markup

from tacit.accounting.guard import GRAINS_PER_EPSILON, Cost, Standing, cost, shown
from tacit.curator.curator import Curator
from tacit.curator.view import spent_text
from tacit.ledger.book import Book, page_of
from tacit.ledger.entries import ALL, Entry, Kind
from tacit.privacy.loss import LaplaceNoise
from tacit.serve.console import charts
from tacit.serve.console.charts import Line, Mark, Scale
from tacit.serve.console.prices import counted, share, times

ENTRIES = 40  # of a history
_PAST = 2000  # entries of which a budget's past is drawn
_POINTS = 240  # of a drawing
_LIKE = ("0.01", "0.1", "0.5", "1")  # counts of these prices are offered as a measure


@dataclass(frozen=True)
class Charge:
    """One line of a history."""

    entry: int
    time: str
    who: str
    kind: str
    epsilon: str
    key: str
    request: str


def history(curator: Curator, who: str | None, count: int = ENTRIES) -> list[Charge]:
    """The newest entries of the ledger, newest first: an analyst's questions, or everything."""
    kinds = {Kind.RESERVE, Kind.REPEAT} if who is not None else set(Kind)
    found = [entry for entry in _newest(curator, who, 3 * count) if entry.kind in kinds][-count:]
    return [
        Charge(
            entry.sequence,
            moment(entry.time),
            entry.who,
            str(entry.kind),
            entry.charge.shown.partition(",")[0],  # the delta is on the receipt
            entry.key[:12],
            entry.request,
        )
        for entry in reversed(found)
    ]


def _newest(curator: Curator, who: str | None, count: int) -> list[Entry]:
    with curator.ledger.store.read() as session:
        if who is None:
            return page_of(session, max(0, Book(session).length - count), count)
        rows = session.run("SELECT sequence FROM entries WHERE who = ? ORDER BY sequence DESC LIMIT ?", (who, count))
        return page_of(session, rows[-1][0] - 1, count, who) if rows else []


@dataclass(frozen=True)
class Balance:
    """A budget in a line: what is spent and left of it."""

    name: str
    spent: str
    left: str
    cap: str
    bar: Markup


@dataclass(frozen=True)
class Account:
    """A budget on a page: its balance, drawn over time, and how many questions that is."""

    balance: Balance
    past: Markup
    likes: tuple[tuple[str, str], ...]


def balance(name: str, standing: Standing) -> Balance:
    """What is spent and left of a budget."""
    drawn = charts.used(share(standing.spent, standing.cap))
    return Balance(name, spent_text(standing), rounded_down(standing.remaining), shown(standing.cap.epsilon), drawn)


def rounded_down(grains: int) -> str:
    """An epsilon that is left, in at most four decimals: so much there is at least."""
    unit = GRAINS_PER_EPSILON // 10_000
    return shown(grains // unit * unit)


def account(curator: Curator, name: str, who: str, standing: Standing) -> Account:
    """A budget with its past; that of all together where `who` is nobody's."""
    mine = _newest(curator, who if who != ALL else None, _PAST)
    charges = [entry for entry in mine if entry.charge != Cost.zero() and (who != ALL or entry.shared)]
    likes = []
    if charges and who != ALL:
        last = charges[-1].charge
        likes.append((f"the last one, at epsilon {last.shown}", counted(times(last, standing))))
    for price in _LIKE:
        one = cost(LaplaceNoise(1 / Fraction(price), 1))
        likes.append((f"a count at epsilon {price}", counted(times(one, standing))))
    return Account(balance(name, standing), _past(charges, standing, whole=who == ALL), tuple(likes))


def _past(charges: Sequence[Entry], standing: Standing, *, whole: bool) -> Markup:
    """The part of a budget used, over time."""
    if not charges:
        return Markup()
    thin = max(1, len(charges) // _POINTS)
    kept = [*charges[:-1:thin], charges[-1]]
    points = []
    for entry in kept:
        spent = entry.overall if whole else entry.spent
        points.append((_seconds(entry.time), min(1.0, share(spent, standing.cap))))
    first, now = points[0][0], datetime.now(UTC).timestamp()
    start = first - max(1.0, (now - first) * 0.1)
    if kept[0] is charges[0] and len(charges) < _PAST:
        points.insert(0, (start, 0.0))
    points = [(start, points[0][1]), *points, (max(now, points[-1][0]), points[-1][1])]
    end = points[-1][0]
    return charts.plot(
        Scale(start, end, right=99),
        Scale(0, 1, count=2),
        [Line(points, "first", steps=True)],
        [Mark(end, points[-1][1])],
        title="The part of the budget used, over time",
        percent=True,
        dates=[(start, _when(start, end)), (end, "now")],
        height=180,
    )


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _when(start: float, end: float) -> str:
    moment_of = datetime.fromtimestamp(start, UTC)
    return f"{moment_of:%H:%M}" if end - start < 86_400 else f"{moment_of:%Y-%m-%d}"


def moment(time: str) -> str:
    """A moment as people read it, in UTC."""
    return time[:16].replace("T", " ")
