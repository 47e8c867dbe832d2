"""Profiles of the data: what one unit moves, the law of the release, the charge, and what is read off.

Neighboring databases go through policy, plan and engine; with bits that set the noise aside, the release is the exact
counts. The law is then enumerated from the definition of the noise, with the scale that is stored beside the counts.
"""

from __future__ import annotations

import datetime
import json
import math
import random
import tomllib
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from tests.support.bits import Ones
from tests.support.counts import FULL, some
from tests.support.policies import policy_of

import tacit
from tacit.accounting.filters import GRAINS_PER_EPSILON
from tacit.answers.data_profile import DataProfile
from tacit.curator.copies import PolicyLayouts, readings_of
from tacit.curator.curator import open_policy
from tacit.curator.profile import ChargedProfile, find_profile
from tacit.curator.profile_outlook import describe_plan
from tacit.curator.propose_bounds import propose_lines, render_lines
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.errors import Failed, ParameterError, Refused
from tacit.ledger.budget import OWNER
from tacit.policy.load import load
from tacit.privacy.sensitivity import ContributionBounds
from tacit.sampling.bits import ReplayBits

COLUMNS: dict[str, dict[str, Any]] = {
    "cost": {"type": "float"},
    "age": {"type": "int", "lower": 0, "upper": 110},
    "day": {"type": "date"},
    "at": {"type": "timestamp"},
    "ward": {"type": "text", "values": ["A", "B"]},
    "note": {"type": "text"},
    "paid": {"type": "bool"},
}
ARROW = {
    **{"who": pa.int64(), "cost": pa.float64(), "age": pa.int64(), "day": pa.date32(), "at": pa.timestamp("us")},
    **{"ward": pa.string(), "note": pa.string(), "paid": pa.bool_()},
}
VALUES: dict[str, list[Any]] = {
    "cost": [None, math.nan, math.inf, -math.inf, 5e-324, -0.0, 0.5, 700.0, -3e300, 1e15],
    "age": [None, -(2**63), 2**63 - 1, 0, 40, 41],
    "day": [None, datetime.date.min, datetime.date.max, datetime.date(2025, 5, 1)],
    "at": [None, datetime.datetime.min, datetime.datetime(2025, 5, 1, 12), datetime.datetime(9999, 12, 31, 23, 59, 59)],
    "ward": [None, "A", "B", "C"],
    "note": [None, "", "x", "y", "é"],
    "paid": [None, True, False],
}


def tables(unit: str = "who", **more: Any) -> dict[str, Any]:
    caps = {} if unit == "row" else {"max_rows": "auto"}
    return {"visits": {"unit": unit, **caps, "columns": COLUMNS, **more}}


def policy(neighbors: str = "add-remove", unit: str = "who", **more: Any) -> Any:
    return load(policy_of(tables(unit), epsilon=10, neighbors=neighbors, **{"delta": 1e-6, **more}))


def draw_rows(rng: random.Random, units: int) -> list[dict[str, Any]]:
    """Rows of some units, several of each, in any order; some are nobody's."""
    rows = [
        {"who": who, **{name: rng.choice(values) for name, values in VALUES.items()}}
        for who in [None, *range(units)]
        for _ in range(rng.choice([0, 1, 1, 2, 5]))
    ]
    rng.shuffle(rows)
    return rows


def frame(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in ARROW.items()})


def copy_of(loaded: Any, rows: list[dict[str, Any]]) -> DuckDBEngine:
    """The engine over a copy, as a curator opens it."""
    frames = {"visits": frame(rows)}
    return DuckDBEngine(
        table_schemas(loaded), None, frames, layouts=PolicyLayouts(loaded), readings=readings_of(loaded)
    )


def plain_sql_over(loaded: Any, rows: list[dict[str, Any]]) -> DuckDBEngine:
    return DuckDBEngine(table_schemas(loaded), None, {"visits": frame(rows)})


def counts(plan: ChargedProfile, engine: Any) -> dict[str, list[int]]:
    """The exact counts of each histogram, by the column or the name of the rows per unit."""
    (table,) = json.loads(plan.release(engine, Ones()))["tables"]
    found = {"(sizes)": table["sizes"]} if "sizes" in table else {}
    for column in table["columns"]:
        cells = column.get("cells") or [n for _, n in column["keys"]]
        found[column["name"]] = [column["null"], column.get("others", 0), *cells]
    return found


def distances(one: dict[str, list[int]], other: dict[str, list[int]]) -> dict[str, int]:
    return {
        name: sum(abs(a - b) for a, b in zip(one[name], other[name], strict=True)) for name in one if name != "note"
    }


RECORDED = "30970878383e535e4df4896da041f7c6bd24249509e4006be412176d1f0d00d8"


# What one unit moves


# By default either way to read under one of the relations.
MOVED = some(product([copy_of, plain_sql_over], ["add-remove", "replace"]), 3)


@pytest.mark.slow
@pytest.mark.parametrize(("over", "neighbors"), MOVED)
def test_one_unit_moves_each_histogram_by_no_more_than_is_charged(neighbors, over):
    loaded = policy(neighbors)
    plan = ChargedProfile.make(loaded, 1)
    most, moved = (1 if neighbors == "add-remove" else 2), set()
    for seed in range(40 if FULL else 1):
        rng = random.Random(seed)
        rows = draw_rows(rng, 6)
        without = [row for row in rows if row["who"] != 3]
        other = without if most == 1 else without + [row | {"who": 3} for row in draw_rows(rng, 1) if row["who"] == 0]
        found = distances(counts(plan, over(loaded, rows)), counts(plan, over(loaded, other)))
        assert max(found.values()) <= most
        moved |= set(found.values())
    assert most in moved  # the bound is reached


@pytest.mark.slow
def test_all_engines_count_alike_in_what_does_not_depend_on_the_choice_of_rows():
    # With one row for each unit there is nothing to choose.
    loaded, rng = policy(), random.Random(5)
    plan = ChargedProfile.make(loaded, 1)
    rows = [{"who": who, **{name: rng.choice(values) for name, values in VALUES.items()}} for who in range(60)]
    found = counts(plan, copy_of(loaded, rows))
    assert found == counts(plan, plain_sql_over(loaded, rows))
    plain = [row | {"at": None if row["at"] is None else tacit_time(row["at"])} for row in rows]
    assert found == counts(plan, ReferenceEngine({"visits": plain}))


def tacit_time(moment: datetime.datetime) -> int:
    return (moment - datetime.datetime(1, 1, 1)) // datetime.timedelta(microseconds=1)


@pytest.mark.slow
def test_an_engine_that_keeps_two_rows_is_caught():
    loaded, rng = policy(), random.Random(1)
    plan = ChargedProfile.make(loaded, 1)
    two = ContributionBounds(groups=1, rows=2)
    (table,) = plan.profiled
    columns = tuple(replace(column, exact=replace(column.exact, keep=two)) for column in table.columns)
    broken = replace(plan, profiled=(replace(table, columns=columns),))
    worst = 0
    for _ in range(5 if FULL else 1):  # the first has five rows of the unit that goes
        rows = draw_rows(rng, 6)
        without = [row for row in rows if row["who"] != 3]
        found = distances(*(counts(broken, copy_of(loaded, each)) for each in (rows, without)))
        worst = max(worst, *found.values())
    assert worst == 2


# The law


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_law_of_a_release_is_what_is_charged(neighbors):
    """Over all outcomes in the cells that differ, the largest ratio of probabilities is e^epsilon, and no more."""
    columns = {"x": {"type": "int"}, "b": {"type": "bool"}}
    loaded = load(policy_of({"t": {"unit": "row", "columns": columns}}, epsilon=10, neighbors=neighbors))
    epsilon = Fraction(3, 2)
    plan = ChargedProfile.make(loaded, epsilon)
    scale = float(Fraction(json.loads(plan.release(over_t(loaded, []), Ones()))["scale"]))
    rows = [(5, True), (None, False), (-7, None)]
    pairs = [(rows, [*rows, more]) for more in [(0, True), (None, None), (2**62, False)]]
    if neighbors == "replace":
        pairs = [(rows, [*rows[:2], more]) for more in [(9, True), (-7, False), (None, None)]]
    worst = 0.0
    one = flatten(plan, over_t(loaded, rows))
    for _, neighbor in pairs:
        other = flatten(plan, over_t(loaded, neighbor))
        differ = [place for place in range(len(one)) if one[place] != other[place]]
        ratios = [
            math.prod(
                weight(out - one[at], scale) / weight(out - other[at], scale)
                for out, at in zip(outs, differ, strict=True)
            )
            for outs in product(range(-2, 5), repeat=len(differ))
        ]
        worst = max(worst, *ratios, *(1 / ratio for ratio in ratios))
    assert worst == pytest.approx(math.exp(epsilon), rel=1e-9)


def weight(noise: int, scale: float) -> float:
    """The probability of discrete Laplace noise, by its definition."""
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** abs(noise)


def over_t(loaded: Any, rows: list[tuple[Any, ...]]) -> DuckDBEngine:
    numbers, truths = ([row[i] for row in rows] for i in range(2))
    table = pa.table({"x": pa.array(numbers, pa.int64()), "b": pa.array(truths, pa.bool_())})
    return DuckDBEngine(table_schemas(loaded), None, {"t": table})


def flatten(plan: ChargedProfile, engine: Any) -> list[int]:
    return [count for cells in counts(plan, engine).values() for count in cells]


@pytest.mark.slow
def test_noise_of_the_stated_scale_is_added():
    # The mean of |noise| over n cells is 2q/(1 - q^2), about the scale; 1,000 cells have a deviation of 3% of it. A
    # fifth off is 6 deviations: a false alarm has probability below 1e-8.
    loaded = policy(unit="row")
    plan = ChargedProfile.make(loaded, Fraction(1, 2))
    released = [json.loads(plan.release(plain_sql_over(loaded, []), ReplayBits(bytes([n])))) for n in range(3)]
    noise = [cell for each in released for column in each["tables"][0]["columns"] for cell in column.get("cells", [])]
    assert len(noise) > 1000
    q = math.exp(-1 / float(plan.scale))
    mean = sum(map(abs, noise)) / len(noise)
    assert mean == pytest.approx(2 * q / (1 - q * q), rel=0.2)


def test_epsilon_is_shared_by_all_histograms():
    # seven columns and the rows of each unit: 8 histograms, each at 1/8, so the scale is 8; under replace 16
    assert ChargedProfile.make(policy(), 1).scale == 8
    assert ChargedProfile.make(policy("replace"), 1).scale == 16
    assert ChargedProfile.make(policy(unit="row"), 1).scale == 7


@pytest.mark.slow
def test_private_keys_need_a_delta_and_many_units():
    rows = [{"who": n, **dict.fromkeys(VALUES), "note": "common" if n else "lonely"} for n in range(2000)]
    with_delta, without = policy(), policy(delta=0)
    found = {}
    for loaded in (with_delta, without):
        plan = ChargedProfile.make(loaded, 8)
        profile = DataProfile.decode(plan.release(copy_of(loaded, rows), ReplayBits(b"keys")))
        assert profile is not None
        found[loaded.budget.delta] = profile.table("visits").column("note")
    shown, hidden = found[with_delta.budget.delta], found[0]
    assert [key for key, _ in shown.keys] == ["common"]
    # scale 1, delta 1e-9: 1 + ln(1/((1 + 1/e) 1e-9)) = 1 + 20.7 - 0.31, rounded up
    assert shown.least == 22
    assert hidden.keys == () and hidden.least is None and 1980 < hidden.others < 2020


# Edge cases


EDGES: dict[str, list[dict[str, Any]]] = {
    "empty": [],
    "nobody's": [{"who": None, **dict.fromkeys(VALUES)}],
    "all NULL": [{"who": 1, **dict.fromkeys(VALUES)}] * 3,
    "largest": [{"who": n, **{name: values[-1] for name, values in VALUES.items()}} for n in range(3)],
    "all edges": [{"who": n, **{name: values[n % len(values)] for name, values in VALUES.items()}} for n in range(60)],
}
# By default each of the rows at one epsilon, by turns.
RELEASED = [(epsilon, name) for number, name in enumerate(EDGES) for epsilon in some([0.001, 100], 2, number)]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "name"), RELEASED)
def test_no_values_fail(name, epsilon):
    loaded, rows = policy(), EDGES[name]
    plan = ChargedProfile.make(loaded, epsilon)
    profile = DataProfile.decode(plan.release(copy_of(loaded, rows), ReplayBits(b"edges")))
    assert profile is not None
    assert str(profile) and json.dumps(profile.to_dict())
    render_lines(propose_lines(loaded, profile))


@pytest.mark.slow
def test_a_planted_extreme_value_is_not_seen():
    rows = [{"who": n, **dict.fromkeys(VALUES), "cost": 1e14 if n == 0 else 100.0} for n in range(3000)]
    loaded = policy()
    profile = DataProfile.decode(ChargedProfile.make(loaded, 1).release(copy_of(loaded, rows), ReplayBits(b"planted")))
    shown = profile.table("visits").column("cost").histogram.shown
    assert [(each.lower, each.upper) for each in shown] == [(64, 128)]


# The charge


@pytest.fixture(scope="module")
def visits() -> pa.Table:
    rng = random.Random(9)
    days = [datetime.date(2024 + rng.randrange(2), 1 + rng.randrange(12), 1) for _ in range(6000)]
    rows = [
        {
            "who": n // 3,
            "cost": None if n % 50 == 0 else min(4000.0, rng.lognormvariate(6, 1)),
            "age": rng.randrange(18, 90),
            "day": days[n],
            "at": datetime.datetime.combine(days[n], datetime.time(12)),
            "ward": rng.choice("AB"),
            "note": rng.choice(["flu", "cold"]),
            "paid": rng.random() < 0.25,
        }
        for n in range(6000)
    ]
    return frame(rows)


@pytest.fixture(scope="module")
def some_visits(visits) -> pa.Table:
    """Rows of which no test looks at the counts; by default a tenth of them."""
    return visits if FULL else visits.slice(0, 600)


@pytest.fixture
def curator(tmp_path, some_visits):
    declared = policy_of(tables(), epsilon=10, folder=tmp_path, delta=1e-6, own={"epsilon": 1, "delta": 1e-7})
    with tacit.open(declared, data={"visits": some_visits}) as opened:
        yield opened


@pytest.mark.slow
def test_a_profile_is_charged_once_to_all_and_to_no_analyst(curator):
    first = curator.profile(epsilon=2)
    again = curator.profile(epsilon=2)
    assert (again.stored, again) == (first.stored, first)
    assert (first.receipt.repeat, again.receipt.repeat) == (False, True)
    assert curator.ledger.overall().spent.epsilon == 2 * GRAINS_PER_EPSILON
    assert curator.analyst("ada").budget.own.spent.epsilon == 0
    assert curator.ledger.standing(OWNER).spent.epsilon == 2 * GRAINS_PER_EPSILON
    assert first.receipt.to_dict()["answer_delta"] == 1e-9
    other = curator.profile(epsilon=1)
    assert other.stored != first.stored and curator.ledger.overall().spent.epsilon == 3 * GRAINS_PER_EPSILON


@pytest.mark.slow
def test_a_profile_beyond_the_overall_budget_is_refused_before_data_is_read(curator):
    curator.engine.run = None  # which would fail
    with pytest.raises(Refused, match="budget"):
        curator.profile(epsilon=11)
    assert curator.ledger.overall().spent.epsilon == 0


def test_a_failure_after_the_charge_is_spent_and_tells_nothing(curator):
    def fails(aggregation: Any) -> Any:
        raise RuntimeError("Mrs. Smith's row")

    curator.engine.run = fails
    with pytest.raises(Failed) as raised:
        curator.profile(epsilon=1)
    assert "Smith" not in str(raised.value) and raised.value.__context__ is None
    assert curator.ledger.overall().spent.epsilon == GRAINS_PER_EPSILON
    assert find_profile(curator.ledger) is None


@pytest.mark.slow
def test_analysts_see_the_profile_for_nothing_and_after_the_policy_has_changed(curator, tmp_path, some_visits):
    ada = curator.analyst("ada")
    assert "profile" not in ada.schema.to_dict()
    profile = curator.profile(epsilon=2)
    assert ada.schema.profile == profile
    assert ada.schema.to_dict()["profile"] == profile.to_dict()
    assert "Profile of epoch 1, released with epsilon 2" in str(ada.schema)
    curator.close()
    bounded = tables()
    bounded["visits"]["columns"] = COLUMNS | {"cost": {"type": "float", "lower": 0, "upper": 5000}}
    declared = policy_of(bounded, epsilon=10, folder=tmp_path, delta=1e-6, own={"epsilon": 1, "delta": 1e-7})
    with tacit.open(declared, data={"visits": some_visits}) as opened:
        assert opened.analyst("ada").schema.profile == profile


@pytest.mark.slow
def test_caps_and_analysts_have_no_part_in_the_key_but_rows_and_noise_have():
    key = ChargedProfile.make(policy(), 1).key
    loaded = policy()
    capped = load(policy_of(tables(max_rows={"auto_up_to": 9}), epsilon=10, analysts=["bo"], delta=1e-6))
    assert ChargedProfile.make(capped, 1).key == key
    others = [
        ChargedProfile.make(loaded, 2),
        ChargedProfile.make(replace(loaded, epoch=2), 1),
        ChargedProfile.make(policy("replace"), 1),
        ChargedProfile.make(policy(delta=0), 1),
        ChargedProfile.make(policy(unit="row"), 1),
    ]
    assert len({key, *(other.key for other in others)}) == 6


def test_the_key_of_a_recorded_profile_stays():
    # What was charged under this key must be found again by every later release.
    assert ChargedProfile.make(policy(), 1).key == RECORDED


@pytest.mark.slow
def test_only_private_tables_that_are_there_are_profiled(curator):
    with pytest.raises(ParameterError, match="there is no table wards") as raised:
        curator.profile(epsilon=1, tables=["wards"])
    assert raised.value.fix == "name one of visits"
    assert curator.profile(epsilon=1, tables=["Visits"]) == curator.profile(epsilon=1)


# What is read off


# An empty bin is shown with probability up to 1% at any scale of noise, so what is read off is compared with the truth
# where all noise is 0: at epsilon 800 the scale is 1/100, and one of the fewer than 1e6 draws is not 0 with probability
# below 2e6 exp(-100) < 1e-37. The last bin of a cost, from 2,048 to 4,096, then holds about 100 units.


@pytest.fixture
def exact(tmp_path, visits):
    declared = policy_of(tables(), epsilon=1000, folder=tmp_path, delta=1e-6, own={"epsilon": 1, "delta": 1e-7})
    with tacit.open(declared, data={"visits": visits}) as opened:
        yield opened


@pytest.mark.slow
def test_what_is_read_off_is_near_the_truth(exact):
    profile = exact.profile(epsilon=800)
    table = profile.table("visits")
    cost, day, sizes = table.column("cost"), table.column("day"), table.sizes
    middle = cost.histogram.quantile(Fraction(1, 2))
    # the median of exp(N(6, 1)) is e^6 = 403, in the bin from 256 to 512
    assert (middle.low, middle.high) == (256, 512) and 330 < middle.value < 480
    # one in 50 rows has no cost; of 2,000 units one row each counts, so the share varies by 0.3% and the noise
    assert 0.01 < cost.null_share.value < 0.03
    assert [(each.lower.year, each.upper.year) for each in day.histogram.shown] == [(2024, 2024), (2025, 2025)]
    # each unit has three rows
    assert [(each.lower, each.upper) for each in sizes.shown] == [(2, 4)]
    assert {key for key, _ in table.column("note").keys} == {"flu", "cold"}
    paid = dict(table.column("paid").keys)
    assert 0.2 < paid["true"] / (paid["true"] + paid["false"]) < 0.3


@pytest.mark.slow
def test_proposed_lines_can_stand_in_the_policy(exact, tmp_path):
    profile = exact.profile(epsilon=800)
    text = render_lines(propose_lines(exact.policy, profile))
    path = tmp_path / "policy.toml"
    fixed = '[privacy]\nepsilon = 1\ndelta = 1e-6\n[analysts.ada]\nepsilon = 1\n[tables.visits]\nunit = "who"\n'
    path.write_text(fixed + text.replace("[tables.visits]\n", ""))
    loaded = load(path)
    found = {column.name: column for column in loaded.table("visits").columns}
    assert loaded.table("visits").auto_up_to == 5
    assert (found["cost"].lower, found["cost"].upper) == (0, 5000)
    assert found["day"].lower == datetime.date(2024, 1, 1).toordinal()
    assert found["day"].upper == datetime.date(2025, 12, 31).toordinal()
    assert set(found["note"].values) == {"flu", "cold"}
    assert "age" not in found  # its bounds are near enough


@cache
def release_of_no_rows() -> bytes:
    return ChargedProfile.make(policy(), 1).release(plain_sql_over(policy(), []), Ones())


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1, 40, 62, -1])  # places from the middle, which stands for 0 rows
def test_a_bin_that_is_shown_by_mistake_proposes_rows_that_a_policy_may_name(size):
    loaded = policy()
    stored = json.loads(release_of_no_rows())
    (table,) = stored["tables"]
    table["sizes"][len(table["sizes"]) // 2 + size] = 500
    profile = DataProfile.decode(json.dumps(stored).encode())
    (line,) = [each.line for each in propose_lines(loaded, profile) if each.line.startswith("max_rows")]
    declared = tables(**tomllib.loads(line))
    assert 1 <= load(policy_of(declared, epsilon=10)).table("visits").auto_up_to <= 10**6


def test_what_it_takes_to_be_seen_is_known_beforehand():
    found = describe_plan(ChargedProfile.make(policy(), 1))
    assert found.to_dict()["histograms"] == 8 and found.to_dict()["noise_scale"] == 8
    assert "a bin is shown where about" in str(found)


@pytest.mark.slow
def test_bounds_that_are_to_be_filled_in_are_not_declared_in_a_draft(visits, tmp_path):
    unfilled = tables()
    unfilled["visits"]["columns"] = COLUMNS | {"cost": {"type": "float", "lower": "?", "upper": "?"}}
    draft = load(policy_of(unfilled, epsilon=10, folder=tmp_path, delta=1e-6), is_draft=True)
    assert draft.table("visits").column("cost").lower is None
    with open_policy(draft, {"visits": visits}) as opened:
        assert ChargedProfile.make(opened.policy, 1).key == RECORDED
