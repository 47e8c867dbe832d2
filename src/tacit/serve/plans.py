"""Plans that were made before. A plan is a function of the text, the price and the policy, so the same one may serve
again: a repeat then costs no planning, and a client that describes a question before it asks plans once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tacit.aggregates.registry import read_question
from tacit.errors import Code, Refused
from tacit.plan.accuracy import Price
from tacit.plan.plan import Plan
from tacit.policy.model import Policy
from tacit.query.nodes import Query

CELLS = 100_000  # values that a question may release or show: some seconds of work
_MOST = 500
_LONGEST = 5_000  # characters of a question worth remembering


class Plans:
    """The plans made last under one policy. Threads may share it. A refusal is not remembered.

    A question of more than `cells` values is refused: how many there are is a function of the question and the policy.
    """

    def __init__(self, policy: Policy, cells: int = CELLS) -> None:
        self._whole = policy
        self._cells = cells
        self._lock = threading.Lock()
        self._made: OrderedDict[Hashable, Plan] = OrderedDict()

    def priced(self, who: str, sql: str, epsilon: Any, within: Mapping[str, Any] | None) -> Remembering:
        """A price that looks here before it plans this question of this analyst's."""
        return Remembering(epsilon, within, sql, self, self._whole.asked_by(who))

    def plan(self, price: Remembering, confidence: Fraction, query: Query | None = None) -> Plan:
        """The plan of a question at a price: one made before, or a new one."""
        key = _key(price, confidence)
        with self._lock:
            found = self._made.get(key) if key is not None else None
            if found is not None:
                self._made.move_to_end(key)
                return found
        asked = read_question(price.text) if query is None else query
        made = Price(price.epsilon, price.within).plan(asked, price.policy or self._whole, confidence)
        if made.cells > self._cells:
            what = f"the answer would have up to {made.cells:,} cells, groups by columns; {self._cells:,} is the most"
            fix = "ask for fewer columns at a time, or group by fewer or coarser keys: FLOOR(age / 10)"
            raise Refused(Code.TOO_LARGE, what, at=asked.at, fix=fix)
        if key is not None:
            with self._lock:
                self._made[key] = made
                while len(self._made) > _MOST:
                    self._made.popitem(last=False)
        return made


@dataclass(frozen=True)
class Remembering(Price):
    """A price of one question, planned through `plans`."""

    text: str = ""
    plans: Plans | None = None
    policy: Policy | None = None  # for whoever asks
    _made: Plan | None = None

    def planned(self, confidence: Fraction) -> Remembering:
        """The same price with its plan made, which is not made again."""
        assert self.plans is not None
        return replace(self, _made=self.plans.plan(self, confidence))

    @property
    def made(self) -> Plan:
        """The plan that `planned` made."""
        assert self._made is not None
        return self._made

    def plan(self, query: Query, policy: Policy, confidence: Fraction) -> Plan:
        """The plan at this price."""
        if self._made is not None:
            return self._made
        return (
            super().plan(query, policy, confidence) if self.plans is None else self.plans.plan(self, confidence, query)
        )


def _key(price: Remembering, confidence: Fraction) -> Hashable | None:
    """What a plan depends on, each number with its type, because 1 and True are equal; None for what has no key."""
    if not isinstance(price.text, str) or len(price.text) > _LONGEST:
        return None
    try:
        widths = None if price.within is None else tuple((str(n), type(w), w) for n, w in price.within.items())
        has_delta = price.policy is None or price.policy.has_delta
        key = (price.text, type(price.epsilon), price.epsilon, widths, confidence, has_delta)
        hash(key)
    except (TypeError, AttributeError):
        return None
    return key
