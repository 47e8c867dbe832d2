"""Interpreters of a loss: what it costs, and whether a budget still admits it.

>>> from fractions import Fraction
>>> from tacit.privacy.loss import GaussianNoise, Repeat
>>> round(epsilon(Repeat(GaussianNoise(variance=Fraction(100), shift=1), 10), delta=1e-6), 2)
1.37
"""

from tacit.accounting.epsilon_delta import METHODS, bounds, delta, epsilon

__all__ = ["METHODS", "bounds", "delta", "epsilon"]
