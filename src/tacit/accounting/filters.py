"""A union of privacy filters, in whole grains, so that a database can add and compare.

>>> from tacit.privacy import LaplaceNoise
>>> limit = compute_limits(epsilon=10, delta=1e-6)
>>> spent, asked = BudgetCharge.zero(), 0
>>> price = compute_charge(LaplaceNoise(scale=100, sensitivity=1))
>>> while is_admitted(spent, price, limit):
...     spent, asked = spent + price, asked + 1
>>> asked  # 1,000 by filter A alone
28444
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from tacit.accounting.basic import compose_basic
from tacit.accounting.rounding import digits_above, double_above, double_below
from tacit.accounting.zcdp import compute_rho as zcdp_cost
from tacit.accounting.zcdp import rho_from_epsilon
from tacit.arithmetic import Number, to_rational
from tacit.errors import ParameterError
from tacit.privacy.guarantee import epsilon_from_rho, near_epsilon_of_rho
from tacit.privacy.loss import Compose, Loss, OneOf

GRAINS_PER_EPSILON = 10**12
READABLE = GRAINS_PER_EPSILON // 10**9  # to which an epsilon is rounded in a sentence, up where spent, down where left
GRAINS_PER_DELTA = 10**18
GRAINS_PER_RHO = 10**15
LARGEST = 2**63 - 1  # what a database integer holds; a charge that is larger stands for one that is never admitted


@dataclass(frozen=True)
class BudgetCharge:
    """What questions cost each filter, in whole grains: (epsilon, delta_a) for A and (rho, delta_b) for B.

    Charges add up with `+`. A grain is 10^-12 of epsilon, 10^-18 of delta, 10^-15 of rho; 2^63 - 1 grains stand for
    more than any limit.

    Attributes
    ----------
    epsilon, delta_a : int
        Grains of epsilon and delta by basic composition.
    rho, delta_b : int
        Grains of rho and delta by zCDP.

    Examples
    --------
    >>> from tacit.privacy import LaplaceNoise
    >>> price = compute_charge(LaplaceNoise(scale=4, sensitivity=1))
    >>> (price + price).text
    '0.5'
    """

    epsilon: int
    delta_a: int
    rho: int
    delta_b: int

    @classmethod
    def zero(cls) -> BudgetCharge:
        """Return the charge of nothing.

        Returns
        -------
        BudgetCharge
            Zero grains of each.
        """
        return cls(0, 0, 0, 0)

    @property
    def grains(self) -> tuple[int, int, int, int]:
        """The four numbers."""
        return self.epsilon, self.delta_a, self.rho, self.delta_b

    def __add__(self, other: BudgetCharge) -> BudgetCharge:
        return BudgetCharge(
            min(LARGEST, self.epsilon + other.epsilon),
            min(LARGEST, self.delta_a + other.delta_a),
            min(LARGEST, self.rho + other.rho),
            min(LARGEST, self.delta_b + other.delta_b),
        )

    @property
    def text(self) -> str:
        """The epsilon, rounded up to nine decimals, with the delta where there is one, in three digits rounded up."""
        if self.epsilon == LARGEST:  # Gaussian noise at a delta of zero: only filter B can admit it
            return f"without bound, rho {digits_above(Fraction(self.rho, GRAINS_PER_RHO))}"
        delta = f", delta {digits_above(Fraction(self.delta_a, GRAINS_PER_DELTA))}" if self.delta_a else ""
        return format_epsilon(-(-self.epsilon // READABLE) * READABLE) + delta


@dataclass(frozen=True)
class FilterLimits:
    """The limits of each filter, in whole grains; all below 2^63 - 1, so that such a charge is beyond every limit.

    Attributes
    ----------
    epsilon, delta_a : int
        The most grains of epsilon and delta that filter A accepts.
    rho, delta_b : int
        The most grains of rho and delta that filter B accepts.

    Examples
    --------
    >>> compute_limits(epsilon=1, delta=0)
    FilterLimits(epsilon=1000000000000, delta_a=0, rho=0, delta_b=0)
    """

    epsilon: int
    delta_a: int
    rho: int
    delta_b: int

    def __post_init__(self) -> None:
        if not all(0 <= limit < LARGEST for limit in self.grains):
            raise ParameterError("caps", "a limit is below zero or too large", fix="keep epsilon at 9000 or less")

    @classmethod
    def zero(cls) -> FilterLimits:
        """Return the limits that admit nothing.

        Returns
        -------
        FilterLimits
            Zero grains of each.
        """
        return cls(0, 0, 0, 0)

    @property
    def grains(self) -> tuple[int, int, int, int]:
        """The four numbers."""
        return self.epsilon, self.delta_a, self.rho, self.delta_b


@dataclass(frozen=True)
class BudgetStatus:
    """How much of a budget is spent.

    Attributes
    ----------
    spent : BudgetCharge
        The sum of all charges so far.
    cap : FilterLimits
        The limits of the budget.

    Examples
    --------
    >>> from tacit.privacy import PureDp
    >>> str(BudgetStatus(compute_charge(PureDp(0.5)), compute_limits(epsilon=2, delta=0)))
    '0.5 of 2'
    """

    spent: BudgetCharge
    cap: FilterLimits

    @property
    def remaining(self) -> int:
        """The grains of epsilon that one more question may cost. See `remaining_epsilon`."""
        return remaining_epsilon(self.spent, self.cap)

    def __str__(self) -> str:
        """What is spent of what: the sum of epsilons, or, once filter B alone holds, the part of its rho."""
        if is_within_basic(self.spent, self.cap) or not is_within_zcdp(self.spent, self.cap):
            return f"{self.spent.text} of {format_epsilon(self.cap.epsilon)}"
        used = digits_above(Fraction(100 * self.spent.rho, self.cap.rho))
        return f"{used}% of {format_epsilon(self.cap.epsilon)}, counted by rho"


@dataclass(frozen=True)
class DeltaSplit:
    """How delta is divided between the filters.

    Parameters
    ----------
    basic : Fraction, default 1/2
        The share of filter A; all three are at least 0, and at most 1 together.
    keys : Fraction, default 1/4
        The share of the deltas that filter B adds up, such as those of partition selection.
    conversion : Fraction, default 1/4
        The share at which filter B converts rho to epsilon.

    Raises
    ------
    ParameterError
        If a share is negative, or they are above 1 together.

    Examples
    --------
    >>> halves = DeltaSplit(basic=Fraction(0), keys=Fraction(1, 2), conversion=Fraction(1, 2))
    >>> compute_limits(1, 1e-6, halves).delta_a
    0
    """

    basic: Fraction = Fraction(1, 2)
    keys: Fraction = Fraction(1, 4)
    conversion: Fraction = Fraction(1, 4)

    def __post_init__(self) -> None:
        parts = (self.basic, self.keys, self.conversion)
        if min(parts) < 0 or sum(parts) > 1:
            raise ParameterError("share", "the parts are below zero or above one together", fix="1/2, 1/4 and 1/4, say")


def whole(epsilon: Fraction) -> Fraction:
    """An epsilon rounded down to whole grains, so that noise and charge are of the same number.

    **Theorem.** Let a cap be of C grains, at most 3,000 epsilon, and let each of n questions ask for the rational C/n,
    or for what doubles give for it. At epsilons so rounded all n fit. Proof: charges are whole grains, so it is enough
    that none is above floor(C/n). The rational is rounded to that. A cap as a double, its quotient and the shortest
    text of that are each off by a relative 2^-53 at most: together by less than 1/n grain, since 3 C 2^-53 < 1. If C/n
    is no integer, the next one above it is at least 1/n away.
    """
    return Fraction(math.floor(epsilon * GRAINS_PER_EPSILON), GRAINS_PER_EPSILON)


def is_whole(epsilon: Fraction) -> bool:
    """Whether an epsilon is of whole grains already."""
    return whole(epsilon) == epsilon


def compute_charge(loss: Loss, delta: Number = 0) -> BudgetCharge:
    """Return the charge of one question to both filters, rounded up.

    Filter A charges the epsilon and delta of basic composition where there are any. Gaussian noise has none: all of it
    together is charged `delta` and the epsilon that its rho converts to there; at a delta of zero, more than any cap.
    Filter B charges rho, with the deltas that are no Gaussian's.

    Parameters
    ----------
    loss : Loss
        The privacy loss of the question.
    delta : number, default 0
        What filter A may charge for Gaussian noise, from 0 to below 1.

    Returns
    -------
    BudgetCharge
        What the ledger adds up.

    Raises
    ------
    ParameterError
        If delta is out of range.

    Examples
    --------
    >>> from tacit.privacy import LaplaceNoise
    >>> compute_charge(LaplaceNoise(scale=4, sensitivity=1)).text
    '0.25'
    """
    delta = to_rational("delta", delta)
    if not 0 <= delta < 1:
        raise ParameterError("delta", f"must be in [0, 1), got {delta}", fix="choose a delta far below one")
    concentrated = zcdp_cost(loss)
    epsilon, lost = _basic_cost(loss, delta)
    return BudgetCharge(
        LARGEST if epsilon is None else _grains(epsilon * GRAINS_PER_EPSILON),
        _grains(lost * GRAINS_PER_DELTA),
        _grains(concentrated.rho * GRAINS_PER_RHO),
        _grains(concentrated.delta * GRAINS_PER_DELTA),
    )


def _basic_cost(loss: Loss, delta: Fraction) -> tuple[Fraction | None, Fraction]:
    """(epsilon, delta) of a question by basic composition of two halves: what is no Gaussian noise, and what is.

    Where one of several was done, given what was released before it is at most the largest epsilon and the largest
    delta of them, each converted at a delta of its own: that is added to the rest by adaptive basic composition.
    """
    parts = loss.parts if isinstance(loss, Compose) else (loss,)
    if any(isinstance(part, Compose) and _holds_choice(part) for part in parts):
        leaves = [leaf for part in parts for leaf in (part.parts if isinstance(part, Compose) else (part,))]
        return _basic_cost(Compose(tuple(leaves)), delta)
    plain, rest = Fraction(0), list[Loss]()
    lost = Fraction(0)
    for part in parts:
        if isinstance(part, OneOf):
            either = [_basic_cost(each, part.delta) for each in part.parts]
            if any(epsilon is None for epsilon, _ in either):
                rest.append(part)
                continue
            plain += max((epsilon or Fraction(0) for epsilon, _ in either), default=Fraction(0))
            lost += max((each for _, each in either), default=Fraction(0))
            continue
        spent = compose_basic(part)
        if spent.epsilon is None:
            rest.append(part)
        else:
            plain, lost = plain + spent.epsilon, lost + spent.delta
    if not rest:
        return plain, lost
    noise = zcdp_cost(Compose(tuple(rest)))
    if noise.delta > 0 and any(isinstance(part, Compose) for part in rest):  # members with noise and with keys
        leaves = [leaf for part in parts for leaf in (part.parts if isinstance(part, Compose) else (part,))]
        return _basic_cost(Compose(tuple(leaves)), delta)
    if delta == 0 or noise.delta > 0:
        return None, lost
    found = epsilon_from_rho(_above(noise.rho), _below(delta)) * (1 + 2.0**-40)
    return (None, lost) if found == math.inf else (plain + Fraction(found), lost + delta)


def _holds_choice(loss: Loss) -> bool:
    """Whether one of several is among what is composed."""
    return isinstance(loss, OneOf) or (isinstance(loss, Compose) and any(map(_holds_choice, loss.parts)))


@lru_cache(maxsize=256)
def max_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rho that is (epsilon, delta)-DP by conversion, the largest but for a billionth: what Gaussian noise may cost.

    By secants from the well-known rho + 2 sqrt(rho ln(1/delta)) <= epsilon, whose solution is too small. What is
    returned is a whole number of grains whose conversion, proven from above, is at most epsilon.
    """
    goal, lost = float(min(epsilon, Fraction(10) ** 280)) * (1 - 2.0**-36), _below(delta)
    if goal <= 0 or lost <= 0:
        return Fraction(0)
    depth = -math.log(lost)
    low = (math.sqrt(depth + goal) - math.sqrt(depth)) ** 2
    last, rho = low, low * 1.05
    if low <= 0:
        return Fraction(0)
    off = near_epsilon_of_rho(last, lost) - goal
    for _ in range(20):
        now = near_epsilon_of_rho(rho, lost) - goal
        if abs(now) <= 1e-10 * goal or now == off:
            break
        last, rho, off = rho, max(low, rho - now * (rho - last) / (now - off)), now
    rho *= 1 - 1e-9
    while rho and epsilon_from_rho(rho * (1 + 2.0**-50), lost) > goal:
        rho *= 0.999
    return Fraction(math.floor(rho * GRAINS_PER_RHO), GRAINS_PER_RHO)  # the product rounds by less than 2^-50 too


def compute_limits(epsilon: Number, delta: Number, share: DeltaSplit | None = None) -> FilterLimits:
    """Return the limits of both filters that guarantee (epsilon, delta), rounded down.

    rho's is the largest whose conversion at its own share of delta is `epsilon`; zero where that share is zero.

    Parameters
    ----------
    epsilon : number
        Privacy loss of everything that is ever released, at least 0.
    delta : number
        From 0 to below 1. At 0 only filter A admits anything.
    share : DeltaSplit, optional
        How delta is divided; by default 1/2 for filter A, 1/4 for the deltas that filter B adds up and 1/4 for
        converting rho.

    Returns
    -------
    FilterLimits
        What `is_admitted` compares with.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> compute_limits(epsilon=1, delta=1e-6).epsilon
    1000000000000
    """
    epsilon, delta = to_rational("epsilon", epsilon), to_rational("delta", delta)
    if epsilon < 0 or not 0 <= delta < 1:
        raise ParameterError("caps", f"no budget of {epsilon}, {delta}", fix="epsilon >= 0 and delta in [0, 1)")
    parts = share or DeltaSplit()
    return FilterLimits(
        min(LARGEST - 1, math.floor(epsilon * GRAINS_PER_EPSILON)),
        math.floor(delta * parts.basic * GRAINS_PER_DELTA),
        _largest_rho(_below(epsilon), _below(delta * parts.conversion)),
        math.floor(delta * parts.keys * GRAINS_PER_DELTA),
    )


def is_admitted(spent: BudgetCharge, price: BudgetCharge, caps: FilterLimits) -> bool:
    """Return whether filter A or filter B admits a question of this cost.

    **Filter A** (Rogers, Roth, Ullman, Vadhan 2016). If question i, chosen after all answers before it, is
    (e_i, d_i)-DP and asking stops before the sums pass e* and d*, the transcript is (e*, d*)-DP.
    **Filter B** (Whitehouse, Ramdas, Rogers, Wu 2023, theorem 1). Likewise for d_i-approximate r_i-zCDP: the transcript
    is d*-approximate r*-zCDP, and so (e*, d* + d')-DP where the conversion of r* at d' is e*.

    **Theorem (union).** Let filter j alone guarantee (e*, d_j). Asking on while at least one filter accepts, where
    every filter counts every question, guarantees (e*, sum of d_j). Proof. Prices are functions of the transcript and
    sums only grow, so for each whole transcript it is known which filters accept all of it; at least one does. Split an
    event T of transcripts into T_1, T_2, ... by the first filter that accepts all of it. On T_j the run equals the run
    stopped by filter j alone, so P[T_j] <= e^{e*} P'[T_j] + d_j. Add up.

    The invariant is "at least one filter is within its caps", not "the sum of epsilons is below the cap".

    Parameters
    ----------
    spent : BudgetCharge
        All charges so far.
    price : BudgetCharge
        The charge of the question.
    caps : FilterLimits
        The limits of the budget.

    Returns
    -------
    bool
        Whether it may be asked.

    Examples
    --------
    >>> from tacit.privacy import PureDp
    >>> limits = compute_limits(epsilon=1, delta=0)
    >>> [is_admitted(BudgetCharge.zero(), compute_charge(PureDp(price)), limits) for price in (1, 1.001)]
    [True, False]
    """
    after = spent + price
    return is_within_basic(after, caps) or is_within_zcdp(after, caps)


def is_within_basic(spent: BudgetCharge, caps: FilterLimits) -> bool:
    """Return whether filter A accepts these charges: by basic composition.

    Parameters
    ----------
    spent : BudgetCharge
        The sum of all charges so far.
    caps : FilterLimits
        The limits of the budget.

    Returns
    -------
    bool
        Whether epsilon and delta are within their limits.

    Examples
    --------
    >>> is_within_basic(BudgetCharge.zero(), FilterLimits.zero())
    True
    """
    return spent.epsilon <= caps.epsilon and spent.delta_a <= caps.delta_a


def is_within_zcdp(spent: BudgetCharge, caps: FilterLimits) -> bool:
    """Return whether filter B accepts these charges: by zCDP.

    Parameters
    ----------
    spent : BudgetCharge
        The sum of all charges so far.
    caps : FilterLimits
        The limits of the budget.

    Returns
    -------
    bool
        Whether rho and delta are within their limits.

    Examples
    --------
    >>> is_within_zcdp(BudgetCharge.zero(), FilterLimits.zero())
    True
    """
    return spent.rho <= caps.rho and spent.delta_b <= caps.delta_b


@lru_cache(maxsize=4096)
def remaining_epsilon(spent: BudgetCharge, caps: FilterLimits, delta_a: int = 0, delta_b: int = 0) -> int:
    """The most grains of epsilon that one more question may cost, whatever its noise, if it costs these deltas.

    By filter A what is left of epsilon; by filter B the largest e with e tanh(e/2) within what is left of rho, because
    an e-DP answer costs no more rho than that. A question without a pure epsilon may fit although it asks for more.
    """
    basic = caps.epsilon - spent.epsilon if spent.delta_a + delta_a <= caps.delta_a else 0
    left = caps.rho - spent.rho if spent.delta_b + delta_b <= caps.delta_b else 0
    return max(0, basic, _largest_pure(left) if left > 0 else 0)


def format_epsilon(grains: int) -> str:
    """Grains of epsilon as exact decimal text."""
    return f"{(Decimal(grains) / GRAINS_PER_EPSILON).normalize():f}"


def _largest_pure(left: int) -> int:
    """The grains of the largest epsilon whose rho fits, less a millionth of a millionth of it."""
    target = left / GRAINS_PER_RHO
    low, high = 0.0, 2 * math.sqrt(target) + 2 * target  # tanh(e/2) is above e/4 up to e = 2, and above 1/2 from there
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.tanh(middle / 2) <= target else (low, middle)
    found = math.floor(low * (1 - 1e-12) * GRAINS_PER_EPSILON)
    while found and math.ceil(rho_from_epsilon(Fraction(found, GRAINS_PER_EPSILON)) * GRAINS_PER_RHO) > left:
        found = found * 999 // 1000
    return found


def _grains(amount: Fraction) -> int:
    return min(LARGEST, math.ceil(amount))


def _above(number: Fraction) -> float:
    """A double above this number, by a few units in the last place, or infinity: what charges were always made with."""
    upper = double_above(number)
    return upper if upper in {0.0, math.inf} else max(upper, float(number) * (1 + 2.0**-50))


def _below(number: Fraction) -> float:
    """A double below this number, likewise."""
    lower = double_below(number)
    return lower if abs(number) >= 2**1023 else min(lower, float(number) * (1 - 2.0**-50))


@lru_cache(maxsize=256)
def _largest_rho(epsilon: float, delta: float) -> int:
    """The largest whole number of grains whose conversion is at most epsilon: the conversion grows with rho.

    The search is in doubles; the number that is found is proven, or made smaller until it is.
    """
    if delta <= 0 or epsilon <= 0:
        return 0
    low, high = 0, min(LARGEST - 1, math.ceil(min(epsilon, 1e300) * GRAINS_PER_RHO))
    while low < high:
        middle = (low + high + 1) // 2
        fits = near_epsilon_of_rho(middle / GRAINS_PER_RHO * (1 + 2.0**-50), delta) <= epsilon
        low, high = (middle, high) if fits else (low, middle - 1)
    while low and epsilon_from_rho(low / GRAINS_PER_RHO * (1 + 2.0**-50), delta) > epsilon:
        low -= max(1, low >> 40)
    return low


def fraction_used(spent: BudgetCharge, cap: FilterLimits) -> float:
    """The part of a budget that is used: by the filter that has more left, since one of them is enough."""

    def part(*pairs: tuple[int, int]) -> float:
        return max((has / most if most else (1.0 if has else 0.0)) for has, most in pairs)

    basic = part((spent.epsilon, cap.epsilon), (spent.delta_a, cap.delta_a))
    return min(basic, part((spent.rho, cap.rho), (spent.delta_b, cap.delta_b))) if cap.rho else basic
