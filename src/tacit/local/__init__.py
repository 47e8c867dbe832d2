"""The local model: people randomize what they send, and the collector estimates. Nobody need be trusted.

>>> from tacit.local import Summary, best
>>> from tacit.sampling.bits import ReplayBits
>>> protocol = best(domain=3, epsilon=2, users=1000).protocol
>>> reports = protocol.encode([0] * 700 + [2] * 300, ReplayBits(b"example"))  # each on its sender's machine
>>> found = Summary.empty(protocol).add(reports).estimate(confidence=0.95)
>>> bool((found.low <= [0.7, 0, 0.3]).all() and (found.high >= [0.7, 0, 0.3]).all())
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.local.attributes import Attributes as Attributes
    from tacit.local.estimates import Estimates as Estimates
    from tacit.local.frequency import Frequency as Frequency
    from tacit.local.grid import Grid as Grid
    from tacit.local.hadamard import Hadamard as Hadamard
    from tacit.local.hashing import LocalHashing as LocalHashing
    from tacit.local.heavy import Heavy as Heavy
    from tacit.local.intake import Intake as Intake
    from tacit.local.k_ary import KAry as KAry
    from tacit.local.mean import Hybrid as Hybrid
    from tacit.local.mean import Piecewise as Piecewise
    from tacit.local.mean import Rounding as Rounding
    from tacit.local.memoize import Memo as Memo
    from tacit.local.projective import Projective as Projective
    from tacit.local.ranges import Ranges as Ranges
    from tacit.local.rappor import Rappor as Rappor
    from tacit.local.recommend import best as best
    from tacit.local.shuffle import Shuffled as Shuffled
    from tacit.local.sketch import Sketch as Sketch
    from tacit.local.subset import SubsetSelection as SubsetSelection
    from tacit.local.summary import Summary as Summary
    from tacit.local.tally import Average as Average
    from tacit.local.tally import Tally as Tally
    from tacit.local.unary import OptimizedUnary as OptimizedUnary
    from tacit.local.unary import SymmetricUnary as SymmetricUnary

__all__ = [
    "Attributes",
    "Average",
    "Estimates",
    "Frequency",
    "Grid",
    "Hadamard",
    "Heavy",
    "Hybrid",
    "Intake",
    "KAry",
    "LocalHashing",
    "Memo",
    "OptimizedUnary",
    "Piecewise",
    "Projective",
    "Ranges",
    "Rappor",
    "Rounding",
    "Shuffled",
    "Sketch",
    "SubsetSelection",
    "Summary",
    "SymmetricUnary",
    "Tally",
    "best",
]

_HOMES = {
    "Attributes": "attributes",
    "Average": "tally",
    "Estimates": "estimates",
    "Frequency": "frequency",
    "Grid": "grid",
    "Hadamard": "hadamard",
    "Heavy": "heavy",
    "Hybrid": "mean",
    "Intake": "intake",
    "KAry": "k_ary",
    "LocalHashing": "hashing",
    "Memo": "memoize",
    "OptimizedUnary": "unary",
    "Piecewise": "mean",
    "Projective": "projective",
    "Ranges": "ranges",
    "Rappor": "rappor",
    "Rounding": "mean",
    "Shuffled": "shuffle",
    "Sketch": "sketch",
    "SubsetSelection": "subset",
    "Summary": "summary",
    "SymmetricUnary": "unary",
    "Tally": "tally",
    "best": "recommend",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"the local model has no {name!r}")
    return getattr(import_module(f"tacit.local.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
