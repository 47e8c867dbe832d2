"""Low bits: what floating-point noise reveals in its last digits (Mironov 2012).

>>> rng = np.random.default_rng(0)
>>> found = classify_outputs(FloatLaplace(scale=10.0).draw(0.0, 1000, rng), 0.0, 1.0, FloatLaplace(scale=10.0).possible)
>>> found.only_other, found.neither, found.verdict
(0, 0, 'told apart')
>>> from tacit.sampling.bits import ReplayBits
>>> classify_outputs(GridNoise(1).draw(0, 1000, 10, ReplayBits(b"low bits")), 0.0, 1.0, GridNoise(1).possible).verdict
'nothing found'
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.accounting.interpretation import min_guessing_error
from tacit.accounting.interval import clopper_pearson_interval
from tacit.arithmetic import Number, to_integer, to_rational
from tacit.errors import ParameterError
from tacit.mechanisms import Laplace
from tacit.sampling.bits import Bits

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Possible = Callable[[Floats, float], Flags]

_WIDE = 48  # uniforms tried around the middle; where more would do, one of them does
_MARGIN = 4  # uniforms beyond either end, for the rounding of exp and log


@dataclass(frozen=True)
class FloatLaplace:
    """The textbook's Laplace noise in doubles: value + scale ln U or value - scale ln U, with a fair sign.

    U is one of the 2^bits multiples of 2^-bits in (0, 1]: 53 bits are what generators give. numpy's own `laplace`
    takes the logarithm of some of the same numbers, so the test holds for it too.

    **Why it leaks.** There are only so many U, so the noise has only so many values: in its last digits, most doubles
    are not among them. A shift by the true value and one rounding move these gaps. An output that lies in a gap of D'
    proves that the data was D, whatever epsilon says.

    Parameters
    ----------
    scale : number
        The scale of the noise, positive: its standard deviation is sqrt(2) times that.
    bits : int
        How many random bits U has, from 8 to 53.

    Raises
    ------
    ParameterError
        If the scale is not positive, or the bits are out of range.

    Examples
    --------
    >>> import numpy as np
    >>> noise = FloatLaplace(scale=10.0)
    >>> outputs = noise.draw(0.0, 100, np.random.default_rng(0))
    >>> bool(noise.possible(outputs, 0.0).all()), bool(noise.possible(outputs, 1.0).all())
    (True, False)
    """

    scale: float
    bits: int = 53

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", float(to_rational("scale", self.scale)))
        object.__setattr__(self, "bits", to_integer("bits", self.bits, least=8))
        if self.scale <= 0 or self.bits > 53:
            raise ParameterError("scale", "must be positive, with 8 to 53 bits", fix="FloatLaplace(scale=10.0), say")

    def draw(self, value: float, count: int, rng: np.random.Generator) -> Floats:
        """Draw outputs for a true value.

        Parameters
        ----------
        value : float
            The true value that noise is added to.
        count : int
            How many outputs are drawn, 0 or more.
        rng : numpy.random.Generator
            The generator of U and of the sign.

        Returns
        -------
        array of float
            The outputs.
        """
        whole = rng.integers(1, 2**self.bits, count, endpoint=True)
        sign = rng.integers(0, 2, count) * 2 - 1
        return np.array([self.output(value, int(k), int(s)) for k, s in zip(whole, sign, strict=True)])

    def output(self, value: float, k: int, sign: int) -> float:
        """Compute the output for U = k 2^-bits, in double arithmetic.

        Parameters
        ----------
        value : float
            The true value that noise is added to.
        k : int
            The multiple of 2^-bits that U is, from 1 to 2^bits.
        sign : int
            The sign of the noise, 1 or -1.

        Returns
        -------
        float
            The output, rounded as the processor rounds.
        """
        return value + sign * (self.scale * math.log(math.ldexp(k, -self.bits)))

    def possible(self, outputs: Floats, value: float) -> Flags:
        """Say for each output whether any U gives it for a true value.

        Parameters
        ----------
        outputs : array of float
            The outputs to test, finite numbers.
        value : float
            The true value that is tested.

        Returns
        -------
        array of bool
            False where the output proves that the true value was another.
        """
        return np.array([self.is_possible(float(output), float(value)) for output in outputs], dtype=np.bool_)

    def is_possible(self, output: float, value: float) -> bool:
        """Say whether any U gives an output, found by trying.

        **Theorem.** False is right: no U gives the output. Proof: the rounded sum is `output` only if the noise lies
        within half a gap of doubles around output - value, so -ln U within that of |output - value|/scale, up to the
        rounding of ln and of the product, a few parts in 2^53. U then is one of the multiples of 2^-bits tried here.
        Where they are more than 48 only the middle ones are tried, and the answer is True if none of them fits.

        Parameters
        ----------
        output : float
            The output to test.
        value : float
            The true value that is tested.

        Returns
        -------
        bool
            Whether the output is possible for the value.
        """
        gap = Fraction(output) - Fraction(value)
        slack = max(math.ulp(output), math.ulp(value), math.ulp(float(gap))) + 4 * math.ulp(float(gap))
        center = abs(float(gap)) / self.scale
        spread = slack / self.scale + 4 * math.ulp(center)
        middle = math.exp(-center) * 2.0**self.bits
        reach = math.ceil(middle * math.expm1(min(spread, 1.0)) + middle * 2.0**-50) + _MARGIN
        signs = (1, -1) if abs(float(gap)) <= slack else ((-1,) if gap > 0 else (1,))
        first = max(1, round(middle) - min(reach, _WIDE))
        last = min(2**self.bits, round(middle) + min(reach, _WIDE))
        tried = any(self.output(value, k, sign) == output for sign in signs for k in range(first, last + 1))
        return tried or reach > _WIDE


@dataclass(frozen=True)
class GridNoise:
    """Tacit's noise: integers on a grid, so that every grid point is possible for every true value.

    **Theorem.** P(k) > 0 for every integer k, and the distribution of the draws is exactly that: an output that is
    possible for one value on the grid is possible for every other, and its probabilities differ by e^(shift/scale) at
    most.

    Parameters
    ----------
    step : number
        The grid's step, positive: 1 for counts.

    Raises
    ------
    ParameterError
        If the step is not positive.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> grid = GridNoise()
    >>> outputs = grid.draw(0, 100, scale=10, bits=ReplayBits(b"example"))
    >>> bool(grid.possible(outputs, 0.0).all()), bool(grid.possible(outputs, 1.0).all())
    (True, True)
    """

    step: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", to_rational("step", self.step))
        if self.step <= 0:
            raise ParameterError("step", f"must be positive, got {self.step}", fix="step=1 for counts")

    def draw(self, value: int, count: int, scale: Number, bits: Bits) -> Floats:
        """Draw outputs for a true value.

        Parameters
        ----------
        value : int
            The true value, in steps of the grid.
        count : int
            How many outputs are drawn, 0 or more.
        scale : number
            The scale of the Laplace noise in steps, positive.
        bits : Bits
            The source of random bits.

        Returns
        -------
        array of float
            The outputs, in the units of the step.
        """
        noisy = Laplace(to_rational("scale", scale)).release([to_integer("value", value)] * count, bits)
        return np.array([float(self.step * number) for number in noisy])

    def possible(self, outputs: Floats, value: float) -> Flags:
        """Say for each output whether it is possible for a true value: whether it lies on the grid.

        Parameters
        ----------
        outputs : array of float
            The outputs to test, finite numbers.
        value : float
            The true value that is tested, a multiple of the step.

        Returns
        -------
        array of bool
            The same for every true value on the grid.

        Raises
        ------
        ParameterError
            If the value is not on the grid.
        """
        if not self._holds(float(value)):
            raise ParameterError("value", f"{value} is not on the grid", fix=f"give a multiple of {self.step}")
        return np.array([self._holds(float(output)) for output in outputs], dtype=np.bool_)

    def _holds(self, number: float) -> bool:
        """Whether it is a multiple of the step, rounded once."""
        return float(round(Fraction(number) / self.step) * self.step) == number


@dataclass(frozen=True)
class LowBitsResult:
    """How many outputs only one of two true values can have given.

    Attributes
    ----------
    one, other : float
        The two true values that are compared.
    only_one, only_other : int
        How many outputs only the one value, or only the other, can give: each of them proves which it was.
    both : int
        How many outputs are possible for both values.
    neither : int
        How many are possible for neither value: then the outputs are not from the assumed sampler.

    Examples
    --------
    >>> found = LowBitsResult(0.0, 1.0, only_one=700, only_other=0, both=300, neither=0)
    >>> found.verdict, found.share
    ('told apart', 0.7)
    """

    one: float
    other: float
    only_one: int
    only_other: int
    both: int
    neither: int

    @property
    def outputs(self) -> int:
        """How many outputs there were."""
        return self.only_one + self.only_other + self.both + self.neither

    @property
    def share(self) -> float:
        """The share of the outputs that only one of the two values can give."""
        return (self.only_one + self.only_other) / self.outputs

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's 99 % interval for the probability that an output tells."""
        return clopper_pearson_interval(self.only_one + self.only_other, self.outputs)

    @property
    def verdict(self) -> str:
        """One of "told apart", "nothing found" and "another sampler"."""
        if self.neither:
            return "another sampler"
        return "told apart" if self.only_one or self.only_other else "nothing found"

    def __str__(self) -> str:
        low, high = self.interval
        if self.verdict == "nothing found":
            return (
                f"nothing found: each of {self.outputs:,} outputs is possible for {self.one:g} and for {self.other:g}"
            )
        if self.verdict == "another sampler":
            return (
                f"another sampler: {self.neither:,} of {self.outputs:,} outputs are possible for neither value, so the "
                "test does not know the noise and proves nothing"
            )
        return (
            f"told apart: {self.only_one:,} of {self.outputs:,} outputs are possible only for {self.one:g}, "
            f"{self.only_other:,} only for {self.other:g}: {self.share:.1%} ({low:.1%} to {high:.1%} at 99 % "
            "confidence) prove which it was, whatever epsilon was claimed"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the counts and the verdict as plain values, for JSON.

        Returns
        -------
        dict
            All attributes, the share of revealing outputs and its interval.
        """
        return {
            "attack": "low bits",
            "verdict": self.verdict,
            "one": self.one,
            "other": self.other,
            "outputs": self.outputs,
            "only_one": self.only_one,
            "only_other": self.only_other,
            "both": self.both,
            "neither": self.neither,
            "share": self.share,
            "interval": list(self.interval),
        }


def classify_outputs(outputs: npt.ArrayLike, one: Number, other: Number, possible: Possible) -> LowBitsResult:
    """Sort outputs by which of two true values can have given them.

    Parameters
    ----------
    outputs : array of numbers
        Outputs of a mechanism, at least one, all finite.
    one, other : number
        The two true values that are compared.
    possible : callable
        `possible(outputs, value)` says for each output whether the sampler ever gives it for that value: that of
        `FloatLaplace` for noise in doubles, that of `GridNoise` for Tacit's.

    Returns
    -------
    LowBitsResult
        How many outputs are possible for one value, for both, or for neither.

    Raises
    ------
    ParameterError
        If the outputs are not a list of finite numbers.

    Examples
    --------
    >>> import numpy as np
    >>> noise = FloatLaplace(scale=10.0)
    >>> classify_outputs(noise.draw(0.0, 200, np.random.default_rng(0)), 0.0, 1.0, noise.possible).verdict
    'told apart'
    """
    numbers = np.asarray(outputs, dtype=np.float64)
    if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
        raise ParameterError("outputs", "needs a list of finite numbers", fix="outputs=mechanism(data, size=1000), say")
    values = [float(to_rational(name, value)) for name, value in (("one", one), ("other", other))]
    first, second = (possible(numbers, value) for value in values)
    counts = [int(np.count_nonzero(flags)) for flags in (first & ~second, second & ~first, first & second)]
    return LowBitsResult(values[0], values[1], counts[0], counts[1], counts[2], len(numbers) - sum(counts))


@dataclass(frozen=True)
class GuessingResult:
    """How often a guess by the low bits is right, and the most that epsilon allows.

    Attributes
    ----------
    right, rounds : int
        How many of the guesses were right.
    epsilon : float
        The epsilon that is claimed for one output.

    Examples
    --------
    >>> found = GuessingResult(right=1700, rounds=2000, epsilon=0.1)
    >>> round(found.max_accuracy, 4), found.verdict
    (0.525, 'broken')
    """

    right: int
    rounds: int
    epsilon: float

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's 99 % interval for the probability of a right guess."""
        return clopper_pearson_interval(self.right, self.rounds)

    @property
    def max_accuracy(self) -> float:
        """The largest probability of a right guess under epsilon: e^epsilon/(1 + e^epsilon)."""
        return 1 - min_guessing_error(self.epsilon)

    @property
    def verdict(self) -> str:
        """ "broken" where guesses are right significantly more often than epsilon allows, else "nothing found"."""
        return "broken" if self.interval[0] > self.max_accuracy else "nothing found"

    def __str__(self) -> str:
        low, high = self.interval
        share = self.right / self.rounds
        return (
            f"{self.verdict}: {self.right:,} of {self.rounds:,} guesses are right, {share:.4f} ({low:.4f} to "
            f"{high:.4f} at 99 % confidence); epsilon {self.epsilon:g} allows {self.max_accuracy:.4f}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the counts, the interval and the allowed accuracy as plain values, for JSON.

        Returns
        -------
        dict
            All attributes, the verdict, the interval and the most that epsilon allows.
        """
        return {
            "verdict": self.verdict,
            "right": self.right,
            "rounds": self.rounds,
            "interval": list(self.interval),
            "epsilon": self.epsilon,
            "allowed": self.max_accuracy,
        }


def simulate_guessing(
    mechanism: Callable[[float, int], npt.ArrayLike],
    one: float,
    other: float,
    possible: Possible,
    *,
    epsilon: float,
    rounds: int = 2000,
    seed: int = 0,
) -> GuessingResult:
    """Pick one of two true values by a fair coin, see an output, and guess: by its low bits, else by the nearer value.

    Parameters
    ----------
    mechanism : callable
        `mechanism(value, count)` gives `count` outputs for a true value.
    one, other : number
        The two true values; they are neighbors under the claim.
    possible : callable
        Says which outputs a value can give, as in `classify_outputs`.
    epsilon : float
        The epsilon that is claimed for one output, positive.
    rounds : int
        How many guesses are made, 2 or more.
    seed : int
        Seed of the fair coin.

    Returns
    -------
    GuessingResult
        How often the guess is right, and the most that epsilon allows.

    Raises
    ------
    ParameterError
        If the mechanism gives another number of outputs.

    Examples
    --------
    >>> import numpy as np
    >>> noise, rng = FloatLaplace(scale=10.0), np.random.default_rng(0)
    >>> found = simulate_guessing(
    ...     lambda value, count: noise.draw(value, count, rng), 0.0, 1.0, noise.possible, epsilon=0.1, rounds=400
    ... )
    >>> found.verdict
    'broken'
    """
    many = to_integer("rounds", rounds, least=2)
    ones = int(np.random.default_rng(seed).binomial(many, 0.5))
    right = 0
    for value, wrong, count in ((one, other, ones), (other, one, many - ones)):
        outputs = np.asarray(mechanism(value, count), dtype=np.float64)
        if outputs.shape != (count,):
            raise ParameterError(
                "mechanism", f"gave {outputs.shape} outputs for {count}", fix="mechanism(value, count)"
            )
        here, there = possible(outputs, float(value)), possible(outputs, float(wrong))
        near = np.abs(outputs - value) < np.abs(outputs - wrong)
        right += int(np.count_nonzero(np.where(here == there, near, here)))
    return GuessingResult(right, many, epsilon)
