"""The peers' side of the local benchmark, each in its own environment: prints seconds a million people as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

DOMAIN, EPSILON, PEOPLE = 1024, 1.0, 1_000_000
SOME = {"k-ary": 400_000, "optimized-unary": 30_000, "hashing": 1_000, "hadamard": 40_000, "subset": 10_000}


def scaled(kind: str, run: Callable[[list[int]], Any]) -> float:
    """The processor's seconds for a million people, from fewer: all of these take time in proportion."""
    values = np.random.default_rng(0).integers(0, DOMAIN, SOME[kind]).tolist()
    run(values[:50])  # compiles what is compiled
    start = time.process_time()
    run(values)
    return (time.process_time() - start) * PEOPLE / SOME[kind]


def pure_ldp() -> dict[str, float]:
    """pure-ldp: a client and a server for each protocol; one person at a time."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    def run(client: Any, server: Any) -> Callable[[list[int]], Any]:
        def survey(values: list[int]) -> Any:
            server.reset()
            for value in values:
                server.aggregate(client.privatise(value + 1))  # its values begin at 1
            return server.estimate_all(range(1, DOMAIN + 1), suppress_warnings=True)

        return survey

    hashed = HadamardResponseServer(EPSILON, DOMAIN)
    pairs = {
        "k-ary": (DEClient(EPSILON, DOMAIN), DEServer(EPSILON, DOMAIN)),
        "optimized-unary": (UEClient(EPSILON, DOMAIN, use_oue=True), UEServer(EPSILON, DOMAIN, use_oue=True)),
        "hashing": (LHClient(EPSILON, DOMAIN, use_olh=True), LHServer(EPSILON, DOMAIN, use_olh=True)),
        "hadamard": (HadamardResponseClient(EPSILON, DOMAIN, hashed.get_hash_funcs()), hashed),
    }
    return {kind: scaled(kind, run(*pair)) for kind, pair in pairs.items()}


def multi_freq_ldpy() -> dict[str, float]:
    """multi-freq-ldpy: compiled clients for one person, aggregators over lists."""
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE

    return {
        "k-ary": scaled(
            "k-ary",
            lambda values: GRR.GRR_Aggregator_MI([GRR.GRR_Client(v, DOMAIN, EPSILON) for v in values], DOMAIN, EPSILON),
        ),
        "optimized-unary": scaled(
            "optimized-unary",
            lambda values: UE.UE_Aggregator_MI([UE.UE_Client(v, DOMAIN, EPSILON, True) for v in values], EPSILON, True),
        ),
        "hashing": scaled(
            "hashing",
            lambda values: LH.LH_Aggregator_MI(
                [LH.LH_Client(v, DOMAIN, EPSILON, True) for v in values], DOMAIN, EPSILON, True
            ),
        ),
        "subset": scaled(
            "subset",
            lambda values: SS.SS_Aggregator_MI([SS.SS_Client(v, DOMAIN, EPSILON) for v in values], DOMAIN, EPSILON),
        ),
    }


if __name__ == "__main__":
    print(json.dumps({"local-pure-ldp": pure_ldp, "local-multi-freq": multi_freq_ldpy}[sys.argv[1]]()))
