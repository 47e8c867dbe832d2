"""Two puzzles of three people
===========================

What noisy counts over every subset give away. Each of three people has a secret bit. Somebody asked how many ones are
in each of the eight subsets; every answer is off by at most one half. Which bits fit all answers?
"""

from __future__ import annotations

import numpy as np

from tacit.attacks import FunctionOracle, all_subsets, reconstruct_exhaustively

ERROR = 0.5
PUZZLES = {
    "The first": [0.5, 0.5, 1.0, 1.0, 0.5, 1.5, 1.5, 2.5],
    "The second, whose truth is 101": [0.5, 0.5, 0.5, 1.5, 0.5, 1.5, 0.5, 1.5],
}


def digits(bits: np.ndarray) -> str:
    return "".join(str(int(bit)) for bit in bits)


def verdict(candidate: np.ndarray, said: dict[str, float]) -> str:
    """The first answer that rules the candidate out, if any does."""
    for subset in all_subsets(3):
        count = int((candidate & subset).sum())
        if abs(count - said[digits(subset)]) > ERROR:
            return f"out: it has {count} in {digits(subset)}, where the answer is {said[digits(subset)]}"
    return "fits every answer"


def main() -> None:
    subsets = all_subsets(3)
    for title, answered in PUZZLES.items():
        said = dict(zip(map(digits, subsets), answered, strict=True))
        print(f"{title}: " + ", ".join(f"{subset} {answer}" for subset, answer in said.items()))
        for candidate in subsets:
            print(f"  {digits(candidate)}  {verdict(candidate, said)}")
        print(
            reconstruct_exhaustively(FunctionOracle(lambda subset, said=said: said[digits(subset)]), 3, ERROR),
            end="\n\n",
        )


if __name__ == "__main__":
    main()
