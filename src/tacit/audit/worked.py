"""The exact epsilon of a mechanism with few outputs, worked out step by step.

>>> from fractions import Fraction
>>> coin = TransitionMatrix([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
>>> print(derive_epsilon(coin, outputs=["no", "yes"]))
1. The table: P[output | input]
   output  input 0  input 1
   no          3/4      1/4
   yes         1/4      3/4
2. For each output, the largest ratio between two neighboring inputs
   no   3/4 : 1/4 = 3
   yes  3/4 : 1/4 = 3
3. The largest of them
   3, at the output no
4. Its logarithm
   epsilon = ln 3 = 1.098612
5. What it means
   whoever guesses which of two neighboring inputs was used errs at least 0.250000 of the time (0.5 is a blind guess)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting.interpretation import format_guessing_error
from tacit.accounting.transition_matrix import TransitionMatrix, of_laplace
from tacit.errors import ParameterError

_LINES = 12  # of a table that are shown
_SHORT = 10_000  # the largest denominator that is shown
_WIDE = 300  # decimal digits, beyond which a number is shown by its logarithm
_FAR = 10**6  # an epsilon at which only what gives everything away is left
MEANS, OF, STUDENTS = 5, 3, 30  # the classroom: five means of three random students of thirty
USUAL, SPECIAL = 50, 90  # the scores of 29 students, and of one


@dataclass(frozen=True)
class DerivationStep:
    """One step of a derivation of epsilon.

    Attributes
    ----------
    title : str
        What the step does, in a sentence.
    lines : tuple of str
        What comes of it: the lines of a table, or a single number.

    Examples
    --------
    >>> DerivationStep("Its logarithm", ("epsilon = ln 3 = 1.098612",)).title
    'Its logarithm'
    """

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class EpsilonDerivation:
    """The steps from a table of probabilities to its epsilon; `str` prints them numbered.

    Attributes
    ----------
    matrix : TransitionMatrix
        The table of probabilities that is derived from.
    epsilon : float
        The exact epsilon, infinite where an output is possible for one input only.
    steps : tuple of DerivationStep
        The steps in order, five where any two inputs are neighbors.

    Examples
    --------
    >>> found = derive_epsilon(TransitionMatrix([[0.75, 0.25], [0.25, 0.75]]))
    >>> len(found.steps), round(found.epsilon, 6)
    (5, 1.098612)
    """

    matrix: TransitionMatrix
    epsilon: float
    steps: tuple[DerivationStep, ...]

    def __str__(self) -> str:
        """All five, numbered."""
        lines = []
        for number, step in enumerate(self.steps, 1):
            lines.append(f"{number}. {step.title}")
            lines += [f"   {line}" for line in step.lines]
        return "\n".join(lines)


@dataclass(frozen=True)
class _Ratio:
    """The largest ratio of one output: its two probabilities. The second is zero where the ratio is infinite."""

    output: str
    above: Fraction
    below: Fraction

    @property
    def size(self) -> tuple[bool, Fraction]:
        """What ratios are compared by: infinite ones first, then the quotient."""
        return (True, self.above) if not self.below else (False, self.above / self.below)

    @property
    def text(self) -> str:
        return _number(self.above / self.below) if self.below else "infinite: a zero beside a non-zero"


def derive_epsilon(
    matrix: TransitionMatrix, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
) -> EpsilonDerivation:
    """Derive the epsilon of a table of probabilities in five steps.

    **Theorem.** The least epsilon with P[T | x] <= e^epsilon P[T | y] for all neighbors x, y and all sets T of outputs
    is the logarithm of the largest ratio P[r | x] / P[r | y] of a single output. Proof: sum the inequality over the
    outputs of T; and a single output is a set.

    Parameters
    ----------
    matrix : TransitionMatrix
        The probability of each output for each input.
    inputs, outputs : sequence of str, optional
        Names of the inputs and of the outputs, as many as the table has; numbered where left out.

    Returns
    -------
    EpsilonDerivation
        The steps, which `print` shows, and the epsilon.

    Raises
    ------
    ParameterError
        If there are not as many names as inputs or outputs.

    Examples
    --------
    >>> print(derive_epsilon(TransitionMatrix([[0.75, 0.25], [0.25, 0.75]]), outputs=["no", "yes"]).steps[3].lines[0])
    epsilon = ln 3 = 1.098612
    """
    people = _names("inputs", inputs, "input", len(matrix.rows))
    shown = _names("outputs", outputs, "output", len(matrix.rows[0]))
    ratios = [ratio for number, name in enumerate(shown) if (ratio := _largest(matrix, number, name)) is not None]
    steps = [DerivationStep("The table: P[output | input]", _table(matrix, people, shown, ratios))]
    title = "For each output, the largest ratio between two neighboring inputs"
    if not ratios:
        nobody = ("no two inputs are neighbors: there is nothing to compare",)
        return EpsilonDerivation(matrix, 0.0, (*steps, DerivationStep(title, nobody)))
    steps.append(DerivationStep(title, _ratios(ratios)))
    worst = max(ratios, key=lambda ratio: ratio.size)
    steps.append(DerivationStep("The largest of them", (f"{worst.text}, at the output {worst.output}",)))
    epsilon = matrix.epsilon
    log = "infinite" if math.isinf(epsilon) else f"ln {_number(worst.above / worst.below)} = {epsilon:.6f}"
    steps.append(DerivationStep("Its logarithm", (f"epsilon = {log}",)))
    return EpsilonDerivation(matrix, epsilon, (*steps, DerivationStep("What it means", (_meaning(matrix, epsilon),))))


def undefended_classroom() -> TransitionMatrix:
    """Return the table of five exact means of three random students of thirty: 29 scored 50, and one 90 or 50.

    The 90 is among three of thirty with probability C(29, 2)/C(30, 3) = 1/10. Outputs: no mean shows it; one does. A
    mean of 63.3 cannot come of 50s alone, so epsilon is infinite, and with probability 1 - 0.9^5 = 0.40951 the answers
    reveal the student's score.

    Returns
    -------
    TransitionMatrix
        The probabilities of the outputs, for the class with the 90 and for the one without.

    Examples
    --------
    >>> undefended_classroom().epsilon
    inf
    """
    hit = Fraction(math.comb(STUDENTS - 1, OF - 1), math.comb(STUDENTS, OF))
    return TransitionMatrix([[1 - hit, hit], [1, 0]]).repeat(MEANS)


def defended_classroom(epsilon: float) -> TransitionMatrix:
    """Return the table of the whole class's mean in steps of 1/30, with Laplace noise.

    The two classes differ by 40 steps, which is 1.33 points. Noise of scale 40/epsilon steps is epsilon-DP for this
    pair: at 0.1 that is 400 steps, 13.3 points. A guarantee for every pair of classrooms needs the scale of 100 steps.

    Parameters
    ----------
    epsilon : float
        The privacy loss of the release, positive and finite; a smaller one has more noise.

    Returns
    -------
    TransitionMatrix
        The probabilities of the noisy mean, for the class with the 90 and for the one without.

    Raises
    ------
    ParameterError
        If epsilon is not positive and finite.

    Examples
    --------
    >>> round(defended_classroom(0.1).epsilon, 6)
    0.1
    """
    if not 0 < epsilon < math.inf:
        raise ParameterError("epsilon", "must be positive and finite", fix="epsilon=0.1, say")
    moved = SPECIAL - USUAL
    return of_laplace(moved / epsilon, [STUDENTS * USUAL + moved, STUDENTS * USUAL])


def _names(name: str, given: Sequence[str] | None, word: str, count: int) -> list[str]:
    if given is None:
        return [f"{word} {number}" for number in range(count)]
    if len(given) != count:
        raise ParameterError(name, f"there are {len(given)} names for {count}", fix=f"give each {word} a name")
    return [str(each) for each in given]


def _largest(matrix: TransitionMatrix, output: int, name: str) -> _Ratio | None:
    """The largest ratio of this output; None where no neighbor can see it."""
    entries = [(matrix.rows[one][output], matrix.rows[other][output]) for one, other in matrix.pairs]
    ratios = [_Ratio(name, above, below) for above, below in entries if above]
    return max(ratios, key=lambda ratio: ratio.size, default=None)


def _table(matrix: TransitionMatrix, inputs: list[str], outputs: list[str], ratios: list[_Ratio]) -> tuple[str, ...]:
    """The table with a line for each output; of many, those with the largest ratios."""
    kept = {ratio.output for ratio in _first(ratios)} if len(outputs) > _LINES else set(outputs)
    rows = [["output", *inputs]]
    rows += [
        [name, *(_number(row[number]) for row in matrix.rows)] for number, name in enumerate(outputs) if name in kept
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    return (*lines, *_rest(len(outputs) - len(kept)))


def _ratios(ratios: list[_Ratio]) -> tuple[str, ...]:
    kept = _first(ratios)
    width = max(len(ratio.output) for ratio in kept)
    lines = [
        f"{ratio.output.ljust(width)}  {_number(ratio.above)} : {_number(ratio.below)} = {ratio.text}" for ratio in kept
    ]
    return (*lines, *_rest(len(ratios) - len(kept)))


def _first(ratios: list[_Ratio]) -> list[_Ratio]:
    """All ratios in their order; of many, the largest."""
    if len(ratios) <= _LINES:
        return ratios
    limit = sorted((ratio.size for ratio in ratios), reverse=True)[_LINES - 1]
    return [ratio for ratio in ratios if ratio.size >= limit][:_LINES]


def _rest(count: int) -> tuple[str, ...]:
    return (f"... and {count} more, none with a larger ratio",) if count > 0 else ()


def _number(number: Fraction) -> str:
    if number.denominator <= _SHORT and number.numerator < _SHORT**2:
        return str(number)
    log = (math.log(number.numerator) - math.log(number.denominator)) / math.log(10)
    return f"{float(number):.6g}" if abs(log) < _WIDE else f"10^{log:.1f}"


def _meaning(matrix: TransitionMatrix, epsilon: float) -> str:
    if epsilon == 0:
        return "the output says nothing about which of two neighboring inputs was used"
    if math.isinf(epsilon):
        return (
            f"with probability {matrix.delta(_FAR):.6g} an output comes that one input can give and its neighbor "
            "cannot: whoever sees it errs never"
        )
    return (
        "whoever guesses which of two neighboring inputs was used errs at least "
        f"{format_guessing_error(epsilon)} of the time "
        "(0.5 is a blind guess)"
    )
