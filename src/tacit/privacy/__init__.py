"""The vocabulary: who is protected, how much one unit can change, what was done, what it promises.

>>> from tacit.privacy import Compose, GaussianNoise, LaplaceNoise
>>> loss = Compose((LaplaceNoise(scale=10, sensitivity=1), GaussianNoise(variance=100, shift=1)))
>>> len(loss.parts)
2
"""

from tacit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
