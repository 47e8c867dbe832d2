"""What the ledger says of the past: who was charged what and when, and what is left of each budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from markupsafe import Markup

from tacit.accounting.filters import BudgetCharge, BudgetStatus, compute_charge, format_epsilon, fraction_used
from tacit.answers.analyst_budget import describe_spent
from tacit.curator.curator import Curator
from tacit.ledger.entries import ALL_ANALYSTS, Entry, EntryKind
from tacit.ledger.transaction import LedgerTransaction, read_page
from tacit.privacy.loss import LaplaceNoise
from tacit.serve.console import charts
from tacit.serve.console.charts import ChartLine, ChartMark, PercentScale
from tacit.serve.console.estimate import count_affordable, format_count, format_rounded_down

ENTRIES = 40  # of a history
_PAST = 2000  # entries of which a budget's past is drawn
_POINTS = 240  # of a drawing
_COMPARISON_EPSILONS = ("0.01", "0.1", "0.5", "1")  # counts of these epsilons are offered as a measure


@dataclass(frozen=True)
class HistoryRow:
    """One line of a history."""

    entry: int
    time: str
    user: str
    kind: str
    epsilon: str
    key: str
    request: str


def load_history(curator: Curator, user: str | None, count: int = ENTRIES) -> list[HistoryRow]:
    """The newest entries of the ledger, newest first: an analyst's questions, or everything."""
    kinds = {EntryKind.RESERVE, EntryKind.REPEAT} if user is not None else set(EntryKind)
    found = [entry for entry in _read_newest(curator, user, 3 * count) if entry.kind in kinds][-count:]
    return [
        HistoryRow(
            entry.sequence,
            format_time(entry.time),
            entry.analyst,
            str(entry.kind),
            entry.charge.text.partition(",")[0],  # the delta is on the receipt
            entry.key[:12],
            entry.request,
        )
        for entry in reversed(found)
    ]


def _read_newest(curator: Curator, user: str | None, count: int) -> list[Entry]:
    with curator.ledger.store.read() as session:
        if user is None:
            return read_page(session, max(0, LedgerTransaction(session).length - count), count)
        rows = session.run("SELECT sequence FROM entries WHERE who = ? ORDER BY sequence DESC LIMIT ?", (user, count))
        return read_page(session, rows[-1][0] - 1, count, user) if rows else []


@dataclass(frozen=True)
class BudgetSummary:
    """A budget in a line: what is spent and left of it."""

    name: str
    spent: str
    left: str
    cap: str
    bar: Markup


@dataclass(frozen=True)
class BudgetPanel:
    """A budget on a page: its balance, drawn over time, and how many questions that is."""

    balance: BudgetSummary
    past: Markup
    likes: tuple[tuple[str, str], ...]


def summarize_budget(name: str, standing: BudgetStatus) -> BudgetSummary:
    """What is spent and left of a budget."""
    drawn = charts.draw_budget_bar(standing.remaining / (standing.cap.epsilon or 1))
    return BudgetSummary(
        name,
        describe_spent(standing),
        format_rounded_down(standing.remaining),
        format_epsilon(standing.cap.epsilon),
        drawn,
    )


def make_budget_panel(curator: Curator, name: str, user: str, standing: BudgetStatus) -> BudgetPanel:
    """A budget with its past; that of all together where `who` is nobody's."""
    mine = _read_newest(curator, user if user != ALL_ANALYSTS else None, _PAST)
    charges = [
        entry for entry in mine if entry.charge != BudgetCharge.zero() and (user != ALL_ANALYSTS or entry.shared)
    ]
    likes = []
    if charges and user != ALL_ANALYSTS:
        last = charges[-1].charge
        likes.append((f"the last one, at epsilon {last.text}", format_count(count_affordable(last, standing))))
    for price in _COMPARISON_EPSILONS:
        one = compute_charge(LaplaceNoise(1 / Fraction(price), 1))
        likes.append((f"a count at epsilon {price}", format_count(count_affordable(one, standing))))
    return BudgetPanel(
        summarize_budget(name, standing), _draw_history(charges, standing, whole=user == ALL_ANALYSTS), tuple(likes)
    )


def _draw_history(charges: Sequence[Entry], standing: BudgetStatus, *, whole: bool) -> Markup:
    """The part of a budget used, over time."""
    if not charges:
        return Markup()
    thin = max(1, len(charges) // _POINTS)
    kept = [*charges[:-1:thin], charges[-1]]
    points = []
    for entry in kept:
        spent = entry.overall if whole else entry.spent
        points.append((_seconds(entry.time), min(1.0, fraction_used(spent, standing.cap))))
    first, now = points[0][0], datetime.now(UTC).timestamp()
    start = first - max(1.0, (now - first) * 0.1)
    if kept[0] is charges[0] and len(charges) < _PAST:
        points.insert(0, (start, 0.0))
    points = [(start, points[0][1]), *points, (max(now, points[-1][0]), points[-1][1])]
    end = points[-1][0]
    return charts.draw_plot(
        PercentScale(start, end, right=99),
        PercentScale(0, 1, count=2),
        [ChartLine(points, "first", steps=True)],
        [ChartMark(end, points[-1][1])],
        title="The part of the budget used, over time",
        percent=True,
        dates=[(start, _format_start(start, end)), (end, "now")],
        height=180,
    )


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _format_start(start: float, end: float) -> str:
    moment_of = datetime.fromtimestamp(start, UTC)
    return f"{moment_of:%H:%M}" if end - start < 86_400 else f"{moment_of:%Y-%m-%d}"


def format_time(time: str) -> str:
    """A moment as people read it, in UTC."""
    return time[:16].replace("T", " ")
