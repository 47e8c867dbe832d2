"""What the example on graphs says of sensitivities, on all small graphs and with other programs."""

from __future__ import annotations

import importlib.util
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from tests.support.counts import FULL

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def graphs():
    spec = importlib.util.spec_from_file_location("graphs", Path(__file__).parents[2] / "examples" / "graphs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw_graphs(count, nodes):
    """Random graphs with a node that has nearly all edges, for which a cap matters."""
    for seed in range(count):
        draw = np.random.default_rng(seed)
        pairs = [pair for pair in combinations(range(nodes), 2) if draw.random() < (0.9 if pair[0] == 0 else 0.4)]
        names = draw.permutation(nodes).tolist()  # the order of edges is that of names
        edges = frozenset(tuple(sorted((names[a], names[b]))) for a, b in pairs)
        yield frozenset(range(nodes)), edges


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_the_projection_is_stable(graphs, cap):
    for some in (graphs.all_graphs(5 if FULL else 4), draw_graphs(60, 9)):
        listed = list(some)
        assert graphs.find_largest_move(lambda graph: [len(graphs.project(graph, cap))], listed) <= cap
        moved = graphs.find_largest_move(
            lambda graph: graphs.make_histogram(graph, graphs.project(graph, cap), cap), listed
        )
        assert moved <= 2 * cap + 1


def test_no_cap_and_dropped_nodes_are_not(graphs):
    # Five nodes: the middle of a star has four edges. With a cap of 2 where busy nodes are dropped, a node that is
    # joined to all of a square makes all five busy, and the four edges of the square are gone.
    small = list(graphs.all_graphs(5))
    assert graphs.find_largest_move(lambda graph: [len(graph[1])], small) == 4
    assert graphs.find_largest_move(lambda graph: [len(graphs.drop_busy_nodes(graph, 2))], small) == 4


@pytest.mark.parametrize("cap", [1, 3])
def test_packed_triangles_are_stable(graphs, cap):
    def count(graph):
        return [graphs.pack_triangles(graphs.list_triangles(graph[1]), cap)]

    assert graphs.find_largest_move(count, draw_graphs(8 if FULL else 3, 8)) <= cap + 1


def test_all_triangles_are_counted_where_the_cap_is_high(graphs):
    # C(6, 3) = 20 in a complete graph; each node is in C(5, 2) = 10 of them. At a cap of 5, half the weight: 10
    complete = list(combinations(range(6), 2))
    triangles = graphs.list_triangles(complete)
    assert len(triangles) == len({frozenset(each) for each in triangles}) == 20
    assert graphs.pack_triangles(triangles, 10) == 20
    assert graphs.pack_triangles(triangles, 5) == 10
    for _, edges in draw_graphs(6, 9):
        brute = [each for each in combinations(range(9), 3) if all(pair in edges for pair in combinations(each, 2))]
        assert sorted(map(tuple, map(sorted, graphs.list_triangles(edges)))) == sorted(brute)
