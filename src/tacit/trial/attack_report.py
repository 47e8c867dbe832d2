"""What attacks on a plain database and on the curator got, and whether that is within what the curator promises."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from tacit.attacks.averaging import AveragingResult
from tacit.attacks.recovered import ReconstructionResult, max_expected_accuracy
from tacit.privacy.unit import Neighbors
from tacit.trial.target import AttackTarget

SIGNIFICANCE = 1e-9


@dataclass(frozen=True, eq=False)
class AttackComparison:
    """One attack, on both."""

    name: str
    unprotected: ReconstructionResult
    protected: ReconstructionResult
    most: float  # the share that is expected at most under the epsilon that the protected one spent
    lost: float = 0.0  # the delta of changing one bit, where the noise has one

    @property
    def chance(self) -> float:
        """The probability of at least so many right guesses, at most, if the curator keeps its promise.

        **Theorem** (Steinke, Nasr, Jagielski 2023). Let the bits be fair and independent, and let changing one of them
        change the probability of any outcome by a factor of at most e^a. However the guesses are made, the number of
        right ones exceeds k with at most the probability that a binomial distribution of n trials with probability
        e^a/(1 + e^a) does. Proof: fix the outcome, and so the guesses, and the bits before i. Averaging over the bits
        after i, bit i is 1 rather than 0 at odds of at most e^a, either way. So each guess is right with at most that
        probability, whatever came before it. With a delta, it is at most 2 n delta more.
        """
        from scipy.stats import binom

        right = self.protected.right
        assert right is not None
        people = self.protected.people
        return min(1.0, float(binom.sf(right - 1, people, self.most)) + 2 * people * self.lost)


@dataclass(frozen=True, eq=False)
class AttackReport:
    """What each attack got, and what differential privacy allows."""

    target: AttackTarget
    epsilon: float
    neighbors: Neighbors
    lines: tuple[AttackComparison, ...]
    plain: AveragingResult
    repeated: AveragingResult
    reworded: AveragingResult
    refusal: str
    deviation: float  # of the noise on the one answer that repeats give

    @property
    def most(self) -> float:
        """The largest share of the bits that anyone is expected to recover under the epsilon."""
        return max_expected_accuracy(self.epsilon, self.neighbors)

    @property
    def is_refuted(self) -> bool:
        """Whether an attack got more than the promise allows.

        If the promise is kept, it is said of none of the attacks but for a probability of `SIGNIFICANCE`, which they
        share equally: the union bound.
        """
        return any(line.chance < SIGNIFICANCE / len(self.lines) for line in self.lines)

    @property
    def verdict(self) -> str:
        """In words."""
        if self.is_refuted:
            return "the promise is broken: more was recovered than it allows"
        bare = all(line.unprotected.share == 1 for line in self.lines)
        out = "unprotected, every secret is out" if bare else "unprotected, most secrets are out"
        return f"{out}; protected, no attack got more than the promise allows"

    def to_dict(self) -> dict[str, Any]:
        """All of it in values that JSON has."""
        lines = [
            {
                "attack": line.name,
                "questions": line.protected.queries,
                "most": line.most,
                "chance": line.chance,
                "unprotected": line.unprotected.to_dict(),
                "protected": line.protected.to_dict(),
            }
            for line in self.lines
        ]
        return {
            "people": self.target.people,
            "table": self.target.table,
            "secret": self.target.secret,
            "known": list(self.target.known),
            "epsilon": self.epsilon,
            "neighbors": str(self.neighbors),
            "most": self.most,
            "attacks": lines,
            "counted": {
                "truth": int(self.target.truth.sum()),
                "unprotected": self.plain.to_dict(),
                "protected_repeated": {**self.repeated.to_dict(), "noise_deviation": self.deviation},
                "protected_reworded": self.reworded.to_dict(),
            },
            "refusal": self.refusal,
            "refuted": self.is_refuted,
            "verdict": self.verdict,
        }

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the share of each attack on both, with what a coin gets and what the epsilon allows."""
        from tacit.pictures import COLORS, TEXT_COLOR, open_figure

        title = f"Secrets recovered, of {self.target.people:,} people"
        with open_figure(path, title, "", "share of the bits", size=(8.0, 4.2)) as axes:
            for place, line in enumerate(self.lines):
                for offset, found, color in ((-0.2, line.unprotected, COLORS[1]), (0.2, line.protected, COLORS[0])):
                    assert found.share is not None
                    assert found.interval is not None
                    label = ("unprotected" if offset < 0 else f"Tacit, epsilon {self.epsilon:g}") if not place else None
                    axes.bar(place + offset, found.share, width=0.36, color=color, label=label)
                    ends = [[max(0.0, found.share - found.interval[0])], [max(0.0, found.interval[1] - found.share)]]
                    axes.errorbar([place + offset], [found.share], yerr=ends, color=TEXT_COLOR, capsize=3, linewidth=1)
            axes.axhline(self.most, color=COLORS[2], linestyle="--", label=f"the most expected, {self.most:.1%}")
            axes.axhline(0.5, color=COLORS[5], linestyle=":", label="a coin, 50%")
            axes.set_xticks(range(len(self.lines)), [line.name for line in self.lines])
            axes.set_ylim(0, 1.05)
            axes.grid(visible=False, axis="x")
            axes.set_axisbelow(True)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=4, fontsize=9)
