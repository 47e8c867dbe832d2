"""Does lying pay?
===============

In an auction that takes the best price for the bids, a bidder who says less may lower the price for himself. A price
that is chosen by the exponential mechanism hardly depends on one bid, so that lying gains little: at most a share of
e^epsilon - 1 of what the truth gets. Here every lie of every bidder is tried, against all bids of the others.

Without a path the picture is shown, where there is a screen::

    python examples/truthfulness.py
    python examples/truthfulness.py docs/images/truthfulness.svg
"""

from __future__ import annotations

import math
import sys
from itertools import combinations_with_replacement

import numpy as np

from tacit.mechanisms import Pricing
from tacit.pictures import COLORS, open_figure

PRICES = np.arange(1, 9)
OTHERS = 4
EPSILONS = [0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6]

SURPLUS = np.maximum(PRICES[:, None] - PRICES[None, :], 0)  # of each valuation at each price


def tabulate_revenues() -> np.ndarray:
    """Return the revenue of each price, for all bids of the others and each bid of one bidder."""
    others = np.array(list(combinations_with_replacement(PRICES, OTHERS)))
    sold = (others[:, None, :] >= PRICES[None, :, None]).sum(axis=2)
    mine = PRICES[:, None] >= PRICES[None, :]  # a bid, and a price
    return PRICES * (sold[:, None, :] + mine[None, :, :])


def find_worst(laws: np.ndarray) -> tuple[float, float, tuple[int, ...]]:
    """Return the largest gain of a lie, the largest gain as a share of the honest surplus, and where the former is."""
    surplus = np.einsum("obp,vp->ovb", laws, SURPLUS)  # of a valuation v, for a bid b
    honest = np.einsum("ovv->ov", surplus)[:, :, None]
    gain = surplus - honest
    share = np.where(honest > 0, gain / np.where(honest > 0, honest, 1), np.where(gain > 0, np.inf, 0))
    place = np.unravel_index(np.argmax(gain), gain.shape)
    return float(gain.max()), float(share.max()), tuple(int(index) for index in place)


def main(target: str | None = None) -> None:
    revenues = tabulate_revenues()
    others = list(combinations_with_replacement(PRICES.tolist(), OTHERS))
    best = np.eye(len(PRICES))[np.argmax(revenues, axis=2)]
    plain, share, _ = find_worst(best)
    print(f"the best price: a lie gains up to {plain:.3g}, a factor of {share:.3g} of the honest surplus")
    gains, shares = [], []
    for epsilon in EPSILONS:
        weights = np.exp(epsilon / (2 * PRICES[-1]) * (revenues - revenues.max(axis=2, keepdims=True)))
        gain, share, (group, worth, lie) = find_worst(weights / weights.sum(axis=2, keepdims=True))
        auction = Pricing.calibrated(epsilon=epsilon, prices=PRICES.tolist())
        said = [[*others[group], int(PRICES[bid])] for bid in (worth, lie)]
        exact = [auction.expected_surplus(bids, int(PRICES[worth])) for bids in said]
        assert abs(float(exact[1] - exact[0]) - gain) < 1e-9  # by interval arithmetic, at the worst of them
        print(
            f"epsilon {epsilon}: up to {gain:.4f}, where {said[0]} become {said[1]}; at most {share:.1%} of the honest "
            f"surplus, and {math.expm1(epsilon):.1%} by the theorem"
        )
        gains.append(gain)
        shares.append(share)
    with open_figure(target, "What the best lie gains", "epsilon", "surplus", size=(11, 4), panels=2) as (left, right):
        left.plot(EPSILONS, gains, "o-", label="chosen by the exponential mechanism")
        left.axhline(plain, color=COLORS[1], linestyle="--", label="the best price")
        left.set_xscale("log")
        left.set_ylim(0, plain * 1.35)
        right.set(xlabel="epsilon", ylabel="share of the honest surplus")
        right.set_title("Next to the theorem")
        right.plot(EPSILONS, shares, "o-", label="the best lie")
        right.plot(EPSILONS, np.expm1(EPSILONS), color=COLORS[1], label="e^epsilon - 1")
        right.set_xscale("log")
        right.set_yscale("log")


if __name__ == "__main__":
    main(*sys.argv[1:2])
