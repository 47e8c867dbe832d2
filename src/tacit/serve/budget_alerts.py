"""Alerts for the owner when a budget runs low: a line in the log, a gauge, and a webhook.

**Rule.** What is reached is decided from the ledger, so a restart forgets nothing: an alert is sent until its webhook
has taken it, and is then noted in a file, so that it comes at least once and, while that file is kept, no second time.
The log and the webhook are noted apart. Of a cap that refreshes, this month is looked at and the last earlier one that
has entries; an alert of a month that is not delivered when the month ends is kept until it is. Nothing here is on the
way of a question: one thread reads the ledger and sends. An alert has names of accounts and sums of epsilon, which the
ledger holds, and nothing of rows.

>>> BudgetAlert("ada", Fraction(4, 5), 0.8, "0.8", "1", "").to_dict()["threshold"]
0.8
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from tacit.accounting.filters import BudgetStatus, format_epsilon, fraction_used
from tacit.curator.all_budgets import AllBudgets
from tacit.curator.curator import Curator
from tacit.errors import TacitError
from tacit.ledger.budget import OWNER
from tacit.ledger.reader import LedgerReader
from tacit.serve.alert_notes import read_notes, write_notes
from tacit.serve.alert_webhook import AlertWebhook

_log = logging.getLogger("tacit.alerts")

THRESHOLDS = (Fraction(80, 100), Fraction(95, 100))
OVERALL = "(all)"
"""The account of all analysts together; no analyst's name begins with a parenthesis."""
_POLL = 5.0  # seconds between two looks at the ledger
_LONGEST_PAUSE = 300.0  # seconds between two attempts to send


@dataclass(frozen=True)
class BudgetAlert:
    """That an account has spent a share of its budget: `threshold`, and by now `share`; in a month, where it refreshes.

    `id` is the same for the same threshold of the same budget: another month or another cap is another budget. `limits`
    are the cap's grains other than epsilon's, where it has a delta: a change of the delta alone changes them.
    """

    account: str
    threshold: Fraction
    share: float
    spent: str
    cap: str
    month: str
    limits: tuple[int, ...] = ()

    @property
    def id(self) -> str:
        """What tells one alert from another, for whoever receives it twice."""
        known = json.dumps([self.account, str(self.threshold), self.cap, self.month, *self.limits])
        return hashlib.sha256(known.encode()).hexdigest()[:32]

    def to_dict(self) -> dict[str, Any]:
        """The alert as plain values, as the log and the webhook have it."""
        return {
            "event": "budget-low",
            "id": self.id,
            "account": self.account,
            "threshold": float(self.threshold),
            "share": round(self.share, 4),
            "spent_epsilon": self.spent,
            "cap_epsilon": self.cap,
            **({"month": self.month} if self.month else {}),
        }

    def to_note(self) -> dict[str, Any]:
        """All of the alert as plain values, from which `from_note` makes the same."""
        return {**vars(self), "threshold": str(self.threshold), "limits": list(self.limits)}

    @classmethod
    def from_note(cls, note: Mapping[str, Any]) -> Self:
        """The alert of a note; a ValueError, TypeError or KeyError where it is none."""
        texts = {name: str(note[name]) for name in ("account", "spent", "cap", "month")}
        limits = tuple(int(each) for each in note["limits"])
        return cls(threshold=Fraction(note["threshold"]), share=float(note["share"]), limits=limits, **texts)


def list_shares(budgets: AllBudgets) -> dict[str, float]:
    """The share of each account's budget that is spent: of all together, and of each analyst in their month."""
    found = {OVERALL: fraction_used(budgets.overall.spent, budgets.overall.cap)}
    each = {name: status for name, status in budgets.analysts.items() if name != OWNER}
    return found | {name: fraction_used(status.spent, status.cap) for name, status in each.items()}


def measure_budgets(budgets: AllBudgets) -> dict[str, float]:
    """The gauges of budgets, which name nobody: the share that all have spent, and the largest of any analyst."""
    shares = list_shares(budgets)
    overall = shares.pop(OVERALL)
    found = {"budget_spent_ratio": overall, "analyst_budget_spent_ratio_max": max(shares.values(), default=0.0)}
    return {name: round(share, 3) for name, share in found.items()}


def find_alerts(budgets: AllBudgets, thresholds: Iterable[Fraction]) -> list[BudgetAlert]:
    """The thresholds that accounts have reached."""
    accounts: dict[str, BudgetStatus] = {OVERALL: budgets.overall, **budgets.analysts}
    least = sorted(thresholds)
    return [
        alert
        for name in list_shares(budgets)
        for alert in _compare(name, accounts[name], budgets.months.get(name, ""), least)
    ]


def find_earlier_alerts(budgets: AllBudgets, ledger: LedgerReader, thresholds: Iterable[Fraction]) -> list[BudgetAlert]:
    """The thresholds that accounts with a monthly budget had reached in the last earlier month that has entries."""
    least = sorted(thresholds)
    earlier = {name: ledger.total_before(name) for name, month in budgets.months.items() if month and name != OWNER}
    return [
        alert
        for name, total in earlier.items()
        if total is not None
        for alert in _compare(name, total.standing, total.month, least)
    ]


def _compare(name: str, status: BudgetStatus, month: str, thresholds: Iterable[Fraction]) -> list[BudgetAlert]:
    share = fraction_used(status.spent, status.cap)
    spent, cap = format_epsilon(status.spent.epsilon), format_epsilon(status.cap.epsilon)
    limits = status.cap.grains[1:] if any(status.cap.grains[1:]) else ()
    return [
        BudgetAlert(name, threshold, share, spent, cap, month, limits)
        for threshold in thresholds
        if share >= float(threshold)  # both rounded alike: 95 of 100 is 0.95
    ]


class BudgetAlerts:
    """Looks at the ledger from time to time, and sends what was not sent before.

    `curator` gives the one that is served now. `sent` is the file that holds what was sent, or None, where it is not
    remembered beyond this process. Without a `webhook` an alert is a line in the log; a webhook that is set later gets
    what is reached then.
    """

    def __init__(
        self,
        curator: Callable[[], Curator],
        *,
        thresholds: Sequence[Fraction] = THRESHOLDS,
        webhook: AlertWebhook | None = None,
        sent: Path | None = None,
        poll: float = _POLL,
        pause: float = 1.0,
    ) -> None:
        self._curator = curator
        self._thresholds = tuple(thresholds)
        self._webhook = webhook
        self._file = sent
        self._poll = poll
        self._first_pause = pause
        self._pause = 0.0
        self._next_try = 0.0
        self._head: str | None = None  # of the ledger when all that it says was sent
        self._notes = self._written = read_notes(sent)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tacit-alerts", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self, patience: float = 2.0) -> None:
        """Look no more, and wait a little for what is being sent: what is not sent is sent after the next start."""
        self._stopping.set()
        self._thread.join(patience)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._look()
            except TacitError as error:
                _log.error("budgets cannot be read for alerts now: %s", error.code)
            except Exception as error:  # noqa: BLE001 - whatever it was, the next look may go well
                _log.error("budgets cannot be read for alerts now: %s", type(error).__name__)
            waits = max(0.0, self._next_try - time.monotonic()) if self._pause else self._poll
            self._stopping.wait(min(self._poll, waits) if waits else 0.001)

    def _look(self) -> None:
        """Send what is reached and was not sent. Where the ledger is as it was, and all is sent, nothing is new."""
        curator = self._curator()
        head = curator.ledger.head()
        if head == self._head:
            return
        budgets = AllBudgets.of(curator.policy, curator.ledger)
        earlier = find_earlier_alerts(budgets, curator.ledger, self._thresholds)
        reached = earlier + find_alerts(budgets, self._thresholds)
        kept = self._keep_waiting(budgets, {alert.id for alert in reached})
        alerts = kept + reached
        ids = {alert.id for alert in alerts}
        for alert in alerts:
            if alert.id not in self._notes.logged:
                _log.warning("budget-low %s", json.dumps(alert.to_dict(), ensure_ascii=False))
        posted = self._notes.posted & ids
        self._notes = replace(self._notes, logged=frozenset(ids))
        if self._webhook is not None:
            posted |= {alert.id for alert in alerts if alert.id not in posted and self._send(self._webhook, alert)}
            kept = [alert for alert in alerts if alert.month and alert.id not in posted]
        self._notes = replace(self._notes, posted=posted, waiting=tuple(alert.to_note() for alert in kept))
        if self._notes != self._written:
            self._written = self._notes
            write_notes(self._file, self._notes)
        self._head = head if self._webhook is None or posted == ids else None

    def _keep_waiting(self, budgets: AllBudgets, reached: set[str]) -> list[BudgetAlert]:
        """The alerts of months that are over which no look at the ledger finds again, and which are not delivered."""
        found = []
        for note in self._notes.waiting:
            try:
                alert = BudgetAlert.from_note(note)
            except (ValueError, TypeError, KeyError, ArithmeticError):
                _log.error("an alert that was noted cannot be read")
                continue
            if alert.month != budgets.months.get(alert.account) and alert.id not in reached:
                found.append(alert)
        return found

    def _send(self, webhook: AlertWebhook, alert: BudgetAlert) -> bool:
        """Whether the alert has arrived. After a failure nothing is tried for a while, twice as long each time."""
        if self._stopping.is_set() or time.monotonic() < self._next_try:
            return False
        problem = webhook.post(alert.to_dict(), alert.id)
        if not problem:
            self._pause = self._next_try = 0.0
            return True
        self._pause = min(_LONGEST_PAUSE, 2 * self._pause or self._first_pause)
        self._next_try = time.monotonic() + self._pause
        _log.error("the webhook for alerts has failed, and is tried again in %.0f seconds: %s", self._pause, problem)
        return False
