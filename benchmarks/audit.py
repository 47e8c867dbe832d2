"""How tight and how quick the statistical audit is: bounds beside the true parameters, and the time they take.

    python benchmarks/audit.py
    python benchmarks/audit.py --json

Writes benchmarks/audit.md, and prints the same, or JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from environment import HERE, say
from report import table
from scipy.special import betainccinv, betaincinv

from tacit.audit.claim import Claim
from tacit.audit.statistical import AuditResult, audit
from tacit.mechanisms import Gaussian, Laplace, NoisyMax, RandomizedResponse
from tacit.sampling.bits import SystemBits

SIZES = (10_000, 100_000, 1_000_000)
TRIES = 3
CONFIDENCE = 0.99
BITS = SystemBits()


@dataclass(frozen=True)
class Case:
    """A mechanism with its true parameter on a pair."""

    name: str
    mechanism: Callable[..., Any]
    one: Any
    other: Any
    claim: Claim
    true: str
    most: int = SIZES[-1]


def main() -> None:
    """Measure, then tell."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", action="store_true", help="print JSON in place of the table")
    chosen = options.parse_args()
    results = []
    for case in cases():
        for samples in SIZES:
            if samples <= case.most:
                say(f"{case.name}, {samples:,} samples a side...")
                results.append(measured(case, samples))
    page = markdown(results)
    (HERE / "audit.md").write_text(page, encoding="utf-8")
    print(json.dumps(results, indent=2) if chosen.json else page)


def cases() -> list[Case]:
    """Real mechanisms with exact bits, and one that is broken."""
    truth = RandomizedResponse(Fraction(1))
    noisy = NoisyMax.calibrated(1, 1)
    return [
        Case("randomized response", lambda x, size: truth.release([x] * size, BITS), 1, 0, Claim.epsilon(1), "1"),
        Case("discrete Laplace, scale 1", released(Laplace(Fraction(1))), 1, 0, Claim.epsilon(1), "1"),
        Case("discrete Laplace, scale 10", released(Laplace(Fraction(10))), 1, 0, Claim.epsilon(0.1), "0.1"),
        Case(
            "discrete Laplace, 3 numbers",
            lambda x, size: np.reshape(Laplace(Fraction(3)).release(x * size, BITS), (size, 3)),
            [1, 1, 1],
            [0, 0, 0],
            Claim.epsilon(1),
            "1",
            most=100_000,
        ),
        Case("discrete Gaussian, mu", released(Gaussian(Fraction(100))), 10, 0, Claim.mu(1), "1.0004"),
        Case("discrete Gaussian, rho", released(Gaussian(Fraction(100))), 10, 0, Claim.rho(0.5), "0.5"),
        Case(
            "discrete Gaussian, delta 1e-5",
            released(Gaussian.calibrated(1, Fraction(1, 10**5))),
            1,
            0,
            Claim.epsilon(1, 1e-5),
            "1",
        ),
        Case(
            "report noisy max of 5",
            lambda x, size: [noisy.release(x, BITS) for _ in range(size)],
            [2, 2, 2, 2, 2],
            [3, 1, 1, 1, 1],
            Claim.epsilon(1),
            "at most 1",
            most=100_000,
        ),
        Case("Laplace in floating point", textbook, 1.0, 0.0, Claim.epsilon(1), "infinite"),
    ]


def released(mechanism: Any) -> Callable[[int, int], list[int]]:
    """A mechanism that releases many at once."""
    return lambda value, size: mechanism.release([value] * size, BITS)


def textbook(value: float, size: int, rng: np.random.Generator) -> Any:
    """The broken one."""
    uniform = rng.random(size) - 0.5
    return value - np.sign(uniform) * np.log(1 - 2 * np.abs(uniform))


def measured(case: Case, samples: int) -> dict[str, Any]:
    """The median bound and time of a few audits."""
    findings, times = [], []
    for seed in range(TRIES):
        start = time.process_time()
        findings.append(
            audit(
                case.mechanism,
                case.one,
                case.other,
                case.claim,
                samples=samples,
                confidence=CONFIDENCE,
                seed=seed,
            )
        )
        times.append(time.process_time() - start)
    return {
        "name": case.name,
        "parameter": case.claim.name,
        "true": case.true,
        "samples": samples,
        "bound": statistics.median(finding.lower for finding in findings),
        "halves": statistics.median(halves(finding) for finding in findings),
        "event": findings[0].event,
        "seconds": statistics.median(times),
    }


def halves(finding: AuditResult) -> float:
    """The bound of the same counts with two Clopper-Pearson limits, half the error each: no other event paid for."""
    counts, trials, miss = [finding.one_count, finding.other_count], finding.trials, (1 - finding.confidence) / 2
    rarer, likelier = sorted(counts)
    if likelier in {0, trials}:
        return float("nan")
    high = float(betaincinv(likelier, trials - likelier + 1, miss))
    return finding.claim.refuted_by(high, float(betainccinv(rarer + 1, trials - rarer, miss)))


def markdown(results: list[dict[str, Any]]) -> str:
    """The page."""
    cells = [["mechanism", "parameter", "true", "samples a side", "bound", "two halves", "seconds", "event"]]
    for row in results:
        cells.append(
            [
                row["name"],
                row["parameter"],
                row["true"],
                f"{row['samples']:,}",
                f"{row['bound']:.4f}",
                f"{row['halves']:.4f}",
                f"{row['seconds']:.2f}",
                row["event"],
            ]
        )
    return "\n".join(
        [
            "# The statistical audit",
            "",
            f"One run of `python benchmarks/audit.py`: lower bounds at {100 * CONFIDENCE:g} % confidence, the median "
            f"of {TRIES} audits, and the seconds of one core for one, draws included. *Two halves* is the bound "
            "that the same counts give with two Clopper-Pearson limits at half the error each. The event "
            "is that of the first audit.",
            "",
            *table(cells),
            "",
            "A bound for rho is that of one event; the outputs of a Gaussian would need all events at once to show all "
            "of it. At delta 1e-5 an event must be rare to be as telling as the claim, so the bound grows slowly.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
