"""The tags of features, losses and methods: how they are written where the key of a fit is hashed."""

from __future__ import annotations

from tacit.canonical import Table, tag
from tacit.curator.features import Feature, Features
from tacit.engines.rows import OneEach
from tacit.learn import losses
from tacit.learn.gradient import Gradient
from tacit.learn.moments import Moments
from tacit.learn.newton import Newton, Second
from tacit.learn.noise import Noise
from tacit.learn.objective import Objective
from tacit.learn.output import LaplaceGrid, Output
from tacit.plan.canonical import PLANS
from tacit.privacy import loss

FITS: Table = {
    **PLANS,
    Feature: tag("Feature", "name lower upper values other"),
    Features: tag("Features", "all"),
    Gradient: tag("Gradient", "noise steps rate cut penalty neighbors"),
    LaplaceGrid: tag("LaplaceGrid", "epsilon sensitivity coordinates"),
    Moments: tag("Moments", "second noise bound penalty neighbors"),
    Newton: tag("Newton", "second noise steps cut penalty neighbors"),
    Noise: tag("Noise", "sigma sensitivity coordinates"),
    Objective: tag("Objective", "main rest sigma last loss norm rows neighbors penalty cut"),
    OneEach: tag("OneEach", "source where unit columns salt"),
    Output: tag("Output", "noise loss norm rows neighbors penalty cut"),
    Second: tag("Second", "sigma features neighbors"),
    losses.Huber: tag("Huber", "width"),
    losses.Logistic: tag("Logistic", "cut"),
    losses.Multinomial: tag("Multinomial", "classes"),
    losses.Squared: tag("Squared", "target_bound prediction_bound"),
    loss.Approximate: tag("Approximate", "epsilon delta"),
    loss.BoundedRange: tag("BoundedRange", "epsilon"),
    loss.Compose: tag("Compose", "parts"),
    loss.Concentrated: tag("Concentrated", "rho"),
    loss.GaussianNoise: tag("GaussianNoise", "variance shift coordinates"),
    loss.Group: tag("Group", "loss size"),
    loss.LaplaceNoise: tag("LaplaceNoise", "scale sensitivity"),
    loss.Parallel: tag("Parallel", "parts neighbors"),
    loss.Pure: tag("Pure", "epsilon"),
    loss.Repeat: tag("Repeat", "loss times"),
    loss.Sampled: tag("Sampled", "loss rate"),
}
