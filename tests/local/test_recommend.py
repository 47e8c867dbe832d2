"""Which protocol to use."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.local import KAryRandomizedResponse, OptimizedLocalHashing, recommend_protocol


def test_few_values_are_best_reported_as_they_are():
    # d < 3 e^epsilon + 2: k-ary beats unary encoding and hashing.
    assert isinstance(recommend_protocol(4, 2, 1000).protocol, KAryRandomizedResponse)
    assert isinstance(recommend_protocol(2, 0.1, 1000).protocol, KAryRandomizedResponse)


def test_many_values_are_best_hashed():
    chosen = recommend_protocol(2**20, 1, 10**6)
    assert isinstance(chosen.protocol, OptimizedLocalHashing)
    # 20 + 2 * 2 - 1 bits, against a million of unary encoding.
    assert chosen.protocol.report_bits == 23


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(2, 3000), st.floats(0.05, 8), st.integers(1, 10**9))
def test_the_recommended_is_within_a_twentieth_of_the_best_and_the_list_is_in_order(domain, epsilon, users):
    chosen = recommend_protocol(domain, epsilon, users)
    errors = [each.deviation for each in chosen]
    assert errors == sorted(errors)
    assert math.sqrt(chosen.protocol.variance(users)) <= 1.05 * errors[0]
    assert len({each.protocol.kind for each in chosen}) == len(errors) >= 5


def test_the_error_falls_like_the_root_of_the_users():
    one, other = (recommend_protocol(1024, 1, users).candidates[0].deviation for users in (10_000, 1_000_000))
    assert one / other == pytest.approx(10)


def test_what_is_wrong_is_said():
    for wrong in ((1, 1, 10), (4, 0, 10), (4, 1, 0), (4, "1", 10), (2**30, 1, 10)):
        with pytest.raises(ParameterError):
            recommend_protocol(*wrong)
