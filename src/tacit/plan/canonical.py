"""The tags of measurements and mechanisms: how they are written where keys are hashed. A written name never changes."""

from __future__ import annotations

from tacit.aggregates.base import QuantileMeasurement, QuantizedArgument, TopKMeasurement, VectorMeasurement
from tacit.canonical import Table, tag
from tacit.mechanisms.clip_for_noise import ClipForNoise
from tacit.mechanisms.clipped_sum import ClippedSum
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.partition import PartitionSelection
from tacit.mechanisms.permute_and_flip import PermuteAndFlip
from tacit.mechanisms.quantile import Quantile
from tacit.mechanisms.threshold import Threshold
from tacit.mechanisms.top_k import TopK
from tacit.mechanisms.weighted_selection import WeightedGaussianSelection
from tacit.plan.noise import Shown
from tacit.query.canonical import NODES

PLANS: Table = {
    **NODES,
    ClipForNoise: tag("ClipForNoise", "epsilon noise groups neighbors largest row"),
    ClippedSum: tag("ClippedSum", "epsilon delta groups neighbors largest nonnegative row"),
    Gaussian: tag("Gaussian", "variance"),
    QuantizedArgument: tag("Grid", "scalar step lower upper"),
    Laplace: tag("Laplace", "scale"),
    TopKMeasurement: tag("Most", "measure values count=k"),
    PartitionSelection: tag("PartitionSelection", "epsilon delta groups"),
    PermuteAndFlip: tag("PermuteAndFlip", "epsilon sensitivity monotone"),
    Quantile: tag("Quantile", "epsilon share rows neighbors lower upper target"),
    QuantileMeasurement: tag("Rank", "measure share=level grid=argument"),
    Shown: tag("Shown", "mechanism part"),
    Threshold: tag("Threshold", "scale delta groups rows"),
    TopK: tag("TopK", "epsilon count sensitivity monotone"),
    WeightedGaussianSelection: tag("WeightedGaussianSelection", "rho delta groups neighbors rounds"),
    VectorMeasurement: tag("Vector", "terms lower upper unit once=is_per_unit", kept=True),
}
