"""Asking without knowing
======================

Two coins, what a yes tells, and what it costs to trust nobody: the error of a share by the number of people, where
everyone randomizes and where a curator adds noise once.

Without a path the picture is shown, where there is a screen::

    python examples/coins.py
    python examples/coins.py docs/images/local.svg
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np

from tacit.accounting import TransitionMatrix
from tacit.local import FrequencySummary, KAryRandomizedResponse
from tacit.local.posterior import posterior_after_no, posterior_after_yes
from tacit.mechanisms import Laplace, RandomizedResponse
from tacit.pictures import open_figure
from tacit.sampling.bits import ReplayBits

SHARE, EPSILON = Fraction(3, 10), Fraction(1)
PEOPLE = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
TRIES = 100


def coins() -> None:
    """One coin decides whether you tell the truth, a second one answers for you if not."""
    asked = RandomizedResponse(coin=Fraction(1, 2))
    law = TransitionMatrix(asked.law())
    print(f"the truth with {law.rows[1][1]}, the other answer with {law.rows[1][0]}: epsilon is ln {law.ratio}")
    answers = asked.release([1] * 300 + [0] * 700, ReplayBits(b"coins"))
    found = asked.estimate(answers, confidence=Fraction(95, 100))
    said = int(answers.sum())
    print(f"{said} of 1,000 say yes: (R - 1/4)/(1/2) is {(said / 1000 - 0.25) / 0.5:.3f}, and 300 would truly")
    print(f"with 95 % confidence it is between {found.low:.3f} and {found.high:.3f}")
    for r in (0.01, 0.1, 0.5):
        yes, no = posterior_after_yes(math.log(3), r), posterior_after_no(math.log(3), r)
        print(f"where {r:.0%} have it: after a yes {yes:.1%}, at most {min(1, 3 * r):.0%}; after a no {no:.1%}")


def local_error(people: int, bits: ReplayBits) -> float:
    """The root mean squared error of the share, where everyone randomizes."""
    protocol = KAryRandomizedResponse(2, EPSILON)
    values = (np.arange(people) < SHARE * people).astype(np.int64)
    found = [FrequencySummary.empty(protocol).add(protocol.encode(values, bits)).estimate() for _ in range(TRIES)]
    return float(np.sqrt(np.mean([(each.frequencies[1] - float(SHARE)) ** 2 for each in found])))


def trusted_error(people: int, bits: ReplayBits) -> float:
    """The same, where a curator counts and adds noise once."""
    noise = Laplace.calibrated(EPSILON, sensitivity=1)
    count = int(SHARE * people)
    found = noise.release([count] * (20 * TRIES), bits)
    return float(np.sqrt(np.mean([((each - count) / people) ** 2 for each in found])))


def main(target: str | None = None) -> None:
    coins()
    bits = ReplayBits(b"local and trusted")
    local, trusted = ([error(n, bits) for n in PEOPLE] for error in (local_error, trusted_error))
    slopes = [np.polyfit(np.log(PEOPLE), np.log(errors), 1)[0] for errors in (local, trusted)]
    with open_figure(target, "What it costs to trust nobody", "people", "error of a share", size=(7.5, 4.2)) as axes:
        expected = [math.sqrt(KAryRandomizedResponse(2, EPSILON).variance(n, float(SHARE))) for n in PEOPLE]
        axes.loglog(PEOPLE, local, "o", markersize=4, label=f"everyone randomizes: slope {slopes[0]:.2f}")
        axes.loglog(PEOPLE, expected, color="C0", linewidth=1, label="its closed form, 1/(epsilon sqrt n)")
        axes.loglog(PEOPLE, trusted, "s", color="C1", markersize=4, label=f"a curator: slope {slopes[1]:.2f}")
        q = math.exp(-1)  # the variance of the noise is 2 q/(1 - q)^2
        law = [math.sqrt(2 * q) / (1 - q) / n for n in PEOPLE]
        axes.loglog(PEOPLE, law, color="C1", linewidth=1, label="its closed form, 1/(epsilon n)")
    print(f"at epsilon 1 and a million people: {local[-1]:.2g} locally, {trusted[-1]:.2g} with a curator")
    print(f"measured slopes: {slopes[0]:.3f} and {slopes[1]:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
