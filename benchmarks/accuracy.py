"""Mean absolute error at the same epsilon, unit and bounds, beside SmartNoise. OpenDP stands in results.md.

    make bench
    python benchmarks/accuracy.py --tries 400

Writes benchmarks/accuracy.md. The peer runs in an environment of its own, made on first use.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean, stdev

from census import records, truths, write
from environment import HERE, say
from ours import Ours
from questions import EPSILON, QUESTIONS, UNITS
from report import table

WANTED = ["smartnoise-sql==1.0.10", "pyarrow"]


def main() -> None:
    """Measure, then tell."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tries", type=int, default=400)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".work-") as name:
        folder = Path(name)
        people = records()
        write(people, folder)
        true = truths(people)
        (folder / "truths.json").write_text(json.dumps(true))
        say("Tacit...")
        errors = ours(folder, true, chosen.tries)
        theirs = smartnoise(folder, chosen.tries)
    page = markdown(errors, theirs, chosen.tries)
    (HERE / "accuracy.md").write_text(page, encoding="utf-8")
    print(page)


def ours(folder: Path, true: dict[str, dict[str, list[float]]], tries: int) -> dict[str, list[float]]:
    """Tacit's errors, try by try."""
    sides = Ours(folder, UNITS)
    found = {}
    for unit in UNITS:
        for question in QUESTIONS:
            errors: dict[str, list[float]] = {column: [] for column in question.columns}
            for _ in range(tries):
                _, values = sides.ask(question, unit)
                for column in question.columns:
                    pairs = list(zip(values[column], true[question.name][column], strict=True))
                    errors[column].append(sum(abs(value - exact) for value, exact in pairs) / len(pairs))
            found |= {f"{question.name} {unit} {column}": some for column, some in errors.items()}
    sides.close()
    return found


def smartnoise(folder: Path, tries: int) -> dict[str, list[float]]:
    """SmartNoise's errors; empty, with the reason on stderr, where it cannot be had."""
    root = HERE.parent / ".venv-bench" / "smartnoise"
    python, done = root / "bin" / "python", root / ".installed"
    try:
        if not done.exists() or done.read_text() != "\n".join(WANTED):
            say(f"Setting up {', '.join(WANTED)} (once, about a minute)...")
            subprocess.run([sys.executable, "-m", "venv", root], check=True, capture_output=True)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *WANTED]
            subprocess.run(pip, check=True, capture_output=True, text=True)
            done.write_text("\n".join(WANTED))
        say("SmartNoise...")
        ran = subprocess.run(
            [python, HERE / "smartnoise_peer.py", folder, str(tries)], check=True, stdout=subprocess.PIPE, text=True
        )
    except (OSError, subprocess.CalledProcessError) as problem:
        say(f"SmartNoise is left out: {problem}")
        return {}
    found: dict[str, list[float]] = json.loads(ran.stdout)
    return found


def markdown(mine: dict[str, list[float]], theirs: dict[str, list[float]], tries: int) -> str:
    """The page."""
    rows = [["question", "unit", "column", "Tacit", "SmartNoise", "SmartNoise / Tacit"]]
    for unit in UNITS:
        for question in QUESTIONS:
            for column in question.columns:
                name = f"{question.name} {unit} {column}"
                other = theirs.get(name)
                ratio = ["-", "-"] if other is None else [told(other), f"{fmean(other) / fmean(mine[name]):.2f}"]
                rows.append([question.title, unit, column, told(mine[name]), *ratio])
    return "\n".join(
        [
            "# Accuracy",
            "",
            f"Mean absolute errors of {tries} answers at epsilon {EPSILON}, add or remove one unit, the same bounds. "
            "SmartNoise's epsilon is for each column that it measures; it is set so that the whole question costs as "
            "much. A person has at most 2 rows in each of 2 groups; SmartNoise caps the rows in all, at 4. After ± is "
            "one standard error of the mean.",
            "",
            *table(rows),
            "",
        ]
    )


def told(errors: list[float]) -> str:
    """Their mean, and how well it is known."""
    return f"{fmean(errors):.3g} ± {stdev(errors) / math.sqrt(len(errors)):.1g}"


if __name__ == "__main__":
    main()
