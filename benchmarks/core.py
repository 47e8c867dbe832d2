"""Speed of the core, as ratios in one run: exact noise, calibration and accounting.

    make bench
    python benchmarks/core.py --json

Writes benchmarks/core.md, and prints the same, or JSON. Peers run in environments of their own, made on first use.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from environment import HERE, say
from report import seconds, table, times

from tacit.accounting import calibrate, epsilon
from tacit.privacy.loss import ContinuousGaussianNoise, ContinuousLaplaceNoise, Repeat, Sampled
from tacit.sampling import gaussian, laplace
from tacit.sampling.bits import SystemBits

DRAWS = 1_000_000
DELTA = 1e-5
PEERS = {
    "opendp and dp-accounting": ("core-peer", ["opendp==0.16.0", "dp-accounting==0.6.0"]),
    "diffprivlib": ("core-diffprivlib", ["diffprivlib==0.6.5", "scikit-learn<1.5", "numpy<2"]),
}


def main() -> None:
    """Measure, then tell."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", action="store_true", help="print JSON in place of the table")
    chosen = options.parse_args()
    results = {"tacit": ours(), **{name: peer(*PEERS[name]) for name in PEERS}}
    page = markdown(results)
    (HERE / "core.md").write_text(page, encoding="utf-8")
    print(json.dumps(results, indent=2) if chosen.json else page)


def ours() -> dict[str, Any]:
    """Tacit's seconds, and the epsilons it finds."""
    say("Tacit: draws, calibration, accounting...")
    bits, rng = SystemBits(), np.random.default_rng(0)
    thousand = Repeat(ContinuousLaplaceNoise(Fraction(10)), 1000)
    descent = Repeat(Sampled(ContinuousGaussianNoise(Fraction(1)), Fraction(1, 100)), 100_000)
    return {
        "numpy laplace": median(lambda: rng.laplace(0, 10, DRAWS), 15),
        "numpy normal": median(lambda: rng.normal(0, 10, DRAWS), 15),
        "laplace 10": median(lambda: laplace.draw_array(Fraction(10), DRAWS, bits), 15),
        "gaussian 10": median(lambda: gaussian.draw_array(Fraction(100), DRAWS, bits), 15),
        "gaussian 2^20": median(lambda: gaussian.draw_array(Fraction(2) ** 40, DRAWS, bits), 15),
        "one laplace": median(lambda: [laplace.draw(Fraction(10), bits) for _ in range(1000)], 15) / 1000,
        "one gaussian": median(lambda: [gaussian.draw(Fraction(100), bits) for _ in range(1000)], 9) / 1000,
        "calibrate laplace": median(lambda: calibrate.laplace_scale(Fraction(1), 3), 15),
        "calibrate gaussian": median(lambda: calibrate.gaussian_variance(Fraction(1), Fraction(1, 10**5), 1), 15),
        "pld laplace": median(lambda: epsilon(thousand, DELTA), 5),
        "pld laplace epsilon": epsilon(thousand, DELTA),
        "pld descent": median(lambda: epsilon(descent, DELTA), 3),
        "pld descent epsilon": epsilon(descent, DELTA),
    }


def median(call: Callable[[], Any], calls: int) -> float:
    """The median seconds of a call, after one to warm up."""
    call()
    seconds = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def peer(script: str, wanted: list[str]) -> dict[str, Any]:
    """A peer's figures, from its own environment; empty, with the reason on stderr, where it cannot be had."""
    root = HERE.parent / ".venv-bench" / script
    python = root / "bin" / "python"
    done = root / ".installed"
    try:
        if not done.exists() or done.read_text() != "\n".join(wanted):
            say(f"Setting up {', '.join(wanted)} (once, about a minute)...")
            subprocess.run([sys.executable, "-m", "venv", root], check=True, capture_output=True)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
            subprocess.run(pip, check=True, capture_output=True, text=True)
            done.write_text("\n".join(wanted))
        say(f"{script}: the same...")
        ran = subprocess.run([python, HERE / "core_peers.py", script], check=True, stdout=subprocess.PIPE, text=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        say(f"{script} is left out: {problem}")
        return {}
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def markdown(results: dict[str, dict[str, Any]]) -> str:
    """The page: Tacit's figure, each peer's, and how many times longer the peer takes."""
    tacit, others = results["tacit"], [name for name in results if name != "tacit"]
    rows = [["what", "Tacit", *others, "numpy, unsafe"]]
    titles = {
        "laplace 10": "a million discrete Laplace draws, scale 10",
        "gaussian 10": "a million discrete Gaussian draws, sigma 10",
        "gaussian 2^20": "a million discrete Gaussian draws, sigma 2^20",
        "one laplace": "one discrete Laplace draw",
        "one gaussian": "one discrete Gaussian draw",
        "calibrate gaussian": "least Gaussian noise for (1, 1e-5)",
        "pld laplace": "1,000 Laplace(0.1) at delta 1e-5",
        "pld descent": "gradient descent, q = 0.01, sigma = 1, 100,000 steps",
    }
    for key, title in titles.items():
        shown = [seconds(tacit[key]) + _found(tacit, key)]
        for name in others:
            theirs = results[name].get(key)
            shown.append(
                "-"
                if theirs is None
                else f"{seconds(theirs)}, {times(theirs / tacit[key])} x{_found(results[name], key)}"
            )
        unsafe = {"laplace 10": "numpy laplace", "gaussian 10": "numpy normal"}.get(key)
        shown.append("-" if unsafe is None else f"{seconds(tacit[unsafe])}, {times(tacit[unsafe] / tacit[key])} x")
        rows.append([title, *shown])
    head = ["# Speed of the core", "", "One run of `make bench`, one core. *x* is how many times Tacit's time.", ""]
    return "\n".join([*head, *table(rows), ""])


def _found(results: dict[str, Any], key: str) -> str:
    value = results.get(f"{key} epsilon")
    return "" if value is None else f" (epsilon {value:.5g})"


if __name__ == "__main__":
    main()
