"""Graphs: edges and nodes as units
================================

Who is hidden in a graph: an edge, a list of contacts, or a node with all its edges? The curator answers about the first
two. For nodes the owner caps the degrees by a projection that one node hardly moves, and adds noise. What is said about
sensitivities is checked on all graphs of five nodes. The graph is made up.

Without a path the picture is shown, where there is a screen::

    python examples/graphs.py
    python examples/graphs.py docs/images/graphs.svg
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.optimize import linprog
from scipy.sparse import coo_array

import tacit
from tacit.mechanisms import Laplace
from tacit.pictures import COLORS, open_figure
from tacit.sampling.bits import ReplayBits

Edge = tuple[int, int]
Graph = tuple[frozenset[int], frozenset[Edge]]  # the nodes, and edges (a, b) with a < b

PEOPLE, CAP, EPSILON = 400, 12, 1


def project(graph: Graph, cap: int) -> list[Edge]:
    """Take edges in their order, each if both its nodes have fewer than `cap` so far.

    **Theorem** (Day, Li, Lyu 2016). If G has one node more than H, with its edges, the number of edges that are taken
    differs by at most `cap`, and the histogram of degrees, nodes without edges included, by at most 2 cap + 1 in L1.

    Proof. Follow both runs edge by edge. An edge of the new node v that is taken, of which there are at most `cap`,
    makes one neighbor fuller by one. As long as a node is fuller by one in G, a later edge of it may be refused in G
    alone; then it is no longer fuller, and the other end of that edge is emptier by one. An emptier node may later take
    an edge in G alone, and passes on that its other end is fuller. So each edge of v starts one chain, and at each
    moment only the last node of a chain has another degree than in H, by one. (Chains that meet end each other.) Taken
    edges are gained and lost in turn along a chain, so that it adds 1 or 0 to their number, and it moves one node from
    one degree to the next, which is 2 in L1. The new node itself is one more.
    """
    degree: Counter[int] = Counter()
    taken = []
    for a, b in sorted(graph[1]):
        if degree[a] < cap and degree[b] < cap:
            degree.update((a, b))
            taken.append((a, b))
    return taken


def drop_busy_nodes(graph: Graph, cap: int) -> list[Edge]:
    """Drop all edges of nodes that have more than `cap`. It looks harmless, and is not: see `find_largest_move`."""
    degree = count_degrees(graph[1])
    return [(a, b) for a, b in graph[1] if max(degree[a], degree[b]) <= cap]


def count_degrees(edges: Iterable[Edge]) -> Counter[int]:
    return Counter(node for edge in edges for node in edge)


def make_histogram(graph: Graph, edges: Sequence[Edge], cap: int) -> list[int]:
    """How many nodes have 0, 1, ..., cap of these edges."""
    degree = count_degrees(edges)
    found = Counter(degree[node] for node in graph[0])
    return [found[each] for each in range(cap + 1)]


def list_triangles(edges: Iterable[Edge]) -> list[tuple[int, int, int]]:
    after: dict[int, set[int]] = {}
    for a, b in edges:
        after.setdefault(a, set()).add(b)
    return [(a, b, c) for a in after for b in after[a] for c in after[a] & after.get(b, set())]


def pack_triangles(triangles: Sequence[tuple[int, int, int]], cap: int) -> int:
    """Return the most that triangles can weigh, each from 0 to 1, where those of a node weigh at most `cap`.

    **Theorem.** A node more or less, with its edges, moves this by at most `cap`, and its integer by at most cap + 1.

    Proof. A weighting without v's triangles is one with them, at 0; and one with them, of which v's weigh at most
    `cap`, is one without when these are left out. (Kasiviswanathan, Nissim, Raskhodnikova, Smith 2013.) The solver's
    number is not trusted: its prices y of the nodes give cap sum(y) + sum over triangles of max(0, 1 - their prices),
    which no weighting exceeds, and its weights, scaled until every node has its cap, are a weighting. Both are computed
    exactly, and have to be within 1/2 of each other.
    """
    if not triangles:
        return 0
    nodes = {node: place for place, node in enumerate(sorted({node for each in triangles for node in each}))}
    rows = [nodes[node] for each in triangles for node in each]
    columns = [place for place in range(len(triangles)) for _ in range(3)]
    holds = coo_array((np.ones(len(rows)), (rows, columns))).tocsr()
    solved = linprog(-np.ones(len(triangles)), A_ub=holds, b_ub=np.full(len(nodes), cap), bounds=(0, 1), method="highs")
    prices = [max(Fraction(-float(price)), Fraction(0)) for price in solved.ineqlin.marginals]
    weights = [min(max(Fraction(float(weight)), Fraction(0)), Fraction(1)) for weight in solved.x]
    loads = [Fraction(0)] * len(nodes)
    for row, column in zip(rows, columns, strict=True):
        loads[row] += weights[column]
    least = sum(weights) / max(Fraction(1), max(loads) / cap)
    shares = [sum(prices[nodes[node]] for node in each) for each in triangles]
    most = cap * sum(prices) + sum(max(Fraction(0), 1 - share) for share in shares)
    if most - least >= Fraction(1, 2):
        raise ArithmeticError("the solver is too far off for the sensitivity that is claimed")
    return math.floor(most)


def all_graphs(nodes: int) -> Iterator[Graph]:
    pairs = list(combinations(range(nodes), 2))
    for chosen in range(2 ** len(pairs)):
        yield frozenset(range(nodes)), frozenset(pair for place, pair in enumerate(pairs) if chosen >> place & 1)


def remove_node(graph: Graph, node: int) -> Graph:
    return graph[0] - {node}, frozenset(edge for edge in graph[1] if node not in edge)


def find_largest_move(count: Callable[[Graph], Sequence[int]], graphs: Iterable[Graph]) -> int:
    """Return how far, in L1, a count moves at most when one node of one of these graphs is taken out with its edges."""
    return max(
        sum(abs(one - other) for one, other in zip(count(graph), count(remove_node(graph, node)), strict=True))
        for graph in graphs
        for node in graph[0]
    )


def make_friends(draw: np.random.Generator) -> Graph:
    """Friends by groups, a few people with very many, and enough triangles."""
    group = draw.integers(0, 40, PEOPLE)
    charm = 0.4 + draw.pareto(3.0, PEOPLE)
    near = np.where(group[:, None] == group[None, :], 0.45, 0.006)
    chance = np.minimum(near * charm[:, None] * charm[None, :], 0.95)
    found = np.argwhere(np.triu(draw.random((PEOPLE, PEOPLE)) < chance, 1))
    return frozenset(range(PEOPLE)), frozenset((int(a), int(b)) for a, b in found)


def ask_curator(graph: Graph) -> None:
    """Edges as units, and lists of contacts as units: what the curator answers, and what it refuses."""
    edges = sorted(graph[1])
    lists = sorted([*edges, *((b, a) for a, b in edges)])
    node = {"type": "int", "lower": 0, "upper": PEOPLE - 1}
    policy: dict[str, Any] = {
        "ledger": {"store": Path(tempfile.mkdtemp()) / "friends.ledger"},
        "privacy": {"epsilon": 6.0},
        "tables": {
            "edges": {"unit": "row", "columns": {"a": node, "b": node}},
            "lists": {
                "unit": "node",
                "people": "people",
                "max_groups": 1,
                "max_rows_per_group": 60,
                "columns": {"neighbor": node},
            },
        },
        "analysts": {"ada": {"epsilon": 6.0}},
    }
    data = {
        "edges": pa.table({"a": [a for a, _ in edges], "b": [b for _, b in edges]}),
        "lists": pa.table({"node": [a for a, _ in lists], "neighbor": [b for _, b in lists]}),
    }
    ada = tacit.open(policy, data=data).analyst("ada")
    for says, question in (
        ("an edge is hidden", "SELECT COUNT(*) AS edges FROM edges"),
        (
            "a list is hidden",
            "SELECT degree, COUNT(*) AS nodes FROM (SELECT node, LEAST(COUNT(*), 20) AS degree FROM lists "
            "GROUP BY node) AS d GROUP BY degree ORDER BY degree LIMIT 5",
        ),
        (
            "triangles",
            "SELECT COUNT(*) AS n "
            "FROM edges AS x JOIN edges AS y ON x.b = y.a JOIN edges AS z ON z.a = x.a AND z.b = y.b",
        ),
    ):
        try:
            print(f"{says}:\n{ada.ask(question, epsilon=EPSILON)}\n")
        except tacit.Refused as refused:
            print(f"{says}: {refused}\n")


def main(target: str | None = None) -> None:
    small = list(all_graphs(5))
    print("on all graphs of five nodes, one node taken out with its edges moves")
    print("  the number of edges by up to", find_largest_move(lambda graph: [len(graph[1])], small))
    for cap in (1, 2, 3):
        dropped = find_largest_move(lambda graph, cap=cap: [len(drop_busy_nodes(graph, cap))], small)
        kept = find_largest_move(lambda graph, cap=cap: [len(project(graph, cap))], small)
        bars = find_largest_move(lambda graph, cap=cap: make_histogram(graph, project(graph, cap), cap), small)
        print(
            f"  with a cap of {cap}: by {dropped} where busy nodes are dropped, by {kept} where they are projected; "
            f"the histogram of degrees by {bars}, at most {2 * cap + 1}"
        )

    graph = make_friends(np.random.default_rng(3))
    triangles = list_triangles(graph[1])
    print(f"\n{PEOPLE} made-up people, {len(graph[1])} edges, {len(triangles)} triangles, the largest degree is "
          f"{max(count_degrees(graph[1]).values())}\n")  # fmt: skip
    ask_curator(graph)

    bits = ReplayBits(b"friends")
    taken = project(graph, CAP)
    edges = Laplace.calibrated(epsilon=EPSILON, sensitivity=CAP)
    bars = Laplace.calibrated(epsilon=EPSILON, sensitivity=2 * CAP + 1)
    print(
        f"a node is hidden: {edges.release([len(taken)], bits)[0]} edges, with a cap of {CAP} (they are {len(taken)}), "
        f"95 % within {edges.error(0.95)}"
    )
    print("degrees from 0 on:", list(bars.release(make_histogram(graph, taken, CAP), bits)))
    limit = 10
    noise = Laplace.calibrated(epsilon=EPSILON, sensitivity=limit + 1)
    packed = pack_triangles(triangles, limit)
    print(f"triangles, {limit} at most for each node: {noise.release([packed], bits)[0]} (they weigh {packed})")

    caps = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64]
    lost = [len(graph[1]) - len(project(graph, cap)) for cap in caps]
    with open_figure(target, "Edges, where a node is hidden", "cap on degrees", "edges") as axes:
        axes.plot(caps, lost, "o-", label="edges that the cap leaves out")
        for epsilon, color in ((0.5, COLORS[1]), (2, COLORS[2])):
            errors = [Laplace.calibrated(epsilon=epsilon, sensitivity=cap).error(0.95) for cap in caps]
            axes.plot(caps, errors, "--", color=color, label=f"noise at epsilon {epsilon}, 95 % within")
        axes.set_xscale("log", base=2)
        axes.set_xticks(caps, [str(cap) for cap in caps])


if __name__ == "__main__":
    main(*sys.argv[1:2])
