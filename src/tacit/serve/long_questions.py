"""Questions of many cells, released in a process of their own over a copy of the same data."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from tacit.curator.ask import release
from tacit.curator.curator import Curator
from tacit.curator.resources import open_engine
from tacit.engines.base import TableEngine
from tacit.plan.compound_plan import AnyPlan
from tacit.policy.model import Policy
from tacit.sampling.bits import SystemBits
from tacit.serve.background import BackgroundProcess, ProcessClosed, ProcessDied

Digests = Mapping[str, str]


class LongQuestions:
    """Releases plans for a curator in another process, one at a time.

    The process opens the policy's data itself. Where that lies in a file, it attaches the file that is there and makes
    none: the next epoch may be prepared already. **Rule.** It answers only where it has read what the curator has read:
    a digest for each table says so, and is compared before a question is charged and again before it is released. A
    question whose process dies has failed: that it died may depend on rows, so the charge stays, and nothing of the
    question runs again.

    What is read live, data that was handed over, and bits that are not the system's stay in the curator's own process;
    so does every question until the other process has opened the data, for which nobody waits.
    """

    def __init__(self, curator: Curator) -> None:
        self._policy = curator.policy
        self._digests: Digests = {}
        if isinstance(curator.policy.source, Path) and type(curator.bits) is SystemBits:
            self._digests = getattr(curator.engine, "source_digests", dict)()
        self._process = BackgroundProcess()
        self._lock = threading.Lock()
        self._opening: threading.Thread | None = None
        self._is_open = False

    def is_open(self) -> bool:
        """Whether the other process has the curator's data. It begins to open it where it has not."""
        with self._lock:
            if self._process.has_ended:
                self._is_open = False
            if self._digests and not self._is_open and self._opening is None:
                self._opening = threading.Thread(target=self._open, name="tacit-long-questions", daemon=True)
                self._opening.start()
            return self._is_open

    def release(self, plan: AnyPlan, seconds: float | None) -> bytes:
        """Return the noisy values of a plan, as `ask.release` does here; raise ProcessDied where that process died."""
        try:
            return self._process.call_once(_release, self._policy, self._digests, plan, seconds)
        except ProcessDied:
            self._note_opening(False)
            raise

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _open(self) -> None:
        try:
            found = self._process.call_once(_has_data, self._policy, self._digests)
            self._digests = self._digests if found else {}  # other data, or none: no reason to try again
        except (ProcessDied, ProcessClosed):
            found = False
        self._note_opening(found)

    def _note_opening(self, found: bool) -> None:
        with self._lock:
            self._is_open, self._opening = found, None


# In the other process


@lru_cache(maxsize=1)
def _open(policy: Policy) -> TableEngine:
    return open_engine(policy, makes_copy=False)


def _has_data(policy: Policy, digests: Digests) -> bool:
    try:
        return _open(policy).source_digests() == digests
    except Exception:  # noqa: BLE001 - whatever keeps it from opening, the curator has the data
        return False


def _release(policy: Policy, digests: Digests, plan: AnyPlan, seconds: float | None) -> bytes:
    engine = _open(policy)
    if engine.source_digests() != digests:
        raise RuntimeError("the source has changed since the curator read it")
    return release(plan, engine, SystemBits(), seconds)
