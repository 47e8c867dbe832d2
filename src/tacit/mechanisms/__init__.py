"""One file a mechanism: its law, its loss, its release, its error.

>>> from tacit.mechanisms import Laplace
>>> Laplace.calibrated(epsilon=0.5, sensitivity=1).scale
Fraction(2, 1)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.mechanisms.exponential import Exponential as Exponential
    from tacit.mechanisms.gaussian import Gaussian as Gaussian
    from tacit.mechanisms.laplace import Laplace as Laplace
    from tacit.mechanisms.noisy_max import NoisyMax as NoisyMax
    from tacit.mechanisms.partition import PartitionSelection as PartitionSelection
    from tacit.mechanisms.permute_and_flip import PermuteAndFlip as PermuteAndFlip
    from tacit.mechanisms.pricing import Pricing as Pricing
    from tacit.mechanisms.propose import ProposedMedian as ProposedMedian
    from tacit.mechanisms.quantile import Quantile as Quantile
    from tacit.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
    from tacit.mechanisms.smooth import SmoothMedian as SmoothMedian
    from tacit.mechanisms.smooth import SmoothSum as SmoothSum
    from tacit.mechanisms.sparse_vector import SparseVector as SparseVector
    from tacit.mechanisms.staircase import Staircase as Staircase
    from tacit.mechanisms.threshold import Threshold as Threshold
    from tacit.mechanisms.top_k import TopK as TopK

_HOMES = {
    "Exponential": "exponential",
    "Gaussian": "gaussian",
    "Laplace": "laplace",
    "NoisyMax": "noisy_max",
    "PartitionSelection": "partition",
    "PermuteAndFlip": "permute_and_flip",
    "Pricing": "pricing",
    "ProposedMedian": "propose",
    "Quantile": "quantile",
    "RandomizedResponse": "randomized_response",
    "SmoothMedian": "smooth",
    "SmoothSum": "smooth",
    "SparseVector": "sparse_vector",
    "Staircase": "staircase",
    "Threshold": "threshold",
    "TopK": "top_k",
}


def __getattr__(name: str) -> Any:
    """Import a mechanism when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"there is no mechanism {name!r}")
    return getattr(import_module(f"tacit.mechanisms.{_HOMES[name]}"), name)
