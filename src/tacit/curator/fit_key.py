"""The tags of features, losses and methods: how they are written where the key of a fit is hashed."""

from __future__ import annotations

from tacit.canonical import Table, tag
from tacit.engines.unit_rows import OneRowPerUnit
from tacit.learn import losses, tree_averages, tree_losses
from tacit.learn.boosted_trees import BoostedTrees
from tacit.learn.feature_encoding import Feature, FeatureEncoding
from tacit.learn.gradient import NoisyGradientDescent
from tacit.learn.moments import SufficientStatistics
from tacit.learn.multiclass_hinge import MulticlassHinge
from tacit.learn.network import NetworkLoss, NetworkTraining
from tacit.learn.newton import NoisyNewton, NoisySecondMoments
from tacit.learn.noise import GridGaussian
from tacit.learn.objective import ObjectivePerturbation
from tacit.learn.output import GridLaplace, OutputPerturbation
from tacit.learn.penalized_sums import PenalizedSums
from tacit.learn.tree_release import TreeReleases
from tacit.mechanisms.exponential import Exponential
from tacit.plan.canonical import PLANS
from tacit.privacy import loss

FITS: Table = {
    **PLANS,
    BoostedTrees: tag("Boosting", "releases loss learning_rate"),
    Exponential: tag("Exponential", "epsilon sensitivity monotone"),
    Feature: tag("Feature", "name lower upper values other"),
    FeatureEncoding: tag("Features", "all"),
    NoisyGradientDescent: tag("Gradient", "noise steps rate cut penalty neighbors"),
    GridLaplace: tag("LaplaceGrid", "epsilon sensitivity coordinates"),
    MulticlassHinge: tag("MulticlassHinge", "classes width"),
    PenalizedSums: tag("PenalizedSums", "sums l1 l2 constant"),
    SufficientStatistics: tag("Moments", "second noise bound penalty neighbors"),
    NetworkLoss: tag("NetworkLoss", "name outputs"),
    NetworkTraining: tag(
        "NetworkTraining", "widths batch epochs learning_rate clip sampling rate steps multiplier stray"
    ),
    NoisyNewton: tag("Newton", "second noise steps cut penalty neighbors"),
    GridGaussian: tag("Noise", "sigma sensitivity coordinates"),
    ObjectivePerturbation: tag("Objective", "main rest sigma last loss norm rows neighbors penalty cut"),
    OneRowPerUnit: tag("OneEach", "source where unit columns salt"),
    OutputPerturbation: tag("Output", "noise loss norm rows neighbors penalty cut"),
    NoisySecondMoments: tag("Second", "sigma features neighbors"),
    TreeReleases: tag("Trees", "trees depth outputs most_leaves noise choice neighbors roots"),
    tree_averages.AveragedTrees: tag("Forest", "releases loss columns"),
    tree_averages.ClassCounts: tag("ClassCounts", "classes"),
    tree_averages.TargetSums: tag("TargetSums", "outputs"),
    tree_losses.LogisticTreeLoss: tag("LogisticTree", "outputs cut bend longest"),
    tree_losses.MultinomialTreeLoss: tag("MultinomialTree", "classes"),
    tree_losses.SquaredTreeLoss: tag("SquaredTree", "outputs cut bend longest"),
    losses.SmoothedHinge: tag("Huber", "width"),
    losses.LogisticLoss: tag("Logistic", "cut"),
    losses.MultinomialLoss: tag("Multinomial", "classes"),
    losses.HuberLoss: tag("Squared", "target_bound prediction_bound"),
    loss.ApproximateDp: tag("Approximate", "epsilon delta"),
    loss.BoundedRange: tag("BoundedRange", "epsilon"),
    loss.Compose: tag("Compose", "parts"),
    loss.ConcentratedDp: tag("Concentrated", "rho"),
    loss.GaussianNoise: tag("GaussianNoise", "variance shift coordinates"),
    loss.Group: tag("Group", "loss size"),
    loss.LaplaceNoise: tag("LaplaceNoise", "scale sensitivity"),
    loss.Parallel: tag("Parallel", "parts neighbors"),
    loss.PureDp: tag("Pure", "epsilon"),
    loss.Repeat: tag("Repeat", "loss times"),
    loss.Sampled: tag("Sampled", "loss rate"),
}
