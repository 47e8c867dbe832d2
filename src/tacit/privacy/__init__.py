"""The vocabulary: who is protected, how much one unit can change, what was done, what it promises."""

from tacit.privacy.loss import (
    Approximate,
    BoundedRange,
    Compose,
    Concentrated,
    ContinuousGaussian,
    ContinuousLaplace,
    GaussianNoise,
    Group,
    LaplaceNoise,
    Loss,
    Parallel,
    Pure,
    Repeat,
    Sampled,
)
from tacit.privacy.unit import Neighbors

__all__ = [
    "Approximate",
    "BoundedRange",
    "Compose",
    "Concentrated",
    "ContinuousGaussian",
    "ContinuousLaplace",
    "GaussianNoise",
    "Group",
    "LaplaceNoise",
    "Loss",
    "Neighbors",
    "Parallel",
    "Pure",
    "Repeat",
    "Sampled",
]
