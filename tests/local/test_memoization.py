"""Over time and over several questions: what is kept for life, what it costs, and what it does not hide."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc
from tests.support.counts import FULL

from tacit.accounting import epsilon as priced
from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.frequency_oracle import rational_exp_half
from tacit.local.k_ary import KAryRandomizedResponse
from tacit.local.memoization import MemoizedRandomizer
from tacit.local.multiple_attributes import BudgetStrategy, MultiAttributeProtocol, compare_strategies
from tacit.local.rappor import Rappor
from tacit.local.summary import FrequencySummary
from tacit.local.unary_encoding import OptimizedUnaryEncoding, SymmetricUnaryEncoding
from tacit.privacy.loss import Repeat
from tacit.sampling.bits import ReplayBits

QUARTERS = Rappor(2, 2, Fraction(1, 4), Fraction(3, 4))


def lifetime_table(protocol, histories):
    """P[all that is sent | history], where each value's report is drawn once: by enumerating what is kept."""
    rows = protocol.matrix().rows
    reports = range(len(rows[0]))
    outputs = list(product(reports, repeat=len(histories[0])))
    table = []
    for history in histories:
        law = dict.fromkeys(outputs, Fraction(0))
        values = sorted(set(history))
        for drawn in product(reports, repeat=len(values)):
            kept = dict(zip(values, drawn, strict=True))
            law[tuple(kept[value] for value in history)] += math.prod(rows[value][kept[value]] for value in values)
        table.append([law[output] for output in outputs])
    return TransitionMatrix(table)


def test_a_value_that_stays_costs_one_epsilon_for_life():
    # four answers of one value, three values: e^epsilon, as for one answer
    protocol = KAryRandomizedResponse(3, Fraction(1))
    table = lifetime_table(protocol, [(value,) * 4 for value in range(3)])
    assert table.ratio == protocol.matrix().ratio


def test_two_values_at_the_same_times_cost_two_epsilons():
    protocol = KAryRandomizedResponse(2, Fraction(1))
    table = lifetime_table(protocol, [(0, 1, 0), (1, 0, 1)])
    assert table.ratio == protocol.matrix().ratio ** 2
    assert MemoizedRandomizer(protocol, most=2).lifetime_loss() == Repeat(protocol.loss(), 2)


def test_a_change_may_show_for_certain():
    # reports (a, b) with a != b are never sent for one value
    table = lifetime_table(KAryRandomizedResponse(2, Fraction(1)), [(0, 0), (0, 1)])
    assert table.ratio is None and table.epsilon == math.inf


def test_a_memo_repeats_itself_and_stops_at_its_limit():
    phone, bits = MemoizedRandomizer(KAryRandomizedResponse(1000, Fraction(1)), most=3), ReplayBits(b"memo")
    sent = []
    for value in [1, 2, 1, 3, 4, 5, 2]:
        report, phone = phone.answer(value, bits)
        sent.append(report)
    assert sent[0] == sent[2] and sent[1] == sent[6] and sent[3] == sent[4] == sent[5]
    assert [value for value, _ in phone.memo] == [1, 2, 3]
    with pytest.raises(ParameterError):
        phone.answer(1000, bits)
    with pytest.raises(ParameterError):
        MemoizedRandomizer(KAryRandomizedResponse(2, Fraction(1)), most=0)


def test_many_people_over_time_are_each_consistent_and_estimates_unbiased():
    protocol, users, bits = KAryRandomizedResponse(3, Fraction(2)), 2_000, ReplayBits(b"time")
    rng = np.random.default_rng(5)
    first = rng.integers(0, 3, users)
    later = np.where(rng.random(users) < 0.1, 2, first)
    phones, sent = [MemoizedRandomizer(protocol, most=3)] * users, []
    for values in (first, first, later):
        pairs = [phone.answer(value, bits) for phone, value in zip(phones, values.tolist(), strict=True)]
        phones = [phone for _, phone in pairs]
        sent.append(np.array([report for report, _ in pairs]))
    assert (sent[0] == sent[1]).all() and (sent[0] == sent[2])[first == later].all()
    for values, reports in zip([first, first, later], sent, strict=True):
        found = FrequencySummary.empty(protocol).add(reports).estimate()
        truth = np.bincount(values, minlength=3) / users
        # 6.5 deviations of a normal: 1e-10
        assert (np.abs(found.frequencies - truth) < 6.5 * math.sqrt(protocol.variance(users, 0.5))).all()


def test_drawing_anew_composes_as_any_loss_does():
    # a year of days at epsilon 0.1: 36.5 by adding, 10.31 at delta 1e-6 by composing well
    daily = Repeat(KAryRandomizedResponse(4, Fraction(1, 10)).loss(), 365)
    assert priced(daily, 0) == pytest.approx(36.5)
    assert priced(daily, 1e-6) == pytest.approx(10.31, abs=0.01)


def rappor_table(rappor, times):
    """P[t reports | value] over all rows of bits, with e^(epsilon/2) a rational."""
    root = rational_exp_half(rappor.epsilon)
    truth = root / (root + 1)
    sent = {1: rappor.high, 0: rappor.low}
    bits = list(product((0, 1), repeat=rappor.domain))

    def chance(kept, value):
        return math.prod(truth if bit == (place == value) else 1 - truth for place, bit in enumerate(kept))

    def given(report, kept):
        return math.prod(sent[k] if bit else 1 - sent[k] for bit, k in zip(report, kept, strict=True))

    rows = [
        [
            sum(chance(kept, value) * math.prod(given(report, kept) for report in reports) for kept in bits)
            for reports in product(bits, repeat=times)
        ]
        for value in range(rappor.domain)
    ]
    return TransitionMatrix(rows)


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("rappor", [QUARTERS, Rappor(2, 3, Fraction(1, 10), Fraction(1, 2))], ids=["even", "uneven"])
def test_the_epsilon_of_several_reports_is_exact(rappor, times):
    assert rappor.epsilon_after(times) == pytest.approx(rappor_table(rappor, times).epsilon, abs=1e-12)


def test_the_table_of_one_report_has_the_epsilon_of_one_report():
    assert QUARTERS.matrix().epsilon == pytest.approx(QUARTERS.epsilon_after(1), abs=1e-12)
    # k = e/(e + 1) = 0.731059; p = 0.75 k + 0.25 (1 - k) = 0.615529, q = 0.384471: 2 ln(p/q) = 0.941
    assert QUARTERS.epsilon_after(1) == pytest.approx(2 * math.log(0.615529 / 0.384471), abs=1e-5)


@given(times=st.integers(1, 60), epsilon=st.fractions(Fraction(1, 10), 10, max_denominator=50))
@settings(max_examples=40, deadline=None)
def test_more_reports_cost_more_and_never_more_than_the_lifetime(times, epsilon):
    rappor = Rappor(4, epsilon, Fraction(1, 3), Fraction(2, 3))
    assert (
        0 == rappor.epsilon_after(0) < rappor.epsilon_after(times) <= rappor.epsilon_after(times + 1) <= float(epsilon)
    )
    assert rappor.epsilon_after(times) <= times * rappor.epsilon_after(1) * (1 + 1e-12)


def test_a_change_of_what_is_kept_costs_more_the_more_values_there_are():
    # Twice v, or v and then w. Under the first every bit is sent twice from one kept bit, under the second from two.
    # Say 11 at v, 00 at w and 11 at each of the d - 2 others, where the quotient is 0.1221/0.3096^2 = 1.274.
    def cost(domain):
        rappor = Rappor(domain, 4)
        low, high, truth = (
            rappor.low,
            rappor.high,
            rational_exp_half(rappor.epsilon) / (rational_exp_half(rappor.epsilon) + 1),
        )
        p, q = rappor.support_probabilities(rational_exp_half(rappor.epsilon))
        own = (truth * high**2 + (1 - truth) * low**2) / (p * q)
        new = (truth * (1 - low) ** 2 + (1 - truth) * (1 - high) ** 2) / ((1 - q) * (1 - p))
        rest = ((1 - truth) * high**2 + truth * low**2) / q**2
        return math.log(own * new * rest ** (domain - 2))

    assert cost(2) == pytest.approx(1.711, abs=1e-3) and cost(32) == pytest.approx(8.972, abs=1e-3)
    assert cost(32) > 2 * Rappor(32, 4).epsilon_after(1) and cost(100) > 2 * 4


def test_sending_what_is_kept_has_the_law_of_both_draws(full):
    rappor, count = Rappor(2, 2, Fraction(1, 4), Fraction(2, 3)), 1_000_000 if full else 250_000
    sent = rappor.report(
        rappor.draw_permanent(np.zeros(count, dtype=np.int64), ReplayBits(b"keep")), ReplayBits(b"send")
    )
    once = rappor.encode(np.zeros(count, dtype=np.int64), ReplayBits(b"once"))
    law = np.array([float(p) for p in rappor.matrix().rows[0]])
    wrong = np.array([float(p) for p in Rappor(2, Fraction(22, 10), Fraction(1, 4), Fraction(2, 3)).matrix().rows[0]])
    bytes_ = rappor.list_reports()[:, 0]
    for reports in (sent, once):
        seen = np.bincount(reports[:, 0], minlength=256)[bytes_]
        # Pearson's test: false alarms 1e-10; ten per cent more epsilon is rejected
        assert chdtrc(3, ((seen - count * law) ** 2 / (count * law)).sum()) > 1e-10
        assert chdtrc(3, ((seen - count * wrong) ** 2 / (count * wrong)).sum()) < 1e-10


def test_chances_of_an_eighth_are_drawn():
    # Shares of the residual law are then multiples of 2^-64, which only exact numbers tell.
    rappor, bits = Rappor(8, 4, Fraction(1, 8), Fraction(7, 8)), ReplayBits(b"eighths")
    kept = rappor.draw_permanent(np.zeros(20_000, dtype=np.int64), bits)
    sent = np.unpackbits(rappor.report(kept, bits), axis=1)
    ones = np.unpackbits(kept, axis=1) == 1
    # 160,000 coins: each mean is within 6.5 deviations of its chance, a false alarm below 1e-10. One of 0.14 is not.
    for chance, found in ((7 / 8, sent[ones]), (1 / 8, sent[~ones])):
        assert abs(found.mean() - chance) < 6.5 * (7 / 64 / len(found)) ** 0.5 < 0.015


def test_rappor_estimates_are_unbiased_with_the_closed_form_of_the_variance():
    rappor, users = Rappor(16, 4, Fraction(1, 4), Fraction(3, 4)), 20_000
    values = np.arange(users) % 4
    reports = rappor.report(rappor.draw_permanent(values, ReplayBits(b"a")), ReplayBits(b"b"))
    found = FrequencySummary.empty(rappor).add(reports).estimate()
    truth = np.where(np.arange(16) < 4, 0.25, 0.0)
    errors = (found.frequencies - truth) / np.sqrt([rappor.variance(users, share) for share in truth])
    assert (np.abs(errors) < 6.8).all()  # 16 normals: 2e-10
    assert chdtrc(16, (errors**2).sum()) > 1e-10


def test_rappor_refuses_what_nobody_sends():
    with pytest.raises(Refused) as refusal:
        QUARTERS.support(np.zeros((3, 2), dtype=np.uint8))
    assert refusal.value.code is ErrorCode.REPORT
    other = FrequencySummary.empty(Rappor(2, 2, Fraction(1, 4), Fraction(2, 3)))
    assert FrequencySummary.from_bytes(other.to_bytes()).mark == other.mark
    with pytest.raises(Refused, match="two surveys"):
        FrequencySummary.empty(QUARTERS).merge(other)
    with pytest.raises(ParameterError, match="above low"):
        Rappor(4, 1, Fraction(3, 4), Fraction(1, 4))


@pytest.mark.parametrize("make", [KAryRandomizedResponse, SymmetricUnaryEncoding, OptimizedUnaryEncoding])
@given(
    questions=st.integers(2, 12),
    domain=st.integers(2, 200),
    epsilon=st.fractions(Fraction(1, 10), 8, max_denominator=20),
)
@settings(max_examples=40 if FULL else 10, deadline=None)
def test_one_question_has_at_most_a_dth_of_the_variance_for_rare_values(make, questions, domain, epsilon):
    found = compare_strategies(make, [domain] * questions, epsilon, users=1000)
    assert found.better is BudgetStrategy.ONE
    for one, every in zip(found.one, found.all, strict=True):
        assert one <= every / questions * (1 + 1e-9)


def test_all_questions_are_better_for_common_values_at_a_large_epsilon():
    # two yes-or-no questions, f = 1/2: with u = sinh(epsilon/4)^2 they tie at 4u^2 + 2u = 1, epsilon = 2.122
    assert (
        compare_strategies(KAryRandomizedResponse, (2, 2), Fraction(212, 100), 1000, frequency=0.5).better
        is BudgetStrategy.ONE
    )
    assert (
        compare_strategies(KAryRandomizedResponse, (2, 2), Fraction(213, 100), 1000, frequency=0.5).better
        is BudgetStrategy.ALL
    )


@pytest.mark.slow
@pytest.mark.parametrize("way", list(BudgetStrategy))
def test_both_ways_cost_epsilon_and_their_intervals_hold_for_everyone(way):
    asked = MultiAttributeProtocol(KAryRandomizedResponse, (2, 4), Fraction(2), way)
    assert priced(asked.loss(), 0) == 2
    users, runs = 400, 300
    rows = np.stack([np.arange(users) % 2, np.arange(users) % 4], axis=1)
    bits, misses, errors = ReplayBits(b"ways"), 0, []
    for _ in range(runs):
        found = [summary.estimate(0.9) for summary in asked.collect(asked.encode(rows, bits))]
        misses += not found[1].low[0] <= 0.25 <= found[1].high[0]
        errors.append(found[1].frequencies[0] - 0.25)
    # misses at most binomial(300, 0.1): above 75 has a chance below 1e-10
    assert misses <= 75
    # the mean is within 6.5 of its deviations, 1e-10; the spread is that of the closed form, by chi-square
    variance = asked.variance(users, 1, 0.25)
    assert abs(np.mean(errors)) < 6.5 * math.sqrt(variance / runs)
    assert 0.5 < np.var(errors) / variance < 1.6


def test_questions_that_do_not_fit_are_errors():
    asked = MultiAttributeProtocol(KAryRandomizedResponse, (2, 4), Fraction(2))
    with pytest.raises(ParameterError):
        asked.encode([[0, 1, 2]], ReplayBits(b""))
    with pytest.raises(Refused):
        asked.collect([[0, 1]])
    with pytest.raises(ParameterError):
        MultiAttributeProtocol(KAryRandomizedResponse, (), Fraction(1))
