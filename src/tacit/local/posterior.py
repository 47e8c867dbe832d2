"""What one report reveals about its sender, by Bayes' rule.

>>> from tacit.local import KAryRandomizedResponse, Rappor
>>> print(describe_posterior(KAryRandomizedResponse(2, Fraction(11, 10)), prior=0.1))
If 10 % would truly say yes, a yes makes it 25.1 % for you, never more than 30.1 %; a no makes it 3.5 %.
>>> compute_posterior(Rappor(3, 4), [0.1, 0.45, 0.45], np.packbits([1, 0, 0])).round(3).tolist()
[0.356, 0.322, 0.322]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import Number, certified_floor, to_interval, to_rational, working_precision
from tacit.errors import ParameterError
from tacit.local.frequency_oracle import FrequencyOracle, check_well_formed
from tacit.local.mean import Mean
from tacit.local.mean_mechanisms import HybridMechanism, PiecewiseMechanism, StochasticRounding
from tacit.mechanisms.validation import check_probability

Doubles = npt.NDArray[np.float64]


def compute_posterior(protocol: FrequencyOracle | Mean, prior: Sequence[float], report: npt.ArrayLike) -> Doubles:
    """Compute P[the value is v | this report] for each v, from the prior probabilities.

    **Theorem.** In every frequency oracle, a report R makes the values that it supports E times likelier than the
    others, and nothing else: the posterior is in proportion to prior[v] E for those and to prior[v] for the rest, where
    log E is `single_report_epsilon`. So it is at most E times the prior, and at least 1/E times. Proof: P[R | x]/P[R |
    y] is E where R supports x and not y, and 1 where it supports both or neither. For k-ary, hashing, Hadamard, subset
    and projective reports that is their distribution. For unary ones the bits x and y give (p/q)((1 - q)/(1 - p)) = E,
    and (p/p)(q/q) = 1; those of one `Rappor` report are independent with probabilities p and q of their own.

    For a mean the values are the points of the grid, and P[R | index] is the distribution in the class's docstring.

    Parameters
    ----------
    protocol : FrequencyOracle, StochasticRounding, PiecewiseMechanism or HybridMechanism
        The protocol that the report was made with.
    prior : sequence of float
        The probability of each value, or grid point, before the report; they add up to 1.
    report : int or array_like of uint8
        One report, as `encode_one` returns it.

    Returns
    -------
    ndarray of float64
        The probability of each value after the report.

    Raises
    ------
    Refused
        With the code `report`, where the report is not one that the protocol sends.
    ParameterError
        Where the prior does not have one probability for each value.

    Examples
    --------
    >>> from tacit.local import KAryRandomizedResponse, compute_posterior
    >>> protocol = KAryRandomizedResponse(domain=3, epsilon=2)
    >>> compute_posterior(protocol, prior=[0.1, 0.45, 0.45], report=0).round(3).tolist()
    [0.451, 0.275, 0.275]
    """
    logs = _log_likelihoods(protocol, report)
    known = _check_prior(prior, len(logs))
    with np.errstate(divide="ignore"):
        logs = np.log(known) + logs
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def single_report_epsilon(protocol: FrequencyOracle) -> Fraction:
    """Return the epsilon of one report alone: the largest log P[R | x]/P[R | y], rounded up.

    It is the protocol's own, but for `Rappor`, whose epsilon is that of all reports on a value: there
    `epsilon_after(1)`.
    """
    with working_precision(256):
        root = to_interval(protocol.epsilon / 2).exp()
        ratio = protocol.report_probability(True, 1, root) / protocol.report_probability(False, 1, root)
        return min(protocol.epsilon, Fraction(math.nextafter(float(ratio.log()), math.inf)))


def posterior_after_yes(epsilon: Number, prior: Number) -> float:
    """Return P[the truth is yes | a yes], for two values: e^epsilon r/(e^epsilon r + 1 - r), at most e^epsilon r.

    At epsilon = ln 3 it is (3/4) r/((3/4) r + (1/4)(1 - r)), at most 3 r: plausible deniability.
    """
    return _update_prior(to_rational("epsilon", epsilon), check_probability("prior", prior))


def posterior_after_no(epsilon: Number, prior: Number) -> float:
    """Return P[the truth is yes | a no], for two values: r/(r + e^epsilon (1 - r)), at least e^-epsilon r."""
    return _update_prior(-to_rational("epsilon", epsilon), check_probability("prior", prior))


def describe_posterior(protocol: FrequencyOracle, prior: Number) -> str:
    """Describe in sentences what a report reveals, for someone about to answer a question of yes or no.

    A yes is a report that supports yes alone, a no one that supports no alone. Where there are others, it says so.
    Where the epsilon is that of all reports on a value, it also says what all of them can reveal at most.

    Parameters
    ----------
    protocol : FrequencyOracle
        A protocol over two values, 0 for no and 1 for yes.
    prior : number
        The probability, between 0 and 1, of a true yes before the report.

    Returns
    -------
    str
        One sentence or more, with percentages rounded so that none understates the effect.

    Raises
    ------
    ParameterError
        Where the protocol has more than two values.

    Examples
    --------
    >>> from tacit.local import KAryRandomizedResponse, describe_posterior
    >>> print(describe_posterior(KAryRandomizedResponse(domain=2, epsilon=1), prior=0.1))
    If 10 % would truly say yes, a yes makes it 23.2 % for you, never more than 27.2 %; a no makes it 3.9 %.
    """
    if not isinstance(protocol, FrequencyOracle) or protocol.domain != 2:
        raise ParameterError("protocol", "needs two values, no and yes", fix="use compute_posterior for more")
    r, single = check_probability("prior", prior), single_report_epsilon(protocol)
    high, low, most = _round_outward(single, r)
    text = (
        f"If {100 * float(r):g} % would truly say yes, a yes makes it {high} % for you, "
        f"never more than {most} %; a no makes it {low} %."
    )
    if any(protocol.support(report[None]).sum() != 1 for report in protocol.list_reports()):
        text += " A report for both or for neither changes nothing."
    if single < protocol.epsilon:
        high, low, _ = _round_outward(protocol.epsilon, r)
        text += f" A lifetime of reports makes it at most {high} % and at least {low} %."
    return text


def _round_outward(epsilon: Fraction, prior: Fraction) -> tuple[str, str, str]:
    """Return what is after a yes, after a no, and e^epsilon times the prior, in percent, rounded away from the prior.

    With R = e^epsilon rounded up they are r R/(r R + 1 - r), r/(r + R (1 - r)) and r R: the first and the last grow in
    R, and the second falls.
    """
    ratio = Fraction(certified_floor(lambda: to_interval(epsilon).exp() * 2**64) + 1, 2**64) if epsilon else Fraction(1)
    yes, no = prior * ratio / (prior * ratio + 1 - prior), prior / (prior + ratio * (1 - prior))
    up, most = (-math.floor(-1000 * share) for share in (yes, min(Fraction(1), prior * ratio)))
    return f"{up / 10:.1f}", f"{math.floor(1000 * no) / 10:.1f}", f"{most / 10:.1f}"


def _log_likelihoods(protocol: FrequencyOracle | Mean, report: npt.ArrayLike) -> Doubles:
    """Return log P[report | v] for each v, up to a constant."""
    if isinstance(protocol, FrequencyOracle):
        support = protocol.support(np.asarray([report]) if np.ndim(report) == 0 else np.asarray(report)[None])
        return np.asarray(float(single_report_epsilon(protocol)) * support)
    if isinstance(protocol, Mean):
        (number,) = protocol.to_array(np.asarray([report]))
        check_well_formed(protocol.kind, protocol.is_well_formed([number]))
        return _index_log_likelihoods(protocol, int(number))
    what = "needs a protocol of one report on one value"
    raise ParameterError("protocol", what, fix="KAryRandomizedResponse(domain=2, epsilon=1)")


def _index_log_likelihoods(protocol: Mean, report: int) -> Doubles:
    """Return log P[report | index] for each index of the grid, up to a constant."""
    if isinstance(protocol, HybridMechanism):  # the choice shows in the report, and is independent of the index
        first = protocol.segments[0].size if len(protocol.segments) == 2 else 0
        window, ends = protocol.parts
        if report < first:
            return _index_log_likelihoods(window, report)
        return _index_log_likelihoods(ends, report - first)
    epsilon, indices = float(protocol.epsilon), np.arange(protocol.grid.steps + 1)
    if isinstance(protocol, PiecewiseMechanism):
        return np.asarray(epsilon * ((indices <= report) & (report < indices + protocol.window)))
    if isinstance(protocol, StochasticRounding):
        near = (indices if report else indices[::-1]) / protocol.grid.steps
        with np.errstate(divide="ignore"):
            return np.asarray(np.logaddexp(np.log(near) + epsilon, np.log1p(-near)))
    fix = "use StochasticRounding, PiecewiseMechanism or HybridMechanism"
    raise ParameterError("protocol", "has a distribution that is not known here", fix=fix)


def _update_prior(log_odds: Fraction, prior: Fraction) -> float:
    """Return the prior with its odds multiplied, in logarithms, so that nothing overflows."""
    logit = math.log(prior) - math.log1p(-prior) + float(log_odds)
    return 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0


def _check_prior(prior: Sequence[float], domain: int) -> Doubles:
    found = np.asarray(prior, dtype=np.float64)
    if found.shape != (domain,) or not (found >= 0).all() or abs(float(found.sum()) - 1) > 1e-9:
        raise ParameterError("prior", f"needs {domain} probabilities that add up to one", fix="prior=[0.9, 0.1]")
    return found
