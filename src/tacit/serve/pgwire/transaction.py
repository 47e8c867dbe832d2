"""Transactions, which change nothing but settings: every answer is durable by itself.

>>> state = Transaction(SessionSettings())
>>> state.begin()
>>> state.assign("tacit.epsilon", "0.5", local=False)
>>> state.roll_back()
>>> state.settings.get("tacit.epsilon")
''
"""

from __future__ import annotations

from tacit.serve.pgwire.settings import PRIVACY_SETTINGS, SessionSettings
from tacit.serve.pgwire.sqlstate import ABORTED, WireError

IDLE, OPEN, FAILED = "I", "T", "E"
SET = "SET"


class Transaction:
    """Where a session stands: outside (I), inside (T), or inside one that failed (E), and its settings."""

    def __init__(self, settings: SessionSettings, source: str = "") -> None:
        self.status = IDLE
        self._source = source  # of the epsilon or accuracy that the session started with
        self.settings = settings
        self._start = settings  # of the session, which RESET goes back to
        self._first = settings  # at BEGIN
        self._last = settings  # at COMMIT, without what was set for this transaction only

    def find_privacy_source(self, settings: SessionSettings) -> str:
        """What set the epsilon or the accuracy of questions: SET, or what the connection started with; "" for none."""
        if not settings.privacy:
            return ""
        return self._source if settings.privacy == self._start.privacy else SET

    def begin(self) -> None:
        """BEGIN; a second one is as good as none."""
        if self.status == IDLE:
            self.status, self._first, self._last = OPEN, self.settings, self.settings

    def commit(self) -> str:
        """COMMIT; of a failed transaction that is ROLLBACK, and the tag says so."""
        if self.status == FAILED:
            self.roll_back()
            return "ROLLBACK"
        if self.status == OPEN:
            self.settings = self._last
        self.status = IDLE
        return "COMMIT"

    def roll_back(self) -> None:
        """ROLLBACK: the settings are what they were."""
        if self.status != IDLE:
            self.settings = self._first
        self.status = IDLE

    def roll_back_to(self) -> None:
        """ROLLBACK TO: a failed transaction continues."""
        if self.status == FAILED:
            self.status = OPEN

    def fail(self) -> None:
        """An error happened."""
        if self.status == OPEN:
            self.status = FAILED

    def check(self) -> None:
        """Nothing but its end is taken in a failed transaction."""
        if self.status == FAILED:
            raise WireError(ABORTED, "the transaction has failed, and nothing more is taken in it", "ROLLBACK")

    def assign(self, name: str, value: str | None, *, local: bool) -> None:
        """Set a setting, or go back to what it was when the session started; no name resets all of them.

        What is LOCAL lasts until the transaction ends.
        """
        changed = self._change(self.settings, name, value)
        if local and self.status == IDLE:
            return  # it would last for this statement only
        if not local:
            self._last = self._change(self._last, name, value)
        self.settings = changed

    def _change(self, settings: SessionSettings, name: str, value: str | None) -> SessionSettings:
        if not name:
            return self._start
        if value is None and name.lower() in PRIVACY_SETTINGS and name.lower() in settings.values:
            return settings.with_privacy_of(self._start)  # setting one of them has reset the other
        return settings.with_value(name, self._start.values.get(name.lower()) if value is None else value)
