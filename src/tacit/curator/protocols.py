"""What the story of a question needs of a curator, and what it needs of a plan."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from tacit.engines.base import Engine
from tacit.ledger.entries import Reservation
from tacit.ledger.ledger import Ledger
from tacit.plan.planner import Planner
from tacit.policy.model import Policy
from tacit.privacy.loss import Loss
from tacit.sampling.bits import Bits


class OpenCurator(Protocol):
    """A policy with its engine, its ledger and its source of randomness, all open."""

    policy: Policy
    engine: Engine
    ledger: Ledger
    planner: Planner
    bits: Bits
    live_tables: frozenset[str]  # the private ones that the engine reads whenever they are asked about

    def note_failure(self, claim: Reservation, cause: BaseException) -> bytes | None:
        """Record that a claim failed; return what to show where it was answered meanwhile."""


class ChargedPlan(Protocol):
    """A plan as the ledger sees it: its privacy loss, its key, and the delta that it may be charged by."""

    @property
    def loss(self) -> Loss:
        """The privacy loss of the release."""

    @property
    def key(self) -> str:
        """The name of the question, equal for equal questions."""

    @property
    def tables(self) -> frozenset[str]:
        """The tables that the engine reads."""

    @property
    def delta(self) -> Fraction:
        """What Gaussian noise may be charged by basic composition."""
