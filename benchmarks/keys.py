"""How many private keys are shown of people who hold many: by weight, and with the best cap in hindsight.

    python benchmarks/keys.py

Writes benchmarks/keys.md. 60,000 people hold words of 150,000 that are as frequent as Zipf's law says, at most 1,000
words each. Every way is (1, 1e-5)-DP for one person. The cap of today's way is the one that shows most, which nobody
could know: it is looked up in the data.
"""

from __future__ import annotations

import math
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from environment import HERE, say
from report import table

import tacit
from tacit.mechanisms import PartitionSelection, WeightedGaussianSelection
from tacit.sampling.bits import ReplayBits

PEOPLE, WORDS, MOST = 60_000, 150_000, 1_000
EPSILON, DELTA = 1, Fraction(1, 10**5)
CAPS = (1, 3, 10, 30)
RELEASES = 3
GOAL = 1_500
SHAPES = {"few words": (3, 0.5), "words": (20, 1.5), "many words": (60, 1.0)}
QUESTIONS = {
    "the words": "SELECT word FROM said GROUP BY word",
    "the words and their counts": "SELECT word, COUNT(*) AS n FROM said GROUP BY word",
}


class Held(NamedTuple):
    """Who holds which word; no pair twice, in the order of people."""

    person: np.ndarray
    word: np.ndarray


def hold(median: float, spread: float) -> Held:
    """Words of people: how many is log-normal, and each is drawn by Zipf's law; the same on every machine."""
    draw = np.random.default_rng(1)
    many = np.clip(np.round(median * np.exp(spread * draw.standard_normal(PEOPLE))), 1, MOST).astype(int)
    often = np.cumsum(1 / np.arange(1, WORDS + 1))
    word = np.minimum(np.searchsorted(often / often[-1], draw.random(many.sum())), WORDS - 1)
    pairs = np.unique(np.repeat(np.arange(PEOPLE), many) * WORDS + word)
    return Held(pairs // WORDS, pairs % WORDS)


def show_with_cap(held: Held, cap: int) -> float:
    """The words that are shown with a cap on those of one person, whose words are drawn: the mean of some releases."""
    draw, shown = np.random.default_rng(2), []
    selection = PartitionSelection.calibrated(EPSILON, DELTA, cap)
    for seed in range(RELEASES):
        order = np.lexsort((draw.random(len(held.word)), held.person))
        first = np.searchsorted(held.person, held.person)
        kept = held.word[order][np.arange(len(order)) - first < cap]
        counts = {word: count for word, count in enumerate(np.bincount(kept).tolist()) if count}
        shown.append(len(selection.release(counts, ReplayBits(f"{seed}".encode()))))
    return mean(shown)


def show_by_weight(held: Held, rounds: int) -> tuple[float, float]:
    """The words that are shown by weight, and the seconds of a release."""
    people: dict[int, list[int]] = {}
    for person, word in zip(held.person.tolist(), held.word.tolist(), strict=True):
        people.setdefault(person, []).append(word)
    selection = WeightedGaussianSelection.calibrated(EPSILON, DELTA, MOST, rounds=rounds)
    start = time.perf_counter()
    shown = [len(selection.release(people, ReplayBits(f"{seed}".encode()))) for seed in range(RELEASES)]
    return mean(shown), (time.perf_counter() - start) / RELEASES


def ask(held: Held, caps: dict[str, Any], question: str, folder: Path) -> tuple[int, float]:
    """The rows of an answer, and the seconds that it took."""
    rows = pa.table({"person": held.person, "word": [f"word {word}" for word in held.word.tolist()]})
    policy = {
        "data": {"engine": "duckdb"},
        "ledger": {"store": folder / f"{len(list(folder.iterdir()))}.ledger"},
        "privacy": {"epsilon": 10, "delta": 1e-3, "delta_per_question": float(DELTA)},
        "tables": {"said": {"unit": "person", **caps, "columns": {"word": {"type": "text"}}}},
        "analysts": {"ada": {"epsilon": 10, "delta": 1e-3}},
    }
    with tacit.open(policy, {"said": rows}) as curator:
        start = time.perf_counter()
        answer = curator.analyst("ada").ask(question, epsilon=EPSILON)
        return len(answer), time.perf_counter() - start


def main() -> None:
    """Measure, then tell."""
    lines = []
    for name, (median, spread) in SHAPES.items():
        held = hold(median, spread)
        say(f"{name}: {len(held.word):,} pairs...")
        capped = {cap: show_with_cap(held, cap) for cap in CAPS}
        best = max(capped, key=capped.__getitem__)
        weighed = {rounds: show_by_weight(held, rounds) for rounds in (1, 2, 3)}
        ratio = weighed[2][0] / capped[best]
        cells = [f"{weighed[rounds][0]:,.0f}" for rounds in (1, 2, 3)]
        lines.append([name, f"{len(held.word):,}", f"{capped[best]:,.0f} ({best})", *cells, f"{ratio:.1f}"])
        if name == "words":
            found, took = weighed[2]
            asked = {text: ask_both(held, text, best) for text in QUESTIONS}
    page = markdown(lines, found, took, asked)
    (HERE / "keys.md").write_text(page, encoding="utf-8")
    print(page)


def ask_both(held: Held, name: str, cap: int) -> dict[str, tuple[int, float]]:
    """A question with the best cap, and with max_rows = "auto"."""
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".work-") as folder:
        fixed = {"max_groups": cap, "max_rows_per_group": 1}
        ways = {f"max_groups = {cap}": fixed, 'max_rows = "auto"': {"max_rows": "auto"}}
        return {way: ask(held, caps, QUESTIONS[name], Path(folder)) for way, caps in ways.items()}


def markdown(lines: list[list[str]], found: float, took: float, asked: dict[str, dict[str, tuple[int, float]]]) -> str:
    """The page."""
    header = ["people hold", "pairs", "best cap (which)", "1 round", "2 rounds", "3 rounds", "2 rounds to best cap"]
    answers = [
        [question, way, f"{rows:,}", f"{seconds:.1f} s"]
        for question, ways in asked.items()
        for way, (rows, seconds) in ways.items()
    ]
    kept = "kept" if min(found, asked["the words"]['max_rows = "auto"'][0]) >= GOAL else "missed"
    weight = WeightedGaussianSelection.calibrated(EPSILON, DELTA, MOST)
    return f"""# Private keys of people who hold many

`python benchmarks/keys.py`: {PEOPLE:,} people, words of {WORDS:,} by Zipf's law, at most {MOST:,} each; epsilon
{EPSILON}, delta {float(DELTA):g}, one person added or removed. Keys shown, the mean of {RELEASES} releases: by
`PartitionSelection` with the cap on words of one person that shows most of {", ".join(map(str, CAPS))}, looked up in
the data, and by `WeightedGaussianSelection`, which needs no cap. People hold few words (a median of 3), words (20) or
many (60); how many is log-normal.

{_write_table([header, *lines])}

A release of two rounds over {lines[1][1]} pairs takes {took:.1f} s. A word is shown from a weight of
{weight.threshold(2) / 2**20:.1f} on, every second time: {math.ceil(weight.threshold(2) / 2**20)} people of one word
each, or {weight.units(100)} of a hundred.

Through `ask`, of DuckDB; a question that also counts has half of its epsilon for the keys:

{_write_table([["asked for", "policy", "rows", "took"], *answers])}

Goal: {GOAL:,} keys of "words" by the mechanism and by `ask`: {kept}.
"""


def _write_table(rows: list[list[str]]) -> str:
    return "\n".join(table(rows))


if __name__ == "__main__":
    main()
