from __future__ import annotations

import json
import math
import threading
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas
import pytest
from scipy.special import betainccinv, betaincinv
from scipy.stats import binom
from tests.support.counts import FULL

from tacit.audit.bound import _SPENDINGS, choose_allocation, lower_confidence_bound
from tacit.audit.claim import Claim
from tacit.audit.events import choose_events, training_size
from tacit.audit.outputs import collect_outputs
from tacit.audit.scores import bit_positions
from tacit.audit.statistical import audit
from tacit.errors import ParameterError
from tacit.mechanisms import Gaussian, Laplace
from tacit.sampling.bits import ReplayBits

pytestmark = pytest.mark.slow

SEEDS = 500 if FULL else 80
ALARM = 1e-9  # of every test that draws
SURE = 1 - ALARM  # a true claim is refuted with at most this probability
TRUTH = math.e / (1 + math.e)  # randomized response of epsilon 1


def response(answer, size, rng):
    return np.where(rng.random(size) < TRUTH, answer, 1 - answer)


def geometric(epsilon):
    """Discrete Laplace noise, of sensitivity one."""
    stop = 1 - math.exp(-epsilon)
    return lambda value, size, rng: value + rng.geometric(stop, size) - rng.geometric(stop, size)


def released(mechanism, seed=b"audit"):
    """The real mechanism, in batches, from bits that replay."""
    bits = ReplayBits(seed)
    return lambda value, size: mechanism.release([value] * size, bits)


# The bound of two counts.


@pytest.mark.parametrize("claim", [Claim.epsilon(1), Claim.epsilon(1, 0.05), Claim.rho(1), Claim.mu(1)], ids=str)
def test_the_bound_holds_by_full_enumeration(claim):
    # every pair of counts of 25 outputs a side, with its exact probability: no sampling
    trials, miss = 25, 0.1
    counts = np.arange(trials + 1)
    for spending in _SPENDINGS[:: 1 if FULL else 4]:
        for weight in (0.1, 0.6, 0.99)[:: 1 if FULL else 2]:
            bounds = lower_confidence_bound(
                claim, counts[:, None], counts[None, :], trials, miss, weight=weight, spending=spending, cells=16
            )
            for p, q in [(0.9, 0.1), (0.5, 0.2), (0.3, 0.3), (0.05, 0.01), (1.0, 0.6), (0.2, 0.7)]:
                chance = binom.pmf(counts, trials, p)[:, None] * binom.pmf(counts, trials, q)[None, :]
                truth = max(claim.refuted_by(p, q), claim.refuted_by(q, p))
                assert chance[bounds > truth + 1e-9].sum() <= miss


def test_the_enumeration_would_see_a_bound_that_is_too_large():
    # half-and-half bounds at twice the error are wrong more often than miss for p = 0.5, q = 0.2
    trials, miss, claim = 25, 0.1, Claim.epsilon(1)
    counts = np.arange(1, trials)
    bounds = lower_confidence_bound(claim, counts[:, None], counts[None, :], trials, 4 * miss)
    chance = binom.pmf(counts, trials, 0.5)[:, None] * binom.pmf(counts, trials, 0.2)[None, :]
    assert chance[bounds > math.log(2.5)].sum() > miss


@pytest.mark.parametrize(
    ("likelier", "rarer"), [(73106, 26894), (500, 184), (50_000, 184), (500, 0), (40, 1), (99_999, 50_000)]
)
def test_the_bound_is_above_that_of_two_halves_of_the_error(likelier, rarer):
    trials, claim = 100_000, Claim.epsilon(1)
    for miss in (0.05, 0.01, 1e-6):
        halves = claim.refuted_by(
            float(betaincinv(likelier, trials - likelier + 1, miss / 2)),
            float(betainccinv(rarer + 1, trials - rarer, miss / 2)),
        )
        spending = choose_allocation(claim, likelier, rarer, trials, miss)
        assert lower_confidence_bound(claim, likelier, rarer, trials, miss, spending=spending) > halves


def test_the_width_is_that_of_the_best_test():
    # randomized response of epsilon 1: the log of the ratio of the counts has the deviation
    # sqrt((1-p)/(p n) + (1-q)/(q n)) = sqrt((0.3679 + 2.7183)/1e5) = 0.005555; times 1.645 that is 0.00914
    bound = lower_confidence_bound(Claim.epsilon(1), 73106, 26894, 100_000, 0.05, spending=_SPENDINGS[1])
    assert 1 - bound == pytest.approx(0.00914, rel=0.1)


# What is learned: no output that is counted has a part in it.


def recorded(one, other):
    """A mechanism that gives these outputs."""
    sides = iter((one, other))
    return lambda data, size: next(sides)


def learned(one, other):
    """Where learning ends, and what it has learned."""
    outputs = collect_outputs(recorded(one, other), (1, 0), len(one), np.random.default_rng(0), lambda share: None)
    start = training_size(outputs, len(one))
    seen = [side.part(0, start) for side in outputs.lay_out(start)]
    claim, rng = Claim.epsilon(0.5), np.random.default_rng(1)
    checks = choose_events(seen[0], seen[1], claim, len(one) - start, 0.01, rng)
    return start, [
        (check.event.score.family, check.event.threshold, check.event.under_one, check.miss, check.weight)
        for check in checks
    ]


def pairs(count, seed):
    """A number that says nothing, beside the answer of randomized response of epsilon 1."""
    rng = np.random.default_rng(seed)
    return [
        [
            (float(x), "yes" if said else "no")
            for x, said in zip(rng.random(count), response(bit, count, rng), strict=True)
        ]
        for bit in (1, 0)
    ]


# What outputs become once learning has ended.
LATER = {
    "numbers": lambda place: place + 2,
    "texts": lambda place: f"odd {place}",
    "rows": lambda place: (0.5, f"odd {place}"),
    "nothing": lambda place: None,
    "longer rows": lambda place: (0.5, "yes", place, "more"),
    "huge integers": lambda place: 10 ** (400 + place),
    "no rows": lambda place: (),
}


@pytest.mark.parametrize("count", [101, 2_000])
@pytest.mark.parametrize("later", LATER)
def test_no_output_that_is_counted_changes_what_is_learned(count, later):
    rng = np.random.default_rng(count)
    bits = [response(bit, count, rng).tolist() for bit in (1, 0)]
    scores = [[int(1.5e308), *rng.normal(size=count - 1).tolist()] for _ in range(2)]
    empty = [[*[()] * (count - 1), 1], [()] * count]  # not all of them: then there is no audit
    for sides in (bits, pairs(count, count), scores, empty):
        start, expected = learned(*sides)
        changed = [[*side[:start], *map(LATER[later], range(count - start))] for side in sides]
        if sides is not empty or later != "no rows":
            assert learned(*changed) == (start, expected)


def test_an_output_that_is_learned_from_changes_what_is_learned():
    # power of the test above: one output fewer is kept
    sides = pairs(2_000, 3)
    start, expected = learned(*sides)
    rows = [[*side[: start - 40], *map(LATER["rows"], range(2_000 - start + 40))] for side in sides]
    assert learned(*rows) != (start, expected)


def test_a_batch_lays_out_each_output_by_itself():
    # an integer below the largest double is not cut because a later one overflows
    def first_number(last):
        side = [int(1.5e308), last]
        outputs = collect_outputs(recorded(side, side), (1, 0), 2, np.random.default_rng(0), lambda share: None)
        return outputs.lay_out(1)[0].numbers[0, 0]

    assert first_number(1) == first_number(10**400) == 1.5e308


def test_where_learning_ends_is_up_to_no_output_that_is_counted():
    one, other = (np.random.default_rng(5).integers(0, 2, (2, 10_000))).tolist()
    plain = audit(recorded(list(one), list(other)), 1, 0, Claim.epsilon(1), samples=10_000)
    one[700:703] = 7, 8, 9
    assert audit(recorded(one, other), 1, 0, Claim.epsilon(1), samples=10_000).trials == plain.trials == 9_500


def test_labels_that_come_last_choose_no_event():
    one, other = pairs(2_000, 4)
    plain = audit(recorded(list(one), list(other)), 1, 0, Claim.epsilon(1), samples=2_000)
    one[-20:] = [(number, f"odd {place}") for place, (number, _) in enumerate(one[-20:])]
    found = audit(recorded(one, other), 1, 0, Claim.epsilon(1), samples=2_000)
    events = {"output[1] is 'yes'", "output[1] is not 'yes'"}  # the event or its complement: counts say which is told
    assert plain.event in events and found.event in events


# Figures.


def test_randomized_response_is_bounded_at_98_percent_of_its_epsilon():
    bounds = [audit(response, 1, 0, Claim.epsilon(1), confidence=0.95, seed=seed).lower for seed in range(10)]
    assert 0.98 < np.median(bounds) < 1


def test_laplace_is_bounded_at_95_percent_of_its_epsilon():
    bounds = [audit(geometric(1), 1, 0, Claim.epsilon(1), seed=seed).lower for seed in range(3)]
    assert 0.95 < np.median(bounds) < 1


def test_the_same_seed_finds_the_same():
    first, second = (audit(response, 1, 0, Claim.epsilon(1), samples=2000, seed=7) for _ in range(2))
    assert first == second
    assert audit(response, 1, 0, Claim.epsilon(1), samples=2000, seed=8) != first


# Validity: a bound is above the truth as seldom as it says.


def too_high(mechanism, one, other, claim, truth, confidence, samples, seeds=SEEDS):
    findings = (
        audit(mechanism, one, other, claim, samples=samples, confidence=confidence, seed=seed) for seed in range(seeds)
    )
    return sum(finding.lower > truth for finding in findings)


def most(confidence, seeds=SEEDS):
    """A binomial count with this chance of a miss is above it with probability ALARM at most."""
    return binom.isf(ALARM, seeds, 1 - confidence)


def test_the_bound_of_randomized_response_is_seldom_above_its_epsilon():
    claim = Claim.epsilon(1)
    assert too_high(response, 1, 0, claim, 1.0, 0.9, 1000) <= most(0.9)
    # power: were the true epsilon 0.7, the same bounds would be too high far too often
    assert too_high(response, 1, 0, claim, 0.7, 0.9, 1000) > most(0.9)


def test_a_mechanism_that_ignores_its_input_gets_zero():
    def number(_, size, rng):
        return rng.integers(0, 1000, size)

    def real(_, size, rng):
        return rng.normal(size=size)

    def vector(_, size, rng):
        return rng.normal(size=(size, 2))

    claim, seeds = Claim.epsilon(1), SEEDS // 2 if FULL else 16  # of 16, more than 12 are too many
    for mechanism in (number, real, vector):
        assert too_high(mechanism, 1, 0, claim, 0.0, 0.9, 500, seeds) <= most(0.9, seeds)
    # power: an epsilon of one is above zero far too often
    assert too_high(geometric(1), 1, 0, claim, 0.0, 0.9, 500, seeds) > most(0.9, seeds)


@pytest.mark.parametrize("claim", [Claim.rho(0.5), Claim.mu(1.001)], ids=str)
def test_the_bounds_of_a_gaussian_are_seldom_above_its_cost(claim):
    # discrete, sigma = 10, shift 10: rho = 1/2 exactly; half-lines give mu up to 1.00042 (a sum of the law says so)
    noise = released(Gaussian(100))
    seeds = SEEDS // 4 if FULL else 12  # of 12, more than 10 are too many
    findings = [audit(noise, 10, 0, claim, samples=1000, confidence=0.9, seed=seed) for seed in range(seeds)]
    assert sum(finding.is_refuted for finding in findings) <= most(0.9, seeds)


# True claims hold, wrong ones are refuted.


@pytest.mark.parametrize(
    ("mechanism", "shift", "claim"),
    [
        (Laplace(1), 1, Claim.epsilon(1)),
        (Laplace(10), 1, Claim.epsilon(0.1)),
        (Laplace(100), 100, Claim.epsilon(1)),
        (Gaussian.for_rho(Fraction(1, 2), sensitivity=10), 10, Claim.rho(0.5)),
        (Gaussian(100), 10, Claim.mu(1.001)),
        (Gaussian.calibrated(1, Fraction(1, 10**5)), 1, Claim.epsilon(1, delta=1e-5)),
    ],
)
def test_true_claims_are_not_refuted(mechanism, shift, claim):
    finding = audit(released(mechanism), shift, 0, claim, samples=40_000, confidence=SURE)
    assert not finding.is_refuted and finding.verdict == "not refuted"


@pytest.mark.parametrize(
    ("mechanism", "shift", "claim"),
    [
        (Laplace(1), 1, Claim.epsilon(0.9)),
        (Laplace(10), 1, Claim.epsilon(0.06)),
        (Laplace(100), 100, Claim.epsilon(0.9)),
        (Laplace(1), 2, Claim.epsilon(1)),  # the sensitivity is twice what was thought
        (Gaussian(25), 10, Claim.rho(0.5)),  # half the deviation: rho is 2
        (Gaussian(64), 10, Claim.mu(1)),  # mu is 1.25
        (Gaussian(1), 1, Claim.epsilon(1, delta=1e-5)),
    ],
)
def test_wrong_claims_are_refuted(mechanism, shift, claim):
    finding = audit(released(mechanism), shift, 0, claim, samples=40_000)
    assert finding.is_refuted and finding.verdict == "refuted" and finding.lower > claim.value
    if FULL or shift == 2:  # the other way round: one of them each day
        assert audit(released(mechanism), 0, shift, claim, samples=40_000).is_refuted


def test_textbook_laplace_in_floating_point_is_refuted_by_its_last_bits():
    # 1 + noise is a multiple of 2^-53 where 0 + noise need not be
    def textbook(value, size, rng):
        uniform = rng.random(size) - 0.5
        return value - np.sign(uniform) * np.log(1 - 2 * np.abs(uniform))

    finding = audit(textbook, 1.0, 0.0, Claim.epsilon(1))
    assert finding.is_refuted and finding.lower > 5
    assert "last bit" in finding.event


def test_a_value_that_only_one_side_has_is_found():
    # one output in a hundred is the secret itself, among thousands of others
    def leaky(secret, size, rng):
        return np.where(rng.random(size) < 0.01, secret, rng.integers(0, 5000, size) + 0.5)

    finding = audit(leaky, 7.25, 9.75, Claim.epsilon(1))
    # 1 in 100 of 87,500 against none: ln(875/4.6) or so
    assert finding.is_refuted and finding.lower > 4


def test_last_bits_are_exponents_of_two():
    # 6 = 110b: first bit 2^2, last 2^1; 0.375 = 0.011b: 2^-2 and 2^-3
    keys = bit_positions(np.array([6.0, -6.0, 0.375, 12.0, 0.0, np.inf, 5e-324]))
    assert keys[0] == keys[1] and len(set(keys.tolist())) == 6


def test_texts_tuples_and_vectors_are_audited():
    def text(answer, size, rng):
        return ["yes" if said else "no" for said in response(answer, size, rng)]

    def mixture(answer, size, rng):
        return list(zip(text(answer, size, rng), rng.integers(0, 900, size).tolist(), strict=True))

    def vector(values, size, rng):
        return np.asarray(values) + geometric(0.5)(0, (size, 2), rng)

    def one_by_one(answer, rng):
        return {"a": frozenset({1}), "b": frozenset()}["ab"[int(response(answer, 1, rng)[0])]]

    claim, samples = Claim.epsilon(0.8), 20_000 if FULL else 8_000
    for mechanism, one, other, count in [
        (text, 1, 0, samples),
        (mixture, 1, 0, samples),
        (vector, (1, 1), (0, 0), 40_000),
        (one_by_one, 1, 0, samples),
    ]:
        finding = audit(mechanism, one, other, claim, samples=count)
        assert finding.is_refuted and finding.lower < 1.1, mechanism.__name__


def test_a_leak_in_how_two_numbers_hang_together_is_found():
    # each number alone has the same law on both sides
    def together(same, size, rng):
        first = rng.integers(-500, 500, size)
        sign = np.where(rng.random(size) < 0.9, 1, -1) * (1 if same else -1)
        return np.column_stack([first, sign * first + rng.integers(-100, 100, size)])

    assert audit(together, True, False, Claim.epsilon(1), samples=20_000).is_refuted


def test_the_order_of_numbers_is_an_event():
    def ordered(up, size, rng):
        pair = np.sort(rng.integers(0, 10_000, (size, 3)), axis=1)
        return pair if up else pair[:, ::-1]

    finding = audit(ordered, True, False, Claim.epsilon(1), samples=5000)
    assert finding.is_refuted


def test_infinities_and_huge_integers_are_outputs():
    def infinite(answer, size, rng):
        return np.where(response(answer, size, rng) == 1, np.inf, rng.normal(size=size))

    def huge(answer, size, rng):
        return [10 ** (300 + 20 * int(said)) for said in response(answer, size, rng)]

    for mechanism in (infinite, huge):
        # an infinity against a number: ratio e; a number from rng.normal may also tell by its bits: not here
        assert 0.8 < audit(mechanism, 1, 0, Claim.epsilon(1), samples=20_000).lower < 1.1


# What a finding says.


def test_a_finding_tells_what_was_counted():
    finding = audit(response, 1, 0, Claim.epsilon(0.5), samples=10_000)
    assert finding.is_refuted and finding.trials < finding.samples == 10_000
    assert finding.event in {"output = 1", "output = 0", "output != 1", "output != 0"}
    assert (finding.one_count + finding.other_count) / finding.trials == pytest.approx(1, abs=0.05)
    text = str(finding)
    assert text.startswith("epsilon = 0.5: refuted.") and f"{finding.one_count:,}" in text and "99 %" in text
    assert (finding.one, finding.other) == (1, 0)


def test_not_refuted_is_not_called_proved():
    assert "Not refuted is not proved" in str(audit(response, 1, 0, Claim.epsilon(2), samples=1000))


def test_a_finding_is_plain_data():
    finding = audit(response, 1, 0, Claim.epsilon(1, delta=1e-6), samples=1000)
    told = json.loads(json.dumps(finding.to_dict()))
    assert told["claim"] == {"name": "epsilon", "value": 1.0, "delta": 1e-6}
    assert told["verdict"] == "not refuted" and told["refuted"] is False and told["lower"] == finding.lower
    assert "at delta = 1e-06" in str(finding)


def test_progress_ends_at_one_and_never_goes_back():
    for mechanism in (response, lambda answer, rng: int(response(answer, 1, rng)[0])):
        told: list[float] = []
        audit(mechanism, 1, 0, Claim.epsilon(1), samples=3000, progress=told.append)
        assert told == sorted(told) and told[0] > 0 and told[-1] == 1.0


# What cannot be audited.


def refused(mechanism, claim=None, **given):
    with pytest.raises(ParameterError) as caught:
        audit(mechanism, 1, 0, claim or Claim.epsilon(1), **{"samples": 200} | given)
    assert caught.value.fix
    return caught.value


@dataclass(frozen=True)
class Unhashable:
    values: list[int]


@pytest.mark.parametrize("mechanism", [lambda data: 1 / 0, lambda data, size: 1 / 0])
def test_a_mechanism_that_always_raises_the_same_gives_no_verdict(mechanism):
    error = refused(mechanism)
    assert error.name == "mechanism" and "raised ZeroDivisionError in every call" in error.what
    assert isinstance(error.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_audit_ends_where_its_user_says_so(stop):
    def mechanism(data):
        raise stop

    with pytest.raises(stop):
        audit(mechanism, 1, 0, Claim.epsilon(1), samples=200)


@pytest.mark.parametrize(
    ("output", "what"),
    [
        (lambda rng: {"a": 1}, "dict"),
        (lambda rng: Unhashable([1]), "Unhashable"),
        (lambda rng: (), "empty"),
        (lambda rng: [], "empty"),
    ],
)
def test_outputs_that_cannot_be_compared_give_no_verdict(output, what):
    error = refused(lambda data, rng: output(rng))
    assert error.name == "mechanism" and what in error.what


@pytest.mark.parametrize(
    ("batch", "what"),
    [
        (lambda data, size: [1.0] * (size - 1), "gave 199 outputs where 200"),
        (lambda data, size: np.ones(size + 1), "gave 201 outputs where 200"),
        (lambda data, size: 1.0, "gave a float"),
        (lambda data, size: "a" * size, "gave a str"),
        (lambda data, size: None, "gave a NoneType"),
        (lambda data, size: np.ones((size, 0)), "empty"),
    ],
)
def test_a_batch_of_another_size_gives_no_verdict(batch, what):
    error = refused(batch)
    assert error.name == "mechanism" and what in error.what


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"samples": 99}, "samples"),
        ({"samples": 1e5}, "samples"),
        ({"samples": True}, "samples"),
        ({"confidence": 1}, "confidence"),
        ({"confidence": 0.0}, "confidence"),
        ({"confidence": math.nan}, "confidence"),
        ({"confidence": "high"}, "confidence"),
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
        ({"claim": "epsilon=1"}, "claim"),
        ({"claim": 1.0}, "claim"),
    ],
)
def test_wrong_parameters_are_named(given, name):
    assert refused(response, **given).name == name


def test_what_cannot_be_called_is_no_mechanism():
    error = refused(3)
    assert error.name == "mechanism" and "int" in error.what


def test_functions_that_show_no_signature_are_called_with_the_data_alone():
    # str(1) is always "1" and str(0) is always "0"
    assert audit(str, 1, 0, Claim.epsilon(1), samples=1000).is_refuted


# Outcomes of every kind.


def raised(problem):
    raise problem


def text(words):
    return ValueError(words)


# What a function shows in the place of a number: the first for bit 1 and the second for bit 0.
OUTCOMES = {
    "NaN": (lambda: math.nan, lambda: 1.0),
    "NaN in a vector": (lambda: (1.0, math.nan), lambda: (1.0, 1.0)),
    "None": (lambda: None, lambda: 1.0),
    "None or NaN": (lambda: None, lambda: math.nan),
    "None or a text": (lambda: None, lambda: "None"),
    "an exception": (lambda: raised(text("no")), lambda: 1.0),
    "two exceptions": (lambda: raised(text("no")), lambda: raised(KeyError("no"))),
    "two texts of an exception": (lambda: raised(text("a")), lambda: raised(text("b"))),
    "a text": (lambda: "a", lambda: 1.0),
    "an inner text": (lambda: (1, "a"), lambda: (1, 2)),
    "a length": (lambda: [1.0], lambda: [1.0, 1.0]),
    "an array": (lambda: np.ones(1), lambda: np.ones(2)),
    "a depth": (lambda: [[1.0], 1.0], lambda: [1.0, [1.0]]),
    "nothing": (lambda: (), lambda: (1.0,)),
    "the sign of zero": (lambda: -0.0, lambda: 0.0),
    "infinity": (lambda: math.inf, lambda: -math.inf),
    "infinity or nothing": (lambda: -math.inf, lambda: None),
    "an integer": (lambda: 1, lambda: 1.0),
    "a boolean": (lambda: True, lambda: 1),
    "a decimal NaN": (lambda: Decimal("NaN"), lambda: Decimal(1)),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_every_outcome_is_an_event(name):
    # Randomized response of epsilon 1, shown by these two outcomes: a claim of 1/2 is refuted and one of 1 is not,
    # at a false-alarm rate of 1e-9. The bound from 4,000 outputs is near 0.7; those from 800 are 0.4 to 0.7.
    shown = OUTCOMES[name]

    def mechanism(bit, rng):
        return shown[0]() if response(bit, 1, rng)[0] else shown[1]()

    claim, samples = (Claim.epsilon(0.5), 4_000) if FULL else (Claim.epsilon(0.2), 800)
    found = audit(mechanism, 1, 0, claim, samples=samples, confidence=SURE)
    assert found.is_refuted and found.lower < 1


@pytest.mark.parametrize("name", ["NaN", "None", "an exception"])
def test_an_outcome_among_many_numbers_is_an_event(name):
    # One in five outputs is the outcome where the bit is 1 (one in 50 where it is 0); all others are noise alone. For
    # the two, ln 10 = 2.3; a claim of 1 is refuted, and one of 2.4 is not, at 1e-9.
    def mechanism(bit, rng):
        return OUTCOMES[name][0]() if rng.random() < (0.2 if bit else 0.02) else rng.normal()

    found = audit(mechanism, 1, 0, Claim.epsilon(1), samples=4_000, confidence=SURE)
    assert 1 < found.lower < 2.4
    assert {"NaN": "NaN", "None": "None", "an exception": "raised"}[name] in found.event


def test_a_batch_that_raises_is_asked_for_one_by_one():
    calls = []

    def mechanism(bit, size, rng):
        calls.append(size)
        found = response(bit, size, rng)
        if found.any():
            raise text("a one")
        return found

    found = audit(mechanism, 1, 0, Claim.epsilon(0.5), samples=4_000, confidence=SURE)
    assert 0.5 < found.lower < 1
    assert found.event in {"output = (raised ValueError, 'a one')", "output = 0"}
    assert calls == [4_000] + [1] * 8_000


def test_exceptions_that_tell_nothing_refute_nothing():
    # Half of all calls raise, whatever the data: batches of many outputs would all be raised or all be not.
    def mechanism(bit, size, rng):
        if rng.random() < 0.5:
            raise text("busy")
        return response(bit, size, rng)

    for seed in range(20 if FULL else 8):
        assert not audit(mechanism, 1, 0, Claim.epsilon(1), samples=1_000, confidence=SURE, seed=seed).is_refuted


# Inputs that are written into.


def in_place(scale):
    def mechanism(data, rng):
        data += round(rng.laplace(scale=scale))
        return int(data[0])

    return mechanism


def of_list(data, rng):
    data.append(round(rng.laplace(scale=0.5)))
    return sum(data)


def of_dict(data, rng):
    data["people"]["n"] += round(rng.laplace(scale=0.5))
    return data["people"]["n"]


def of_frame(data, rng):
    data.loc[0, "n"] += round(rng.laplace(scale=0.5))
    return int(data.loc[0, "n"])


@pytest.mark.parametrize("seed", range(5 if FULL else 2))
def test_a_function_that_writes_into_its_input_is_audited_as_any_other(seed):
    one, other = np.array([100]), np.array([101])
    # Rounded Laplace noise of scale 2 is 1/2-DP at one step; scale 1/2 costs 2.
    sound = audit(in_place(2), one, other, Claim.epsilon(0.5), samples=2_000, confidence=SURE, seed=seed)
    broken = audit(in_place(0.5), one, other, Claim.epsilon(1), samples=2_000, confidence=SURE, seed=seed)
    assert not sound.is_refuted
    assert broken.is_refuted and broken.lower < 2
    assert (one[0], other[0]) == (100, 101)


@pytest.mark.parametrize(
    ("mechanism", "make"),
    [
        (of_list, lambda n: [n]),
        (of_dict, lambda n: {"people": {"n": n}}),
        (of_frame, lambda n: pytest.importorskip("pandas").DataFrame({"n": [n]})),
        (lambda data, rng: of_list(data[0], rng), lambda n: ([n], "in a tuple")),
        (lambda data, rng: of_list(data[0], rng), lambda n: np.array([[n], None], dtype=object)),
    ],
    ids=["list", "dict", "frame", "tuple", "objects"],
)
def test_every_kind_of_input_is_copied(mechanism, make):
    # 40 audits of this noise, with 600 outputs each, all gave bounds above 0.7
    claim, samples = (Claim.epsilon(1), 1_500) if FULL else (Claim.epsilon(0.5), 600)
    found = audit(mechanism, make(100), make(101), claim, samples=samples, confidence=SURE)
    assert found.is_refuted and found.lower < 2


def test_an_input_that_cannot_be_copied_is_told():
    with pytest.raises(ParameterError, match="cannot be copied, and each call is to have a copy of its own"):
        audit(lambda data: 1, threading.Lock(), 0, Claim.epsilon(1), samples=200)


def test_equal_inputs_test_nothing():
    def noisy(data, size, rng):
        return rng.laplace(size=size) + np.sum(data)

    claim, frame = Claim.epsilon(1), pandas.DataFrame({"a": [1, 2]})
    mixed = np.array([1, "a"], dtype=object)
    for one, other in (([1], [1]), (3, 3), (np.zeros(3), np.zeros(3)), (frame, frame.copy()), (mixed, mixed.copy())):
        with pytest.raises(ParameterError, match="other: is the same input as one") as caught:
            audit(noisy, one, other, claim, samples=100)
        assert caught.value.fix
    # what a function could tell apart is audited
    for one, other in (
        (1, 1.0),
        (0.0, -0.0),
        (np.array([0.0]), np.array([-0.0])),
        (True, 1),
        ([1], [1, 2]),
        ([1], (1,)),
    ):
        assert audit(noisy, one, other, claim, samples=100).samples == 100
