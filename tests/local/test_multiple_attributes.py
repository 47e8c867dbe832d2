"""Several questions: nobody's answers, questions that are none, and liars who choose where they stand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.local.k_ary import KAryRandomizedResponse
from tacit.local.multiple_attributes import BudgetStrategy, MultiAttributeProtocol, poisoned_share
from tacit.local.unary_encoding import SymmetricUnaryEncoding
from tacit.sampling.bits import ReplayBits


@pytest.mark.parametrize("way", list(BudgetStrategy))
def test_nobody_sends_nothing(way):
    asked = MultiAttributeProtocol(KAryRandomizedResponse, (2, 3), 1, way)
    for nobody in ([], np.zeros((0, 2), dtype=np.int64)):
        sent = asked.encode(nobody, ReplayBits(b""))
        assert [len(each) for each in sent] == [0, 0]
        assert [each.users for each in asked.collect(sent)] == [0, 0]


def test_a_bad_strategy_or_question_is_an_error():
    for wrong in [
        {"strategy": "some"},
        {"strategy": None},
        {"strategy": 1},
        {"domains": 5},
        {"domains": "25"},
        {"domains": (2, 1)},
    ]:
        with pytest.raises(ParameterError):
            MultiAttributeProtocol(**({"make": KAryRandomizedResponse, "domains": (2, 3), "epsilon": 1} | wrong))
    assert MultiAttributeProtocol(KAryRandomizedResponse, (2, 3), 1, "all").strategy is BudgetStrategy.ALL
    asked = MultiAttributeProtocol(KAryRandomizedResponse, (2, 3), 1)
    for rows in ([[0, 1], [1]], [0, 1], [[0.5, 1]], 3):
        with pytest.raises(ParameterError):
            asked.encode(rows, ReplayBits(b""))
    for question in (2, -1, 0.0):
        with pytest.raises(ParameterError):
            asked.influence(0.1, question)
        with pytest.raises(ParameterError):
            asked.variance(100, question)
    for malicious in (-0.1, 1.1, "half"):
        with pytest.raises(ParameterError):
            asked.influence(malicious)


def test_liars_on_one_question_reach_what_is_stated():
    # 1000 people, 50 lie, five questions: 190 honest ones on each, so 50 of 240 reports are lies
    asked = MultiAttributeProtocol(KAryRandomizedResponse, (2,) * 5, 1)
    before = asked.collect([[0] * 200] * 5)[0].estimate().frequencies[1]
    after = asked.collect([[0] * 190 + [1] * 50, *[[0] * 190] * 4])[0].estimate().frequencies[1]
    assert after - before == pytest.approx(50 / 240 / asked.protocols[0].gap)
    assert asked.influence(0.05, 0) == pytest.approx(after - before) == asked.influence(0.05)
    # by ALL nobody chooses where they stand
    every = MultiAttributeProtocol(KAryRandomizedResponse, (2,) * 5, 1, BudgetStrategy.ALL)
    assert every.influence(0.05) == every.protocols[0].influence(0.05)
    # questions with more answers are easier to move by k-ary answers
    assert MultiAttributeProtocol(KAryRandomizedResponse, (2, 9), 1).influence(0.05) == MultiAttributeProtocol(
        KAryRandomizedResponse, (2, 9), 1
    ).influence(0.05, 1)


@pytest.mark.parametrize("make", [KAryRandomizedResponse, SymmetricUnaryEncoding])
def test_one_percent_of_liars_among_real_reports(make):
    asked, honest, liars = MultiAttributeProtocol(make, (2,) * 5, 1), 198_000, 2_000
    sent = asked.encode(np.zeros((honest, 5), dtype=np.int64), ReplayBits(b"one percent"))
    lie = 1 if make is KAryRandomizedResponse else np.packbits([0, 1])
    sent[0] = np.concatenate([sent[0], np.stack([lie] * liars)])
    moved = asked.collect(sent)[0].estimate().frequencies[1]  # nobody has it
    # the honest noise and the draw of people are within 6.5 deviations, 1e-10
    noise = 6.5 * asked.variance(honest, 0) ** 0.5
    assert asked.influence(0.01, 0) * 0.5 < moved < asked.influence(0.01, 0) + noise
    # a question's own figure is for those who stand where they were drawn
    assert moved > asked.protocols[0].influence(0.01) + noise


@given(
    common=st.lists(st.integers(0, 1), min_size=1, max_size=30),
    drawn=st.lists(st.integers(0, 1), max_size=10),
    lies=st.lists(st.integers(0, 1), max_size=10),
)
def test_two_averages_differ_by_at_most_the_share_that_is_not_common(common, drawn, lies):
    protocol = KAryRandomizedResponse(2, 1)
    one, other = (np.mean(common + part) / protocol.gap for part in (drawn, lies))
    share = max(len(part) / (len(common) + len(part)) for part in (drawn, lies))
    assert abs(one - other) <= protocol.influence(share) * (1 + 1e-12)


def test_all_liars_are_all_of_a_part():
    assert poisoned_share(1, 5) == 1 and poisoned_share(0, 5) == 0 and poisoned_share(0.3, 1) == 0.3
