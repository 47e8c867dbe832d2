"""An auction
==========

A price for goods that can be sold any number of times, chosen by the exponential mechanism: prices that earn more are
more likely, and no bidder changes the probabilities by more than a factor of e to the epsilon.

Without a path the picture is shown, where there is a screen::

    python examples/auction.py
    python examples/auction.py docs/images/auction.svg
"""

from __future__ import annotations

import sys

from tacit.mechanisms import Pricing
from tacit.pictures import open_figure

PRICES = [*range(10, 501, 10)]
BIDDERS = [100] * 60 + [250] * 45 + [500] * 20  # what each would pay at most


def main(target: str | None = None) -> None:
    revenue = Pricing.calibrated(epsilon=1, prices=PRICES).revenues(BIDDERS)
    best = max(zip(revenue, PRICES, strict=True))
    with open_figure(target, "Revenue at each price", "price", "revenue", size=(11, 4), panels=2) as (left, right):
        left.plot(PRICES, revenue)
        left.plot([best[1]], [best[0]], "o", label=f"best: {best[0]:,} at {best[1]}")
        right.set(xlabel="price", ylabel="probability")
        right.set_title("How the mechanism chooses")
        for epsilon in (0.5, 1, 3):
            law = Pricing.calibrated(epsilon=epsilon, prices=PRICES).law(BIDDERS)
            chances = [float(law[price]) for price in PRICES]
            expected = sum(chance * money for chance, money in zip(chances, revenue, strict=True))
            right.plot(PRICES, chances, label=f"epsilon {epsilon}: {expected:,.0f} expected")
        right.set_ylim(0, 1.25)
        right.legend(loc="upper left")
    three = Pricing.calibrated(epsilon=1, prices=[10, 500]).revenues([10, 10, 500])
    print(f"bids 10, 10 and 500: a price of 10 earns {three[0]}, a price of 500 earns {three[1]}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
