"""Who is in the study?
====================

From exact averages nearly every member is found, from private ones hardly any.

Without a path the picture is shown, where there is a screen::

    python examples/tracing.py
    python examples/tracing.py docs/images/tracing.svg
"""

from __future__ import annotations

import sys

import numpy as np

from tacit.accounting import max_true_positive_rate
from tacit.attacks import SimulatedStudy, expected_power, infer_membership
from tacit.mechanisms import Gaussian
from tacit.pictures import open_figure
from tacit.sampling.bits import ReplayBits

PEOPLE, ATTRIBUTES = 100, 2000
EPSILON, DELTA = 1.0, 1e-6
ALARMS = np.linspace(0, 1, 201)


def main(target: str | None = None) -> None:
    study = SimulatedStudy.draw(PEOPLE, ATTRIBUTES, np.random.default_rng(1), reference=4000)
    noise = Gaussian.calibrated(EPSILON, DELTA, sensitivity=1, coordinates=ATTRIBUTES)
    private = np.array(noise.release(study.counts, ReplayBits(b"tracing"))) / PEOPLE
    found = {
        "exact averages": infer_membership(study.members, study.means, study.reference),
        f"with noise, epsilon {EPSILON:g}": infer_membership(study.members, private, study.reference),
    }
    for name, result in found.items():
        print(f"{name}: {result}")
    size = {"size": (11, 4.2), "panels": 2}
    with open_figure(
        target, "Members found, 2,000 averages of 100 people", "false positive rate", "found", **size
    ) as both:
        left, right = both
        for name, result in found.items():
            left.plot(ALARMS, result.rates(ALARMS.tolist()), label=name)
        most = [max_true_positive_rate(EPSILON, alarm, DELTA) for alarm in ALARMS.tolist()]
        left.plot(ALARMS, most, "--", label=f"the most under epsilon {EPSILON:g}")
        left.plot([0, 1], [0, 1], ":", color="gray", label="a blind guess")
        _power(right)


def _power(axes) -> None:
    """How many members are found at 1 % false positives, by the number of averages."""
    rng = np.random.default_rng(2)
    counts = [25, 50, 100, 200, 400, 800, 1600]
    shares = []
    for attributes in counts:
        studies = [SimulatedStudy.draw(PEOPLE, attributes, rng, reference=999, spread=(0.5, 0.5)) for _ in range(5)]
        traced = [infer_membership(s.members, s.means, s.reference, frequencies=s.frequencies) for s in studies]
        shares.append(np.mean([result.share for result in traced]))
    ratios = np.array(counts) / PEOPLE
    fine = np.geomspace(ratios[0], ratios[-1], 60)
    axes.semilogx(
        fine, [expected_power(round(ratio * 10_000), 10_000, 0.01) for ratio in fine], label="Phi(sqrt(d/n) - z)"
    )
    axes.semilogx(ratios, shares, "o", label="played")
    axes.set(xlabel="averages per person in the study, d/n", ylabel="found at 1 % false positives", ylim=(0, 1.05))
    axes.set_xticks(ratios, [f"{ratio:g}" for ratio in ratios])
    axes.minorticks_off()
    axes.set_title("It is d/n that counts")


if __name__ == "__main__":
    main(*sys.argv[1:2])
