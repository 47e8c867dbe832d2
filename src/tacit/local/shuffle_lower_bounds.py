"""Lower bounds on the epsilon of shuffled reports: pairs of neighboring datasets, and how well they are distinguished.

>>> from tacit.local.k_ary import KAryRandomizedResponse
>>> one = pairs_of_protocol(KAryRandomizedResponse(domain=3, epsilon=1))[-1]
>>> round(one.rate, 6), one.half  # all others have the third value: each of the two has the probability 1/(e + 2)
(0.423883, 0.5)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.local.frequency_oracle import FrequencyOracle
from tacit.local.hadamard_response import HadamardResponse
from tacit.local.k_ary import KAryRandomizedResponse
from tacit.local.local_hashing import OptimizedLocalHashing
from tacit.local.mean import Mean
from tacit.local.mean_mechanisms import HybridMechanism, PiecewiseMechanism, StochasticRounding
from tacit.local.posterior import single_report_epsilon
from tacit.local.projective_geometry import ProjectiveGeometryResponse
from tacit.local.shuffle_divergence import expected_positive_part
from tacit.local.subset import SubsetSelection
from tacit.local.unary_encoding import UnaryEncoding

if TYPE_CHECKING:
    from flint import arb

LocalProtocol: TypeAlias = FrequencyOracle | Mean
_NEAR = 2.0**-20  # so near to the local epsilon, a difference of doubles is not good to a billionth


@dataclass(frozen=True)
class LowerBoundPair:
    """Two neighboring datasets, which differ in one user who has x or y, observed through three classes of reports.

    A report of the class `up` is E = e^epsilon times as likely from x as from y, of `down` 1/E times; all others
    together are as likely from x as from y. Another user's report is of up or down with the probability `rate`, of up
    with the part `half` of that. A report from x is of up, of down and of others `weights` times as likely as theirs.

    **Theorem.** `delta` is never above the delta at a of the shuffled reports of any protocol with such reports.

    **Proof.** How many reports there are of each class is a function of what is shuffled, so its delta is no larger. If
    all n were like the other users, the counts n0, n1, n2 would have a multinomial distribution. With weights w under
    x, the probability of the counts is that times (w0 n0 + w1 n1 + w2 n2)/n: each of the n is as likely to be the one
    who differs. Under y the weights are w0/E, E w1 and w2. So the delta of the counts is the expectation of max(0, w0
    (1 - e^(a - epsilon)) n0 - w1 (e^(a + epsilon) - 1) n1 - w2 (e^a - 1) n2)/n, which `expected_positive_part`
    computes.
    """

    rate: float
    half: float
    weights: tuple[float, float, float]

    def delta(self, users: int, epsilon: float, a: float, cut: float) -> float:
        """Return the delta of the counts, rounded down."""
        if epsilon - a < epsilon * _NEAR:
            return 0.0
        up, down, rest = self.weights
        plus, minus = -up * math.expm1(a - epsilon), down * math.expm1(a + epsilon)
        return expected_positive_part(
            users, self.rate, plus, minus, rest * math.expm1(a), half=self.half, upper=False, cut=cut
        )


def worst_case_pairs(epsilon: float, part: float) -> tuple[LowerBoundPair, ...]:
    """Return pairs of some randomizers of this epsilon, whose variation is this part of the largest, tanh(epsilon/2).

    Three-valued randomized response, where all others have the third value, sent with the probability that gives this
    variation, else the third value is. Where that is the largest: two-valued randomized response, too, from either
    side.
    """
    large = math.exp(epsilon)
    weight = min(1.0, part * (large + 2) / (large + 1))
    silent = 1 - weight
    rest = (weight / (large + 2) + silent) / (weight * large / (large + 2) + silent)
    third = LowerBoundPair(2 * weight / (large + 2), 0.5, (large, 1.0, rest))
    return (third,) if part < 1 else (*_pairs_with_equal_others(large, 1.0), third)


def pairs_of_protocol(protocol: LocalProtocol) -> tuple[LowerBoundPair, ...]:
    """Return pairs of neighboring datasets of a given protocol.

    Let x and y be two values, and b the probability that a report from y supports x and not y; from x it is E b.

    *All others have x.* Up are the reports that support x and not y, down the reverse: their probabilities are E b
    and b from x, and the weights are 1. If all others have y, the probabilities are b and E b, and the weights E, 1/E
    and 1.

    *All others have a third value z*, if there is one. Up are reports that support x, not y and not z; down are as
    many that support y, not x and not z. A report is as likely from any two values that it does not support, so both
    classes have one probability c from z, up has E c from x and c from y, and down the reverse. The weights are E, 1
    and (1 - (E + 1) c)/(1 - 2 c). For three values and k-ary reports the classes are the reports, and nothing is lost.

    **Theorem.** b = (p - q)/(E - 1). Proof: reports that support x have p from x and q from y; those that also support
    y are as likely from both, so p - q = E b - b. For c see `_third_value_probability`. For numbers x and y are the
    ends of the range.
    """
    with working_precision(256):
        odds, b, c = _pair_probabilities(protocol)
        found = _pairs_with_equal_others(float(odds), min(1.0, float((odds + 1) * b)))
        if c is None:
            return found
        rest = (1 - (odds + 1) * c) / (1 - 2 * c)
        return (*found, LowerBoundPair(float(2 * c), 0.5, (float(odds), 1.0, max(0.0, float(rest)))))


def local_epsilon(protocol: LocalProtocol) -> Fraction:
    """Return the epsilon of one report."""
    if not isinstance(protocol, FrequencyOracle | Mean):
        what = "needs a protocol of one report on one value"
        raise ParameterError("protocol", what, fix="ShuffleAmplification(epsilon, users) holds for any protocol")
    return single_report_epsilon(protocol) if isinstance(protocol, FrequencyOracle) else protocol.epsilon


def max_total_variation(protocol: LocalProtocol) -> Fraction | None:
    """Return the largest total variation between the reports of two values, rounded up; None where that is one.

    **Theorem.** It is p - q, the gap. Proof: two values' distributions differ only on reports that support just one of
    them; those that support x have p under x and q under y. For numbers it is (E - 1) b, at the ends: windows overlap
    least there, and the probabilities of rounding are furthest apart.
    """
    if isinstance(protocol, FrequencyOracle):
        gap = protocol.gap
    else:
        with working_precision(256):
            odds, b, _ = _pair_probabilities(protocol)
            gap = float((odds - 1) * b)
    above = math.nextafter(gap, math.inf)
    return Fraction(above) if above < 1 else None


def _pairs_with_equal_others(odds: float, rate: float) -> tuple[LowerBoundPair, LowerBoundPair]:
    """Return the pairs in which all others have the one value x, or the other y."""
    return (
        LowerBoundPair(rate, odds / (odds + 1), (1.0, 1.0, 1.0)),
        LowerBoundPair(rate, 1 / (odds + 1), (odds, 1 / odds, 1.0)),
    )


def _pair_probabilities(protocol: LocalProtocol) -> tuple[arb, arb, arb | None]:
    """Return E, b and c."""
    if isinstance(protocol, FrequencyOracle):
        root = to_interval(protocol.epsilon / 2).exp()
        odds = protocol.report_probability(True, 1, root) / protocol.report_probability(False, 1, root)
        p, q = protocol.support_probabilities(root)
        b = (p - q) / (odds - 1)
        return odds, b, _third_value_probability(protocol, p, q, b) if protocol.domain > 2 else None
    return (to_interval(protocol.epsilon).exp(), *_number_probabilities(protocol))


def _third_value_probability(protocol: FrequencyOracle, p: arb, q: arb, b: arb) -> arb | None:
    """Return c, the probability that a report from z supports x, not y and not z, for the values 0, 1, 2 in some order.

    **Theorem.** *Unary*: q (1 - q) (1 - p), the bits being independent. *K-ary*: b = q, as a report supports one value.
    *Hadamard* and *projective*: b. The codes of 0, 1 and 2 are one the sum of the other two, so a report that supports
    two of them supports all, and none of those that support x and not y supports z. *Subset*: one that lacks z has the
    probability 1 - p, and then is one of C(d - 1, k) sets, of which C(d - 3, k - 1) hold x and not y. *Hashing*, with z
    = 0: the cell of 0 is 0, that of 1 the first k bits of the seed and that of 2 the next k, one further on. Two cells
    are equal with the probability 1/g, and all three where k + 1 bits are zero, 1/(2g). So x is apart from both with 1
    - 2/g + 1/(2g), and then its cell is sent with (1 - p)/(g - 1).
    """
    if isinstance(protocol, UnaryEncoding):
        return q * (1 - q) * (1 - p)
    if isinstance(protocol, KAryRandomizedResponse | HadamardResponse | ProjectiveGeometryResponse):
        return b
    if isinstance(protocol, SubsetSelection):
        k, d = protocol.size, protocol.domain
        return (1 - p) * (k * (d - 1 - k)) / ((d - 1) * (d - 2)) if k < d - 1 else None
    if isinstance(protocol, OptimizedLocalHashing):
        g = protocol.cells
        return (1 - p) * (2 * g - 3) / (2 * g * (g - 1))
    return None


def _number_probabilities(protocol: Mean) -> tuple[arb, arb | None]:
    """Return b and c of the two ends of the range, and of the grid point in the middle.

    **Theorem.** *Rounding*: b = 1/(E + 1), the probability of the other end. *Piecewise*: with the windows' width w and
    s steps, each point has the probability 1/(w E + s) outside of the window. w or s of them, whichever is less, are in
    the window of one end and not of the other; up to w or s/2 are not in that of the middle either, at both ends alike.
    *Hybrid*: the sum of both, weighted by their probabilities; c of the windows alone.
    """
    odds, steps = to_interval(protocol.epsilon).exp(), protocol.grid.steps
    if isinstance(protocol, StochasticRounding):
        return 1 / (odds + 1), None
    if isinstance(protocol, PiecewiseMechanism):
        width, each = protocol.window, 1 / (protocol.window * odds + steps)
        return min(width, steps) * each, min(width, steps // 2) * each if steps > 1 else None
    if isinstance(protocol, HybridMechanism):
        window, ends = (_number_probabilities(part) for part in protocol.parts)
        if len(protocol.segments) == 1:
            return ends
        rounding = (-to_interval(protocol.epsilon) / 2).exp()
        c = None if window[1] is None else (1 - rounding) * window[1]
        return (1 - rounding) * window[0] + rounding * ends[0], c
    fix = "ShuffleAmplification(epsilon, users) holds for any protocol"
    raise ParameterError("protocol", "has a distribution that is not known here", fix=fix)
