"""The distinguishing game
=======================

How often the best guesser errs, beside the least that epsilon allows.

Without a path the picture is shown, where there is a screen::

    python examples/game.py
    python examples/game.py docs/images/game.svg
"""

from __future__ import annotations

import sys

from tacit.audit import plot_games


def main(target: str | None = None) -> None:
    played = plot_games(target)
    for name, found in played.items():
        epsilon, game = min(found.items(), key=lambda each: abs(each[0] - 1))
        print(f"{name}, epsilon {epsilon}: {game.error:.4f} of the guesses are wrong")


if __name__ == "__main__":
    main(*sys.argv[1:2])
