"""What a shuffler adds
====================

The epsilon of people's own noise against that of their shuffled reports, from below and above.

Without a path the picture is shown, where there is a screen::

    python examples/shuffle.py
    python examples/shuffle.py docs/images/shuffle.svg
"""

from __future__ import annotations

import math
import sys

from tacit.local.shuffle_amplification import ShuffleAmplification
from tacit.pictures import COLORS, open_figure

DELTA = 1e-6
USERS = [round(10 ** (exponent / 3)) for exponent in range(6, 19)]
LOCAL = [halves / 2 for halves in range(1, 17)]


def closed(local: float, users: int) -> float:
    """The closed form of 2021, where it holds."""
    large = math.exp(local)
    if users < 16 * math.log(2 / DELTA) * large:
        return math.nan
    root = 8 * math.sqrt(large * math.log(4 / DELTA) / users) + 8 * large / users
    return math.log1p((large - 1) / (large + 1) * root)


def main(target: str | None = None) -> None:
    title = "A crowd hides its members"
    with open_figure(target, title, "people", f"epsilon of the crowd, delta {DELTA:g}", (11, 4), panels=2) as (
        left,
        right,
    ):
        for local, color in zip((1, 2, 4), COLORS, strict=False):
            low, high = zip(*(ShuffleAmplification(local, users).bounds(DELTA) for users in USERS), strict=True)
            left.fill_between(USERS, low, high, alpha=0.35, color=color, linewidth=0)
            left.loglog(USERS, high, color=color, label=f"each at epsilon {local}")
            left.loglog(USERS, [closed(local, users) for users in USERS], color=color, linestyle=":", linewidth=1.2)
            for users, below, above in list(zip(USERS, low, high, strict=True))[::6]:
                print(f"each at epsilon {local}, {users:9,} people: {below:.4f} to {above:.4f}")
        left.legend(loc="lower left", fontsize=9)
        left.text(0.98, 0.95, "dotted: the closed form of 2021", transform=left.transAxes, ha="right", fontsize=9)
        for users, color in zip((1_000, 30_000, 1_000_000), COLORS[3:], strict=False):
            low, high = zip(*(ShuffleAmplification(local, users).bounds(DELTA) for local in LOCAL), strict=True)
            right.fill_between(LOCAL, low, high, alpha=0.35, color=color, linewidth=0)
            right.semilogy(LOCAL, high, color=color, label=f"{users:,} people")
        right.semilogy(LOCAL, LOCAL, color="0.6", linestyle="--", linewidth=1, label="nobody to hide among")
        right.set(xlabel="epsilon of each person's own noise")
        right.set_title("How much noise each one needs")


if __name__ == "__main__":
    main(*sys.argv[1:2])
