"""The vocabulary: who is protected, how much one unit can change, what was done, what it promises."""

from tacit.privacy.loss import (
    ApproximateDp,
    BoundedRange,
    Compose,
    ConcentratedDp,
    ContinuousGaussianNoise,
    ContinuousLaplaceNoise,
    GaussianNoise,
    Group,
    LaplaceNoise,
    Loss,
    Parallel,
    PureDp,
    Repeat,
    Sampled,
)
from tacit.privacy.unit import Neighbors

__all__ = [
    "ApproximateDp",
    "BoundedRange",
    "Compose",
    "ConcentratedDp",
    "ContinuousGaussianNoise",
    "ContinuousLaplaceNoise",
    "GaussianNoise",
    "Group",
    "LaplaceNoise",
    "Loss",
    "Neighbors",
    "Parallel",
    "PureDp",
    "Repeat",
    "Sampled",
]
