"""One file a mechanism: its distribution, its loss, its release, its error.

>>> from tacit.mechanisms import Laplace
>>> Laplace.calibrated(epsilon=0.5, sensitivity=1).scale
Fraction(2, 1)
"""

from tacit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
