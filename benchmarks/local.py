"""Speed of the local model: a million people, 1,024 values, epsilon 1, encoded and collected; as ratios in one run.

    make bench
    python benchmarks/local.py --json

Writes benchmarks/local.md, and prints the same, or JSON. Times are the processor's, on one core. Peers run in
environments of their own, made on first use, with the pins they need.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
from environment import HERE, say
from report import seconds, table

from tacit.local import (
    FrequencySummary,
    HadamardResponse,
    KAryRandomizedResponse,
    OptimizedLocalHashing,
    OptimizedUnaryEncoding,
    ProjectiveGeometryResponse,
    SubsetSelection,
    SymmetricUnaryEncoding,
)
from tacit.local.frequency_oracle import FrequencyOracle
from tacit.sampling.bits import SystemBits

PEOPLE, DOMAIN, EPSILON = 1_000_000, 1024, 1
KINDS: tuple[type[FrequencyOracle], ...] = (
    KAryRandomizedResponse,
    SymmetricUnaryEncoding,
    OptimizedUnaryEncoding,
    OptimizedLocalHashing,
    HadamardResponse,
    SubsetSelection,
    ProjectiveGeometryResponse,
)
GOALS = {"k-ary": 1.0, "hadamard": 1.0, "hashing": 5.0, "optimized-unary": 8.0, "symmetric-unary": 8.0}
# pure-ldp imports scikit-learn and statsmodels without saying so; both hash texts, which newer xxhash refuses.
PEERS = {
    "pure-ldp": (
        "local-pure-ldp",
        ["pure-ldp==1.2.0", "scikit-learn==1.5.2", "statsmodels==0.14.4", "xxhash==3.5.0", "scipy<1.16", "pandas<3"],
    ),
    "multi-freq-ldpy": ("local-multi-freq", ["multi-freq-ldpy==0.2.5", "xxhash==3.5.0"]),
}


def main() -> None:
    """Measure, then tell."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", action="store_true", help="print JSON in place of the table")
    chosen = options.parse_args()
    before, peers = ours(), {name: peer(*PEERS[name]) for name in PEERS}
    results: dict[str, Any] = {"tacit": medians(before, ours()), **peers}
    results["variances"] = variances()
    page = markdown(results)
    (HERE / "local.md").write_text(page, encoding="utf-8")
    print(json.dumps(results, indent=2) if chosen.json else page)


Runs = dict[str, list[tuple[float, float]]]


def ours() -> Runs:
    """Tacit's seconds to encode and to collect, of five runs or as many as take half a second."""
    values, bits, found = np.random.default_rng(0).integers(0, DOMAIN, PEOPLE), SystemBits(), {}
    for kind in KINDS:
        protocol = kind(DOMAIN, EPSILON)
        say(f"Tacit: {protocol.kind}...")
        FrequencySummary.empty(protocol).add(
            protocol.encode(values, bits)
        ).estimate()  # loads what is loaded, as for the peers
        runs: list[tuple[float, float]] = []
        while len(runs) < 5 or sum(map(sum, runs)) < 0.5:
            start = time.process_time()
            reports = protocol.encode(values, bits)
            middle = time.process_time()
            FrequencySummary.empty(protocol).add(reports).estimate()
            runs.append((middle - start, time.process_time() - middle))
        found[protocol.kind] = runs
    return found


def medians(before: Runs, after: Runs) -> dict[str, dict[str, float]]:
    """Those of the runs before the peers' and after them, and the bits of a report. Machines have quick moments."""
    found = {}
    for kind in KINDS:
        protocol = kind(DOMAIN, EPSILON)
        runs = before[protocol.kind] + after[protocol.kind]
        encode, collect = (statistics.median(column) for column in zip(*runs, strict=True))
        found[protocol.kind] = {"encode": encode, "collect": collect, "bits": float(protocol.report_bits)}
    return found


def variances() -> dict[str, list[float]]:
    """n times the variance of the estimates of 1,023 values that nobody has: the closed form and what is measured."""
    found, users, surveys = {}, 2_000, 50
    for kind in KINDS:
        row = []
        for epsilon in (1, 4):
            protocol, bits, squares = kind(DOMAIN, epsilon), SystemBits(), []
            for _ in range(surveys):
                counts = protocol.support(protocol.encode(np.zeros(users, dtype=np.int64), bits))[1:]
                squares.append(float(np.mean(((counts / users - protocol.q) / protocol.gap) ** 2)) * users)
            error = statistics.stdev(squares) / math.sqrt(surveys)
            row += [protocol.variance(1), statistics.mean(squares), error]
        found[kind(DOMAIN, 1).kind] = row
    return found


def peer(script: str, wanted: list[str]) -> dict[str, Any]:
    """A peer's seconds, from its own environment; empty, with the reason on stderr, where it cannot be had."""
    root = HERE.parent / ".venv-bench" / script
    python, done = root / "bin" / "python", root / ".installed"
    try:
        if not done.exists() or done.read_text() != "\n".join(wanted):
            say(f"Setting up {', '.join(wanted)} (once, about a minute)...")
            subprocess.run([sys.executable, "-m", "venv", root], check=True, capture_output=True)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
            subprocess.run(pip, check=True, capture_output=True, text=True)
            done.write_text("\n".join(wanted))
        say(f"{script}: the same...")
        ran = subprocess.run([python, HERE / "local_peers.py", script], check=True, stdout=subprocess.PIPE, text=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        say(f"{script} is left out: {problem}")
        return {}
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def markdown(results: dict[str, Any]) -> str:
    """The page."""
    rows = [["protocol", "bits a report", "encode", "collect", "goal for both", *PEERS]]
    for kind, ours in results["tacit"].items():
        total = ours["encode"] + ours["collect"]
        goal = f"{GOALS[kind]:g} s: {'kept' if total <= GOALS[kind] else 'missed'}" if kind in GOALS else "-"
        shown = [kind, f"{ours['bits']:,.0f}", seconds(ours["encode"]), seconds(ours["collect"]), goal]
        for name in PEERS:
            theirs = results[name].get(kind)
            shown.append("-" if theirs is None else f"{seconds(theirs)}, {theirs / total:,.0f} x")
        rows.append(shown)
    forms = [["protocol", "epsilon 1, closed form", "measured", "epsilon 4, closed form", "measured"]]
    for kind, row in results["variances"].items():
        one, four = ([f"{c:.5g}", f"{m:.4g} ± {e:.1g}"] for c, m, e in (row[:3], row[3:]))
        forms.append([kind, *one, *four])
    return "\n".join(
        [
            "# Speed and accuracy of the local model",
            "",
            "## A million people",
            "",
            f"{DOMAIN:,} values, epsilon {EPSILON}, processor time on one core, encoded and collected. *x* is how "
            "many times Tacit's time. It is the median of ten runs or more, half of them before "
            "the peers' and half after. Theirs are of fewer people, a second or more, and scaled up; multi-freq-ldpy's "
            "clients are compiled. Their laws are floating-point draws from a seedable generator; Tacit's are exact, "
            "from cryptographic bits.",
            "",
            *table(rows),
            "",
            "## n times the variance",
            "",
            "Of the estimate of a value that nobody has, among 1,024.",
            "",
            *table(forms),
            "",
        ]
    )


if __name__ == "__main__":
    main()
