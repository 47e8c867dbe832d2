"""The classroom
=============

Thirty grades, five averages of three, and one student who is found out; then the defense: each average gets Laplace
noise, and the guess is hardly better than a coin.

Without a path the picture is shown, where there is a screen::

    python examples/classroom.py
    python examples/classroom.py docs/images/classroom.svg
"""

from __future__ import annotations

import sys
from fractions import Fraction

from tacit.attacks import Classroom


def main(target: str | None = None) -> None:
    room = Classroom(students=30, group=3, queries=5, usual=Fraction(50), odd=Fraction(90))
    print(room)
    print(room.play(rounds=20_000))
    defense = room.defend(Fraction(1, 10))
    print(defense)
    print(defense.play(rounds=20_000))
    room.plot(target)


if __name__ == "__main__":
    main(*sys.argv[1:2])
