"""What does a yes tell about me? Bayes' rule, for one report.

>>> from tacit.local import KAry
>>> print(words(KAry(2, Fraction(11, 10)), prior=0.1))
If 10 % would truly say yes, a yes makes it 25.0 % for you, never more than 30.0 %; a no makes it 3.6 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import rational
from tacit.errors import ParameterError
from tacit.local.frequency import Frequency
from tacit.mechanisms.given import share


def posterior_of(protocol: Frequency, prior: Sequence[Any], report: Any) -> npt.NDArray[np.float64]:
    """P[the value is v | this report] for each v, where it is v with probability prior[v] before.

    **Theorem.** In every protocol here, a report R makes the values that it supports e^epsilon times likelier than the
    others, and nothing else: the posterior is in proportion to prior[v] e^epsilon for those and to prior[v] for the
    rest. So it is at most e^epsilon times the prior, and at least e^-epsilon times. Proof: P[R | x]/P[R | y] is
    e^epsilon where R supports x and not y, and 1 where it supports both or neither. For k-ary, hashing, Hadamard and
    subset reports that is their law. For unary ones the bits x and y give (p/q)((1 - q)/(1 - p)) = e^epsilon, and
    (p/p)(q/q) = 1.
    """
    known = _law(prior, protocol.domain)
    held = protocol.support(np.asarray([report]) if np.ndim(report) == 0 else np.asarray(report)[None])
    with np.errstate(divide="ignore"):
        logs = np.log(known) + float(protocol.epsilon) * held
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def after_yes(epsilon: Any, prior: Any) -> float:
    """P[the truth is yes | a yes], for two values: e^epsilon r/(e^epsilon r + 1 - r), at most e^epsilon r.

    At epsilon = ln 3 it is (3/4) r/((3/4) r + (1/4)(1 - r)), at most 3 r: plausible deniability.
    """
    return _updated(rational("epsilon", epsilon), share("prior", prior))


def after_no(epsilon: Any, prior: Any) -> float:
    """P[the truth is yes | a no], for two values: r/(r + e^epsilon (1 - r)), at least e^-epsilon r."""
    return _updated(-rational("epsilon", epsilon), share("prior", prior))


def words(protocol: Frequency, prior: Any) -> str:
    """The same in a sentence, for someone about to answer a question of yes or no."""
    if protocol.domain != 2:
        raise ParameterError("protocol", "needs two values, no and yes", fix="use posterior_of for more")
    r, price = share("prior", prior), protocol.epsilon
    most = min(1.0, math.exp(min(float(price), 700.0)) * float(r))
    return (
        f"If {100 * float(r):g} % would truly say yes, a yes makes it {100 * after_yes(price, r):.1f} % for you, "
        f"never more than {100 * most:.1f} %; a no makes it {100 * after_no(price, r):.1f} %."
    )


def _updated(log_odds: Fraction, prior: Fraction) -> float:
    """The prior with its odds multiplied, in logarithms, so that nothing overflows."""
    logit = math.log(prior) - math.log1p(-prior) + float(log_odds)
    return 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0


def _law(prior: Sequence[Any], domain: int) -> npt.NDArray[np.float64]:
    found = np.asarray(prior, dtype=np.float64)
    if found.shape != (domain,) or not (found >= 0).all() or abs(float(found.sum()) - 1) > 1e-9:
        raise ParameterError("prior", f"needs {domain} probabilities that add up to one", fix="prior=[0.9, 0.1], say")
    return found
