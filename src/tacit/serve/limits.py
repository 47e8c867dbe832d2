"""How often: so many requests a second for each person, and ever longer waits after wrong keys and passwords.

>>> rate = RateLimiter(per_second=1.0, burst=2)
>>> [rate.take("ada", now=0.0) for _ in range(3)]  # the third must wait a second
[0.0, 0.0, 1.0]
>>> rate.take("ada", now=1.0)
0.0
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tacit.errors import ErrorCode, Refused
from tacit.serve.addresses import address_group

LONGEST = 4.0  # seconds that a try may have to wait
_FIRST = 0.25  # seconds after one failure too many; each further one doubles them
_MOST_WAITING = 64  # tries of one address that wait or are checked
_KEPT = 4  # one in so many places is kept for accounts without failures
_MOST_COUNTED = 20  # failures: a minute after the last one, tries are free again
_MOST = 20_000  # names or addresses kept; those unused for longest are forgotten first


class RateLimiter:
    """A bucket of `burst` tokens for each name, refilled at `per_second`.

    In any stretch of t seconds a name is granted at most burst + t * per_second requests. Proof: every grant takes a
    token, a bucket never holds more than `burst`, and t seconds add at most t * per_second. A name that is forgotten
    was unused for longer than others, and starts full.
    """

    def __init__(self, per_second: float, burst: int) -> None:
        self.per_second = per_second
        self.burst = burst
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and when there were so many

    def take(self, name: str, now: float | None = None) -> float:
        """Take a token: 0 where there is one, else the seconds until there is."""
        return self._ask(name, now, take=True)

    def wait(self, name: str, now: float | None = None) -> float:
        """The seconds until there is a token. None is taken."""
        return self._ask(name, now, take=False)

    def _ask(self, name: str, now: float | None, *, take: bool) -> float:
        now = time.monotonic() if now is None else now
        with self._lock:
            tokens, then = self._buckets.pop(name, (float(self.burst), now))
            tokens = min(float(self.burst), tokens + max(0.0, now - then) * self.per_second)
            granted = tokens >= 1
            self._buckets[name] = (tokens - 1 if granted and take else tokens, now)
            while len(self._buckets) > _MOST:
                self._buckets.popitem(last=False)
        return 0.0 if granted else (1 - tokens) / self.per_second


class FailedAttempts:
    """Tries to be let in, by account and address: ten failures are free, each further one makes the next try wait.

    A try counts as a failure from its beginning until it has succeeded, so tries at the same time count each other.
    Failures are counted for an account from an address and for the address alone, and the longer wait holds. They are
    forgotten at one every six seconds.

    No try waits for more than four seconds, and then it is checked. At a time 64 tries of an address have a place, in
    which they wait or are checked; a further one is refused at once. Of these places 16 are kept for first tries: of an
    account that has no failure from this address and no other try in a place.

    **Theorem.** A first try is refused only while first tries of 16 other accounts have places of its address. Proof:
    it is refused only where all 64 places are taken. Other tries get a place only where fewer than 48 are taken, so
    they have 48 at most, and the rest are first tries. An account has one of these at a time, by their definition.

    So whoever guesses at one account, or at any that have failed there, keeps no other account from signing in. What
    does not hold: the account itself can be kept out from the address that the guesses come from, while they last; and
    so can all accounts there, by guesses at ever new names or keys, which need not exist. From an address without
    failures, a try is checked at once, whatever happens elsewhere.

    **Nobody learns who exists.** What is counted does not depend on whether the account does. Names are kept as hashes,
    for the 20,000 that failed last and for the tries in the places, so invented ones take no more memory.
    """

    def __init__(self, free: int = 10, per_second: float = 1 / 6) -> None:
        self._free = free
        self._per_second = per_second
        self._lock = threading.Lock()
        self._failures: OrderedDict[bytes, tuple[float, float]] = OrderedDict()  # how many, and when there were
        self._waiting: Counter[bytes] = Counter()  # by account and address, and by address

    @asynccontextmanager
    async def trying(self, account: str, address: str) -> AsyncIterator[Try]:
        """Wait as long as a try must; call `record_success` on what is yielded where the password or key was right."""
        group = address_group(address)
        names = _names(account, group)
        if not self._has_place(*names):
            fix = f"wait {LONGEST:.0f} seconds"
            what = "too many tries from this address are waiting"
            raise Refused(ErrorCode.RATE, what, fix=fix, retry_after=LONGEST)
        self._waiting.update(names)
        try:
            tried = Try()
            await asyncio.sleep(self.begin(account, group))
            yield tried
            if tried.right:
                self.record_success(account, group)
        finally:
            for name in names:
                self._waiting[name] -= 1
                if not self._waiting[name]:
                    del self._waiting[name]

    def _has_place(self, own: bytes, shared: bytes) -> bool:
        """Whether one more try of an account from an address may wait."""
        is_first = not self._waiting[own] and self._add(own, 0, time.monotonic()) == 0
        return self._waiting[shared] < _MOST_WAITING - (0 if is_first else _MOST_WAITING // _KEPT)

    def begin(self, account: str, group: str, now: float | None = None) -> float:
        """Count a try, and return the seconds that it must wait."""
        now = time.monotonic() if now is None else now
        failed = max(self._add(name, 1, now) for name in _names(account, group))
        return min(LONGEST, _FIRST * 2 ** (failed - self._free - 1)) if failed > self._free else 0.0

    def record_success(self, account: str, group: str, now: float | None = None) -> None:
        """Forget the failures of an account from an address; of the address itself, only this try."""
        now = time.monotonic() if now is None else now
        own, shared = _names(account, group)
        self._add(own, -_MOST_COUNTED, now)
        self._add(shared, -1, now)  # or an own account would pay for guesses at another

    def _add(self, name: bytes, change: float, now: float) -> float:
        with self._lock:
            count, then = self._failures.pop(name, (0.0, now))
            count = max(0.0, count - max(0.0, now - then) * self._per_second) + change
            count = min(float(_MOST_COUNTED), max(0.0, count))
            if count > 0:
                self._failures[name] = (count, now)
            while len(self._failures) > _MOST:
                self._failures.popitem(last=False)
        return count


class Try:
    """One try to be let in."""

    right = False

    def record_success(self) -> None:
        """The key or the password was right."""
        self.right = True


def _names(account: str, group: str) -> tuple[bytes, bytes]:
    """What tries and failures are counted under, of one length whatever was sent."""
    both = (f"{group}\0{account}", group)
    own, shared = (hashlib.blake2b(each.encode("utf-8", "surrogatepass"), digest_size=16).digest() for each in both)
    return own, shared
