"""Check a claim: exactly from a distribution, statistically from samples, and by playing the game.

>>> from tacit.accounting.transition_matrix import TransitionMatrix
>>> from tacit.audit import Claim, exact_parameter
>>> round(exact_parameter(TransitionMatrix([[0.75, 0.25], [0.25, 0.75]]), Claim.epsilon(1)), 6)
1.098612
"""

from tacit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
