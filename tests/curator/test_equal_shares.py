"""Equal shares of a budget fit into it, whatever their number, and noise and charge are of the same number."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

import tacit
from tacit.accounting.filters import GRAINS_PER_EPSILON, compute_charge, whole
from tacit.aggregates.registry import read_question as parse
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits
from tacit.errors import ErrorCode, Refused
from tacit.ledger.entries import EntryKind
from tacit.ledger.verify import verify
from tacit.plan.bind_question import plan_for
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.policy.load import load

pytestmark = pytest.mark.slow

COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age > {}"
QUESTIONS = {
    "a count": COUNT,
    "three vectors": "SELECT COUNT(*) AS n, SUM(age) AS s, AVG(cost) AS m FROM visits WHERE age > {}",
    "quantiles": "SELECT MEDIAN(age) AS m, MAX(age) AS x, COUNT(*) AS n FROM visits WHERE age > {}",
    "choices in groups": "SELECT ward, MEDIAN(age) AS m, MODE(sex) AS s FROM visits WHERE age > {} GROUP BY ward",
    "private keys": "SELECT note, COUNT(*) AS n FROM visits WHERE age > {} GROUP BY note",
    "private keys by units": "SELECT note, SUM(age) AS s, AVG(cost) AS m FROM visits WHERE age > {} GROUP BY note",
    "a wide vector": "SELECT day, SUM(age) AS n, VARIANCE(age) AS v FROM visits WHERE age > {} GROUP BY day",
}


def policy(overall: object = 1, own: object = 1, delta: float = 1e-6) -> dict[str, object]:
    columns = {
        "age": {"type": "int", "lower": 0, "upper": 2000},
        "cost": {"type": "float", "lower": 0, "upper": 7, "step": 0.5},
        "ward": {"type": "text", "values": ["A", "B", "C"]},
        "sex": {"type": "text", "values": ["f", "m", "x"]},
        "day": {"type": "int", "lower": 0, "upper": 200},
        "note": {"type": "text"},
    }
    return {
        "privacy": {"epsilon": overall, "delta": delta, "delta_per_question": delta / 10**5},
        "tables": {"visits": {"unit": "patient", "max_groups": 3, "max_rows_per_group": 7, "columns": columns}},
        "analysts": {"ada": {"epsilon": own, "delta": delta}, "bo": {"epsilon": own, "delta": delta}},
    }


def visits() -> dict[str, object]:
    import pyarrow as pa

    rows = range(40)
    return {
        "visits": pa.table(
            {
                "patient": list(rows),
                "age": [row % 90 for row in rows],
                "cost": [row % 7 / 2 for row in rows],
                "ward": ["ABC"[row % 3] for row in rows],
                "sex": ["fmx"[row % 3] for row in rows],
                "day": list(rows),
                "note": [str(row % 2) for row in rows],
            }
        )
    }


@pytest.fixture
def opened(tmp_path):
    made = []

    def at(**caps: object) -> Curator:
        plain = policy(**caps) | {"ledger": {"store": str(tmp_path / f"{len(made)}.ledger")}}
        made.append(tacit.open(plain, visits()))
        return made[-1]

    yield at
    for curator in made:
        assert verify(curator.ledger).problems == ()
        curator.close()


@pytest.mark.parametrize("shares", [3, 7, 11])
@pytest.mark.parametrize(("kind", "caps"), [(float, {"own": 5}), (Fraction, {"overall": 5})], ids=["overall", "own"])
def test_equal_shares_of_a_budget_fit(opened, shares, kind, caps):
    curator = opened(**caps)
    ada, share = curator.analyst("ada"), kind(1) / shares
    for number in range(shares):
        ada.ask(COUNT.format(number), epsilon=share)
    with pytest.raises(Refused) as refusal:
        ada.ask(COUNT.format(shares), epsilon=share)
    assert refusal.value.code is ErrorCode.BUDGET


@pytest.mark.parametrize("question", QUESTIONS)
def test_equal_shares_fit_for_every_kind_of_noise(opened, question):
    curator = opened(overall=5)
    ada = curator.analyst("ada")
    for number in range(7):
        ada.ask(QUESTIONS[question].format(number), epsilon=1 / 7)


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_plan_is_charged_more_than_whole_grains_of_what_is_asked(question, full):
    # Then n of them fit into n times the share, for each n: by the arithmetic of whole grains.
    asked = parse(QUESTIONS[question].format(3))
    plains = [load(policy())] + [load(policy(delta=0))] * ("private" not in question)
    numbers, kinds = range(1, 1001, 1 if full else 97), (float, Fraction)
    for plain, shares, kind in itertools.product(plains, numbers, kinds):
        share = kind(1) / shares
        plan = plan_for(asked, plain, share)
        charged = compute_charge(plan.loss, plan.delta).epsilon
        assert charged <= math.floor(Fraction(share) * GRAINS_PER_EPSILON * (1 + Fraction(1, 2**53)))
        assert charged * shares <= GRAINS_PER_EPSILON
        if plan.delta == 0:  # what has a pure price has exactly this one
            assert charged == whole(Fraction(str(share))) * GRAINS_PER_EPSILON


@pytest.mark.parametrize("cap", ["1", "0.7", "3", "2.5", "0.1", "10", "1000", "2999.999"])
def test_shares_in_doubles_and_in_fractions_fit_for_every_number_up_to_a_thousand(cap):
    grains = Fraction(cap) * GRAINS_PER_EPSILON
    for shares in range(1, 1001):
        for share in (float(cap) / shares, Fraction(cap) / shares):
            rounded = whole(Fraction(str(share)))
            assert rounded * shares * GRAINS_PER_EPSILON <= grains
            assert grains - rounded * shares * GRAINS_PER_EPSILON < 2 * shares  # no more is lost than a grain or two


def test_a_price_of_whole_grains_is_the_question_that_it_was():
    text = QUESTIONS["three vectors"].format(3)
    asked, plain = parse(text), load(policy())
    for epsilon in (0.5, 0.1, 1, Fraction(1, 8), 0.123456789012, 1e-6):
        old = plan_for(asked, plain, epsilon, rounded=False)
        assert plan_for(asked, plain, epsilon) == old
        written = plan_for(asked, plain, epsilon, canonical=False)
        assert make_plans(Question(text, epsilon), plain) == (old, (written,))
    earlier = [plan_for(asked, plain, 1 / 3, rounded=rounded, canonical=False) for rounded in (True, False)]
    new = plan_for(asked, plain, 1 / 3)
    assert len({new.key, *(plan.key for plan in earlier)}) == 3
    assert make_plans(Question(text, 1 / 3), plain) == (new, tuple(earlier))


def asked_before(curator: Curator, who: str, request: str = "") -> bytes:
    """A question at a third, as an earlier version charged and answered it."""
    from tacit.answers.stored import pack

    plan = plan_for(parse(COUNT.format(1)), curator.policy, 1 / 3, rounded=False, canonical=False)
    claim = curator.ledger.reserve(who, plan.loss, plan.key, delta=plan.delta, request=request)
    stored = curator.ledger.commit(claim, pack(plan.release(curator.engine.run(plan.exact), curator.bits))).stored
    assert stored is not None
    return stored


@pytest.mark.parametrize("request_name", ["", "r-1"])
def test_what_was_asked_before_prices_were_rounded_stays_that_question(opened, request_name, monkeypatch):
    monkeypatch.setattr("tacit.curator.resources.KEY_VERSION", 0)  # a ledger that was made before
    curator = opened()
    asked_before(curator, "ada", request_name)
    before, spent = list(curator.ledger.entries()), curator.ledger.overall().spent
    for _ in range(2):
        again = curator.analyst("ada").ask(COUNT.format(1), epsilon=1 / 3, request=request_name)
    assert list(curator.ledger.entries()) == before
    assert again.receipt.entry == 2
    # Another analyst is shown the same answer, at a charge to their own cap only.
    other = curator.analyst("bo").ask(COUNT.format(1), epsilon=1 / 3)
    assert other.value == again.value
    assert (other.receipt.repeat, curator.ledger.overall().spent) == (True, spent)
    # Another question at that price is of whole grains.
    new = curator.analyst("ada").ask(COUNT.format(2), epsilon=1 / 3)
    assert new.receipt.charged.epsilon == 333333333333
    assert [entry.kind for entry in curator.ledger.entries()][-1] is EntryKind.COMMIT


def test_what_is_explained_is_what_is_charged(opened):
    curator = opened()
    assert curator.analyst("ada").explain(COUNT.format(1), epsilon=1 / 3).epsilon == 0.333333333333
    assert budget_limits(curator.policy).overall.epsilon == GRAINS_PER_EPSILON


def test_an_accuracy_is_met_at_whole_grains(opened):
    curator = opened(overall=100, own=100)
    for width in (3, 7, 50, 333):
        plan = curator.planner.plan(Question(COUNT.format(1), within={"n": width}))
        price = plan.epsilon_delta[0]
        assert whole(price) == price
        found = curator.analyst("ada").ask(COUNT.format(width), within={"n": width})
        ((low, high),) = found.interval("n")
        assert high - low <= 2 * width
