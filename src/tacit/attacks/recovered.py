"""What an attack got: the guessed bits, how many are right, and what that says.

>>> found = ReconstructionResult([1, 0, 1, 1], method="a guess", queries=7, noise="no noise", truth=[1, 0, 1, 0])
>>> found.share, found.blatant
(0.75, False)
>>> round(max_expected_accuracy(1.0, Neighbors.REPLACE), 3), round(max_expected_accuracy(1.0, Neighbors.ADD_REMOVE), 3)
(0.731, 0.881)
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.accounting.interpretation import min_guessing_error
from tacit.accounting.interval import clopper_pearson_interval
from tacit.arithmetic import to_integer
from tacit.attacks.oracle import BitArray, as_bits
from tacit.errors import ParameterError
from tacit.pictures import COLORS, TEXT_COLOR, open_figure
from tacit.privacy.unit import Neighbors

_SHARE, _LOW = 0.95, 0.9  # the rule of `blatant`
_SHOWN = 2500  # people in a picture
_PALE = "#e6eaee"


@dataclass(frozen=True, eq=False)
class ReconstructionResult:
    """The guessed bits of an attack, beside the true ones where these are known.

    Attributes
    ----------
    guess : array of bits
        The guessed bit of each person.
    method : str
        How the bits were guessed, in words.
    queries : int
        How many questions were answered.
    noise : str
        The noise of the answers in words.
    truth : array of bits or None
        The true bit of each person, where it is known.
    planned : int or None
        How many questions were to be asked; more than `queries` where the budget was spent.
    stopped : str
        The refusal for the budget that came before the next question, else empty.

    Examples
    --------
    >>> found = ReconstructionResult([1, 0, 1, 1], method="a guess", queries=7, noise="no noise", truth=[1, 0, 1, 0])
    >>> found.right, found.share, found.blatant
    (3, 0.75, False)
    """

    guess: BitArray
    method: str
    queries: int
    noise: str
    truth: BitArray | None = None
    planned: int | None = None
    stopped: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "guess", as_bits("guess", self.guess))
        object.__setattr__(self, "queries", to_integer("queries", self.queries, least=0))
        if self.truth is not None:
            object.__setattr__(self, "truth", as_bits("truth", self.truth))
            if len(self.truth) != len(self.guess):
                raise ParameterError(
                    "truth", f"has {len(self.truth)} bits for {len(self.guess)} people", fix="one bit for each person"
                )

    @property
    def people(self) -> int:
        """How many bits were guessed."""
        return len(self.guess)

    @property
    def right(self) -> int | None:
        """How many bits are guessed right, where the truth is known."""
        return None if self.truth is None else int(np.count_nonzero(self.guess == self.truth))

    @property
    def share(self) -> float | None:
        """The share of the bits that are guessed right: 0.5 is what a coin gets of fair bits."""
        return None if self.right is None else self.right / self.people

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 99 % interval of the probability that a bit is guessed right, by `clopper_pearson_interval`.

        It counts the people as independent trials. Guesses of one attack share its questions and are slightly
        dependent, so it is a yardstick for the share and no guarantee about the mechanism.
        """
        return None if self.right is None else clopper_pearson_interval(self.right, self.people)

    @property
    def blatant(self) -> bool:
        """Whether what was attacked is called blatantly non-private.

        The definition (all but o(n) of the entries can be reconstructed) is about growing n. The rule for one run: at
        least 95 % of the bits are right, and the 99 % interval starts at 90 % or above. A few people are too few to
        tell: all of 51 bits right are enough, all of 50 are not. False does not say that it is private.
        """
        share, interval = self.share, self.interval
        return share is not None and interval is not None and share >= _SHARE and interval[0] >= _LOW

    def __str__(self) -> str:
        lines = [f"{self.method}: {self.people:,} bits guessed from {self.queries:,} answers with {self.noise}"]
        if self.stopped:
            planned = "" if self.planned is None else f" of {self.planned:,}"
            lines[0] += f" ({self.queries:,}{planned} questions were answered, then the budget was spent)"
        if self.share is None or self.interval is None:
            return f"{lines[0]}; the truth is not known here, so nothing says how many are right"
        low, high = self.interval
        lines.append(
            f"right: {self.right:,} of {self.people:,}, {self.share:.1%} "
            f"(99 % interval {low:.1%} to {high:.1%}; a coin gets 50 %)"
        )
        lines.append(
            "blatantly non-private: nearly every secret is out"
            if self.blatant
            else "not blatantly non-private by this attack, which is no proof of privacy"
        )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Return the guess, the truth and how they compare as plain values, for JSON.

        Returns
        -------
        dict
            All attributes, the share of right bits with its interval, and whether it is blatantly non-private.
        """
        return {
            "method": self.method,
            "people": self.people,
            "queries": self.queries,
            "planned": self.queries if self.planned is None else self.planned,
            "stopped": self.stopped,
            "noise": self.noise,
            "right": self.right,
            "share": self.share,
            "interval": None if self.interval is None else list(self.interval),
            "blatant": self.blatant,
            "guess": self.guess.astype(int).tolist(),
            "truth": None if self.truth is None else self.truth.astype(int).tolist(),
        }

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        epsilons: tuple[float, ...] = (0.1, 1.0),
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> None:
        """Plot the true bits, the guessed ones with the wrong ones marked, and the share that is right.

        The bars beside it are what a fair coin gets, and `max_expected_accuracy` for each epsilon.

        Parameters
        ----------
        path : path, optional
            The picture to write; its ending chooses the format (.png, .svg, .pdf). Without it matplotlib shows the
            figure.
        epsilons : tuple of float
            The epsilons whose bounds are shown, each 0 or more.
        neighbors : Neighbors
            The relation that these epsilons are for.
        """
        if self.truth is None:
            with open_figure(path, "Guessed bits", "", "", size=(4.2, 4.2)) as axes:
                _draw_bits(axes, self.guess, None)
            return
        with open_figure(path, "The secret bits", "", "", size=(11.0, 4.2), panels=3) as (secret, guessed, shares):
            _draw_bits(secret, self.truth, None)
            _draw_bits(guessed, self.guess, self.guess != self.truth)
            guessed.set_title("What the attack guesses")
            _bars(shares, self, [(epsilon, max_expected_accuracy(epsilon, neighbors)) for epsilon in epsilons])


def max_expected_accuracy(epsilon: float, neighbors: Neighbors, delta: float = 0.0) -> float:
    """Return the largest expected share of fair bits that anyone recovers from releases of this total epsilon.

    **Theorem.** Let the n bits be fair and independent. Where changing a bit is one step (REPLACE), the expected share
    is at most 1 - (1 - delta)/(1 + e^epsilon): e^epsilon/(1 + e^epsilon) at delta 0. Where it takes a removal and an
    addition (ADD_REMOVE), the same holds with 2 epsilon and (1 + e^epsilon) delta.

    Proof. Fix person i and all other bits. The two databases left, bit i being 0 or 1, are equally likely and are
    neighbors; whoever guesses bit i from the releases plays the distinguishing game, and errs with at least the
    probability of `min_guessing_error`. Average over the other bits and over i: expectations add up, dependent or not.
    Two steps are a group of two, which is (2 epsilon, (1 + e^epsilon) delta)-DP.

    Parameters
    ----------
    epsilon : float
        The total privacy loss of all releases, 0 or more.
    neighbors : Neighbors
        The relation that epsilon is for.
    delta : float
        The total delta of all releases, in [0, 1].

    Returns
    -------
    float
        The bound, from 1/2 to 1.

    Raises
    ------
    ParameterError
        If epsilon, delta or the relation is not one.

    Examples
    --------
    >>> [round(max_expected_accuracy(1.0, each), 3) for each in (Neighbors.REPLACE, Neighbors.ADD_REMOVE)]
    [0.731, 0.881]
    """
    if neighbors is Neighbors.REPLACE:
        return 1 - min_guessing_error(epsilon, delta)
    if neighbors is not Neighbors.ADD_REMOVE:
        raise ParameterError(
            "neighbors", f"is not a neighbor relation: {neighbors!r:.60}", fix="Neighbors.REPLACE, say"
        )
    min_guessing_error(epsilon, delta)  # refuses what is no guarantee
    lost = delta * (1 + math.exp(min(epsilon, 700.0))) if delta else 0.0
    return 1 - min_guessing_error(2 * epsilon, min(1.0, lost))


def _draw_bits(axes: Any, bits: BitArray, wrong: BitArray | None) -> None:
    """A square of cells, a person each: dark where the bit is 1, pale where it is 0, another color where wrong."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    count = min(len(bits), _SHOWN)
    side = math.ceil(math.sqrt(count))
    cells = np.full(side * side, np.nan)
    cells[:count] = bits[:count]
    names = ["bit 0", "bit 1"]
    if wrong is not None:
        cells[:count][wrong[:count]] = 2
        names.append("guessed wrong")
    colors = [_PALE, COLORS[0], COLORS[1]]
    grid = np.ma.masked_invalid(cells.reshape(side, side))
    axes.pcolormesh(grid, cmap=ListedColormap(colors), vmin=0, vmax=2, edgecolor="white", linewidth=min(1.0, 12 / side))
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.set_axis_off()
    patches = [Patch(color=color, label=name) for color, name in zip(colors, names, strict=False)]
    axes.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=len(names), fontsize=8)
    if count < len(bits):
        axes.text(0, -0.01 * side, f"the first {count:,} of {len(bits):,} people", fontsize=8)


def _bars(axes: Any, found: ReconstructionResult, allowed: list[tuple[float, float]]) -> None:
    """The share recovered, beside what a coin gets and what differential privacy allows."""
    assert found.share is not None
    assert found.interval is not None
    low, high = found.interval
    bars = [("a coin", 0.5, COLORS[5])]
    bars += [(f"epsilon {epsilon:g}\nat most", share, COLORS[2]) for epsilon, share in allowed]
    bars += [("this attack", found.share, COLORS[0])]
    for place, (_, height, color) in enumerate(bars):
        axes.bar(place, height, color=color, width=0.65)
        axes.text(place, 0.02, f"{height:.1%}", ha="center", color="white", fontweight="bold", fontsize=9)
    spread = [[found.share - low], [high - found.share]]
    axes.errorbar([len(bars) - 1], [found.share], yerr=spread, color=TEXT_COLOR, capsize=4)
    axes.set_xticks(range(len(bars)), [name for name, _, _ in bars], fontsize=9)
    axes.set(title="Share of secrets guessed right", ylim=(0, 1.05))
    axes.set_axisbelow(True)
    axes.grid(visible=False, axis="x")
