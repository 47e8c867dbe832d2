"""The peers' side of the core benchmark, each in its own environment: prints seconds and epsilons as JSON."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

DRAWS = 1_000_000
SOME = 100_000  # draws of the slow ones; their time is scaled up


def median(call: Callable[[], Any], calls: int) -> float:
    """The median seconds of a call."""
    seconds = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def core_peer() -> dict[str, float]:
    """OpenDP's noise, and the accounting library of Google's."""
    import dp_accounting
    import opendp.prelude as dp
    from dp_accounting.pld import privacy_loss_distribution as pld

    dp.enable_features("contrib")
    vector = dp.vector_domain(dp.atom_domain(T=int))
    zeros = [0] * SOME
    laplace = dp.m.make_laplace(vector, dp.l1_distance(T=int), scale=10.0)
    narrow = dp.m.make_gaussian(vector, dp.l2_distance(T=float), scale=10.0)
    wide = dp.m.make_gaussian(vector, dp.l2_distance(T=float), scale=2.0**20)
    scalar = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    one = dp.m.make_laplace(*scalar, scale=10.0)
    real = dp.atom_domain(T=int), dp.absolute_distance(T=float)
    other = dp.m.make_gaussian(*real, scale=10.0)
    scale = DRAWS / SOME

    def thousand() -> float:
        law = pld.from_laplace_mechanism(10, value_discretization_interval=1e-4, use_connect_dots=True)
        return float(law.self_compose(1000).get_epsilon_for_delta(1e-5))

    def descent() -> float:
        event = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1))
        accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-4)
        return float(accountant.compose(dp_accounting.SelfComposedDpEvent(event, 100_000)).get_epsilon(1e-5))

    return {
        "laplace 10": median(lambda: laplace(zeros), 3) * scale,
        "gaussian 10": median(lambda: narrow(zeros), 3) * scale,
        "gaussian 2^20": median(lambda: wide(zeros), 3) * scale,
        "one laplace": median(lambda: [one(0) for _ in range(1000)], 5) / 1000,
        "one gaussian": median(lambda: [other(0) for _ in range(1000)], 5) / 1000,
        "pld laplace": median(thousand, 5),
        "pld laplace epsilon": thousand(),
        "pld descent": median(descent, 3),
        "pld descent epsilon": descent(),
    }


def core_diffprivlib() -> dict[str, float]:
    """diffprivlib's scalar mechanisms; it has no vector form."""
    from diffprivlib.mechanisms import GaussianDiscrete, Geometric

    laplace = Geometric(epsilon=0.1, sensitivity=1)
    gaussian = GaussianDiscrete(epsilon=0.5, delta=1e-5, sensitivity=1)
    each = {
        "one laplace": median(lambda: [laplace.randomise(0) for _ in range(10_000)], 3) / 10_000,
        "one gaussian": median(lambda: [gaussian.randomise(0) for _ in range(3_000)], 3) / 3_000,
    }
    return {**each, "laplace 10": each["one laplace"] * DRAWS}


if __name__ == "__main__":
    print(json.dumps({"core-peer": core_peer, "core-diffprivlib": core_diffprivlib}[sys.argv[1]]()))
