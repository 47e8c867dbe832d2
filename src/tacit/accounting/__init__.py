"""What privacy losses add up to, and whether a budget still admits one.

>>> from tacit.accounting import epsilon
>>> from tacit.privacy import GaussianNoise, Repeat
>>> round(epsilon(Repeat(GaussianNoise(variance=100, shift=1), times=10), delta=1e-6), 2)
1.37
"""

from tacit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
