"""Fitting through the curator: rows of units, charges, refusals, and models that are stored."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.ledgers import spent

import tacit
from tacit.aggregates.registry import read_question as parse
from tacit.curator.curator import Curator
from tacit.curator.fit import release_fit
from tacit.curator.fit_limits import FitLimits
from tacit.curator.prepare import prepare
from tacit.curator.resources import budget_limits, open_engine
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.unit_rows import OneRowPerUnit
from tacit.errors import ErrorCode, Failed, ParameterError, Refused
from tacit.learn import Lasso, LinearRegression, LinearSVC, LogisticRegression, Ridge
from tacit.learn.feature_encoding import Feature, FeatureEncoding
from tacit.learn.minimize import fewest_declared, most_rows
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.verify import verify
from tacit.plan.scope import Scope
from tacit.policy.load import load
from tacit.sampling.bits import ReplayBits
from tacit.serve.fit_requests import MAX_FIT_ROWS

QUESTION = "SELECT age, ward, died FROM visits"
RNG = np.random.default_rng(3)
PATIENTS = 1200
AGES = RNG.integers(0, 110, PATIENTS)
# Each patient has one to three visits, at the same age, in any ward; the old ones die.
WHO = np.repeat(np.arange(PATIENTS), RNG.integers(1, 4, PATIENTS))


def frame(keep=None) -> pa.Table:
    rng = np.random.default_rng(4)
    visits = {
        "patient": WHO,
        "age": AGES[WHO],
        "cost": (20.0 + AGES[WHO]) * (1 + 0.1 * rng.random(len(WHO))),
        "ward": np.array(["A", "B", "C"])[rng.integers(0, 3, len(WHO))],
        "died": AGES[WHO] > 60,
        "grade": rng.integers(0, 5, len(WHO)),
        "day": [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(n)) for n in rng.integers(0, 300, len(WHO))],
        "note": ["x"] * len(WHO),
    }
    table = pa.table(visits)
    return table if keep is None else table.filter(pa.array(keep))


def policy(**more):
    columns = {
        "age": {"type": "int", "lower": 0, "upper": 110, "nullable": False},
        "cost": {"type": "float", "lower": 0, "upper": 150, "step": 0.01},
        "ward": {"type": "text", "values": ["A", "B", "C"]},
        "died": {"type": "bool"},
        "grade": {"type": "int", "lower": 0, "upper": 4},
        "day": {"type": "date", "lower": "2024-01-01", "upper": "2024-12-31"},
        "note": {"type": "text"},
    }
    return {
        "privacy": {"epsilon": 30, "delta": 1e-4, "delta_per_question": 1e-7, **more},
        "tables": {
            "visits": {"unit": "patient", "max_groups": 2, "max_rows_per_group": 2, "columns": columns},
            "people": {"unit": "row", "columns": {"age": columns["age"], "died": columns["died"]}},
            "wards": {"public": True, "columns": {"ward": {**columns["ward"], "unique": True}, "beds": columns["age"]}},
        },
        "analysts": {"ada": {"epsilon": 20, "delta": 5e-5}, "ben": {"epsilon": 1, "delta": 5e-5}},
    }


PEOPLE = pa.table({"age": AGES, "died": AGES > 60})
WARDS = pa.table({"ward": ["A", "B", "C"], "beds": [10, 20, 30]})


def opened(folder, data=None, seed=b"fit", **more) -> Curator:
    loaded = load(policy(**more))
    tables = {"visits": frame() if data is None else data, "people": PEOPLE, "wards": WARDS}
    return Curator(
        loaded,
        DuckDBEngine(table_schemas(loaded), None, tables),
        Ledger(folder / "ledger", budget_limits(loaded)),
        ReplayBits(seed),
    )


@pytest.fixture
def curator(tmp_path):
    with opened(tmp_path) as found:
        yield found


def logistic(**more) -> LogisticRegression:
    return LogisticRegression(**{"rows": 1200, **more})


def kinds(curator: Curator) -> list[EntryKind]:
    return [entry.kind for entry in curator.ledger.entries() if entry.kind is not EntryKind.OPEN]


@pytest.mark.slow
def test_a_model_is_learned_and_charged(curator):
    ada = curator.analyst("ada")
    model = ada.fit(logistic(), QUESTION, target="died", epsilon=8)
    rows = model.encoding_.table({"age": [20, 100], "ward": ["A", "B"]})
    assert model.predict(rows).tolist() == [False, True]
    assert model.encoding_.names == ["age", "ward=A", "ward=B", "ward=C"]
    assert 0 < spent(curator, "ada") <= 8
    assert spent(curator, "ada") > Fraction(79, 10)
    assert model.guarantee_.epsilon <= 8 and model.guarantee_.delta == Fraction(1, 10**7)
    assert model.receipt_.analyst == "ada"
    assert kinds(curator) == [EntryKind.RESERVE, EntryKind.COMMIT]
    assert verify(curator.ledger).ok


@pytest.mark.slow
def test_the_same_fit_again_is_the_same_model_and_free(curator):
    ada = curator.analyst("ada")
    first = ada.fit(logistic(), QUESTION, target="died", epsilon=2)
    paid = spent(curator, "ada")
    again = curator.fit(logistic(), QUESTION, "DIED", "ada", 2)
    assert again.coef_.tolist() == first.coef_.tolist() and again.intercept_.tolist() == first.intercept_.tolist()
    assert spent(curator, "ada") == paid
    other = ada.fit(logistic(C=3), QUESTION, target="died", epsilon=2)
    assert other.coef_.tolist() != first.coef_.tolist()
    assert spent(curator, "ada") > paid


@pytest.mark.slow
def test_nothing_is_touched_before_the_charge(curator):
    order = []
    rows, reserve = curator.engine.rows, curator.ledger.reserve
    curator.engine.rows = lambda node: order.append("rows") or rows(node)
    curator.ledger.reserve = lambda *given, **more: order.append("reserve") or reserve(*given, **more)
    curator.fit(logistic(), QUESTION, "died", "ada", 1)
    assert order == ["reserve", "rows"]


@pytest.mark.slow
def test_a_fit_beyond_the_budget_is_refused_and_costs_nothing(curator):
    with pytest.raises(Refused) as caught:
        curator.fit(logistic(), QUESTION, "died", "ben", 1.5)
    assert caught.value.code is ErrorCode.BUDGET
    assert spent(curator) == 0


def test_an_engine_that_fails_keeps_the_charge_and_says_nothing(curator):
    def broken(node: OneRowPerUnit) -> pa.Table:
        raise RuntimeError("patient 17 is odd")

    curator.engine.rows = broken
    with pytest.raises(Failed) as caught:
        curator.fit(logistic(), QUESTION, "died", "ada", 1)
    assert "17" not in str(caught.value) and caught.value.__cause__ is None and caught.value.__context__ is None
    assert spent(curator, "ada") > Fraction(9, 10)
    assert kinds(curator) == [EntryKind.RESERVE, EntryKind.FAIL]


@pytest.mark.slow
def test_a_fit_that_is_interrupted_is_charged_once(curator):
    rows = curator.engine.rows

    def stopped(node: OneRowPerUnit) -> pa.Table:
        raise KeyboardInterrupt

    curator.engine.rows = stopped
    with pytest.raises(KeyboardInterrupt):
        curator.fit(logistic(), QUESTION, "died", "ada", 1)
    paid = spent(curator, "ada")
    assert paid > 0
    curator.engine.rows = rows
    curator.fit(logistic(), QUESTION, "died", "ada", 1)
    assert spent(curator, "ada") == paid


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "question", "target"),
    [
        (logistic(), QUESTION, "died"),
        (LinearSVC(rows=1200), QUESTION, "died"),
        (logistic(classes=[0, 1]), "SELECT age, CASE WHEN cost > 80 THEN 1 ELSE 0 END AS dear FROM visits", "dear"),
        (logistic(), "SELECT age, day, ward FROM visits WHERE grade > 1", "ward"),
        (Ridge(rows=1200, missing=0), "SELECT age, grade, died, cost FROM visits", "cost"),
        (LinearSVC(rows=1200), "SELECT age, day, ward FROM visits WHERE grade > 1", "ward"),
        (Lasso(rows=1200, missing=0), "SELECT age, grade, died, cost FROM visits", "cost"),
        (LinearRegression(rows=1200, missing=0), "SELECT age, grade, died, cost FROM visits", "cost"),
        (logistic(), "SELECT v.age, w.beds, v.died FROM visits AS v JOIN wards AS w USING (ward)", "died"),
        (
            Ridge(rows=1200),
            "SELECT LEAST(COUNT(*), 10) AS n, MAX(age) AS age, LEAST(SUM(cost), 500) AS cost FROM visits "
            "GROUP BY patient",
            "cost",
        ),
        (logistic(), "SELECT age, died FROM people", "died"),
    ],
    ids=[
        *("two classes", "hinge", "derived", "three classes", "number", "hinge of three", "lasso", "squares"),
        *("public join", "of each unit", "rows are units"),
    ],
)
def test_questions_that_can_be_learned_from(curator, estimator, question, target):
    estimator.set_params(missing=0)
    model = curator.fit(estimator, question, target, "ada", 5)
    assert model.coef_.shape[-1] == len(model.encoding_.names)
    assert 0 < spent(curator, "ada") <= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "target", "code"),
    [
        ("SELECT age, note, died FROM visits", "died", ErrorCode.UNBOUNDED),
        ("SELECT age, cost, died FROM visits", "died", ErrorCode.TYPE),  # a cost may be NULL, and there is no rule
        ("SELECT age, died FROM visits", "grade", ErrorCode.UNKNOWN_COLUMN),
        ("SELECT died FROM visits", "died", ErrorCode.UNKNOWN_COLUMN),
        ("SELECT age AS x, grade AS X, died FROM visits", "died", ErrorCode.AMBIGUOUS),
        ("SELECT age, secret FROM visits", "age", ErrorCode.UNKNOWN_COLUMN),
        ("SELECT age, cost FROM visits", "cost", ErrorCode.TYPE),
        ("SELECT age, note FROM visits", "note", ErrorCode.PRIVATE_KEY),
        ("SELECT beds, ward FROM wards", "ward", ErrorCode.UNSUPPORTED),
        ("SELECT age, died FROM visits LIMIT 10", "died", ErrorCode.UNSUPPORTED),
        ("SELECT AVG(age) AS age, COUNT(*) AS n FROM visits GROUP BY ward", "n", ErrorCode.UNSUPPORTED),
        ("SELECT patient, died FROM visits", "died", ErrorCode.RAW_COLUMN),
        (
            "SELECT p.age, p.died FROM (SELECT age, died FROM people UNION ALL SELECT age, died FROM people) AS p",
            "died",
            ErrorCode.UNSUPPORTED,
        ),
        ("DROP TABLE visits", "died", ErrorCode.STATEMENT),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_proved_is_refused_at_no_cost(curator, question, target, code):
    with pytest.raises(Refused) as caught:
        curator.fit(logistic(), question, target, "ada", 1)
    assert caught.value.code is code and caught.value.fix
    assert spent(curator) == 0 and kinds(curator) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "says"),
    [
        (logistic(neighbors="replace"), "the policy protects under add-remove"),
        (logistic(bounds=(0, 1)), "bounds is not its own to say here"),
        (logistic(epsilon=3), "epsilon is not its own to say here"),
        (logistic(scaling="ranges"), "scaling is by the bounds of the policy here"),
        (logistic(bits=ReplayBits), "bits is not its own to say here"),
        (LogisticRegression(), "rows: is not declared"),
        (logistic(classes=["yes", "no"]), "are not of the target's type"),
        (object(), "a object is none that the curator knows to be private"),
        (type("Mine", (LogisticRegression,), {})(rows=10), "a Mine is none that the curator knows to be private"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_estimator_may_not_say(curator, estimator, says):
    with pytest.raises(ParameterError, match=says):
        curator.fit(estimator, QUESTION, "died", "ada", 1)
    assert spent(curator) == 0


def test_a_policy_for_replacements_is_refused(tmp_path):
    with opened(tmp_path, neighbors="replace") as curator, pytest.raises(Refused, match="under add-remove"):
        curator.fit(logistic(neighbors="replace"), QUESTION, "died", "ada", 1)


@pytest.mark.slow
def test_an_engine_without_rows_is_refused(curator):
    class Counting:
        def run(self, aggregation):
            raise AssertionError

        def close(self):
            pass

    inner, curator.engine = curator.engine, Counting()
    with pytest.raises(Refused, match="where DuckDB holds the data"):
        curator.fit(logistic(), QUESTION, "died", "ada", 1)
    curator.engine = inner
    assert spent(curator) == 0


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["age > 200", "ward = 'Z'"])
def test_no_rows_are_learned_from_like_any_other(curator, condition):
    # Whether there are rows is private, so this may not be an error.
    model = curator.fit(logistic(), f"{QUESTION} WHERE {condition}", "died", "ada", 1)
    assert model.coef_.shape == (1, 4)


@pytest.mark.slow
def test_labels_outside_the_classes_are_left_out_without_a_word(curator):
    model = curator.fit(logistic(classes=[0, 1, 2]), "SELECT age, grade FROM visits", "grade", "ada", 1)
    assert model.classes_.tolist() == [0, 1, 2]


def rows_of(curator: Curator, question: str, salt: str = "salt") -> list[tuple]:
    """What would be learned from."""
    relation = Scope(curator.policy).subquery(parse(question))
    columns = tuple(field.bound.scalar for field in relation.fields)
    table = curator.engine.rows(OneRowPerUnit(relation.rows, None, relation.unit, columns, salt))
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.slow
def test_one_row_of_each_unit_is_kept_and_no_other_moves(tmp_path):
    # Taking out one patient takes out one row, whichever it is.
    question = "SELECT age, cost, ward FROM visits"
    for folder in ("all", *map(str, range(5))):
        (tmp_path / folder).mkdir()
    with opened(tmp_path / "all") as whole:
        everyone = rows_of(whole, question)
        assert len(everyone) == PATIENTS
        assert rows_of(whole, question, "other") != everyone
    for gone in range(5):
        with opened(tmp_path / str(gone), frame(gone != WHO)) as less:
            left = rows_of(less, question)
        assert len(left) == PATIENTS - 1
        assert set(left) < set(everyone)


def test_the_row_that_is_kept_is_chosen_fairly(tmp_path):
    # A patient with visits in wards A, B and C: over salts each is kept a third of the time. 3,000 patients: the
    # deviation is sqrt(3000 * 2/9) = 25.8, and 6.1 of them are a chance of 1e-9.
    many = pa.table(
        {
            "patient": np.repeat(np.arange(3000), 3),
            **{name: [None] * 9000 for name in ("cost", "died", "day", "note")},
            "age": [50] * 9000,
            "grade": [1] * 9000,
            "ward": ["A", "B", "C"] * 3000,
        }
    )
    types = {"cost": pa.float64(), "died": pa.bool_(), "day": pa.date32(), "note": pa.string()}
    for name, kind in types.items():
        many = many.set_column(many.schema.get_field_index(name), name, many[name].cast(kind))
    with opened(tmp_path, many) as curator:
        kept = [row[0] for row in rows_of(curator, "SELECT ward FROM visits")]
    for ward in "ABC":
        assert abs(kept.count(ward) - 1000) < 6.2 * 25.8


@pytest.mark.slow
def test_a_prepared_copy_gives_the_same_rows(tmp_path):
    (tmp_path / "data").mkdir()
    for name, table in (("visits", frame()), ("people", PEOPLE), ("wards", WARDS)):
        pq.write_table(table, tmp_path / "data" / f"{name}.parquet")
    source = {"source": str(tmp_path / "data")}
    plain = load({**policy(), "data": source})
    copied = load({**policy(), "data": {**source, "prepared": str(tmp_path / "prepared")}})
    prepare(copied, lambda *_: None)
    found = []
    for loaded in (plain, copied):
        (tmp_path / str(len(found))).mkdir()
        books = Ledger(tmp_path / str(len(found)) / "ledger", budget_limits(loaded))
        with Curator(loaded, open_engine(loaded), books, ReplayBits(b"copy")) as curator:
            found.append(rows_of(curator, "SELECT age, cost, ward, died, day FROM visits"))
    assert found[0] == found[1]


def test_integers_beyond_a_double_are_rounded_and_no_error():
    # An error would tell that there is such a row: 2^53 + 1 is no double.
    table = Feature("big", 0, 2.0**61).numbers(pa.array([2**53 + 1, None, 3]))
    assert table[[0, 2], 0].tolist() == [2**53, 3]


def test_features_are_read_by_what_is_declared():
    day = datetime.date(2024, 3, 1)
    known = FeatureEncoding(
        (
            Feature("day", 0, 1e6),
            Feature("ward", 0, 1, ("A", "B", "else"), "else"),
            Feature("well", 0, 1, (False, True)),
            Feature("grade", 0, 1, (1, 2)),
        )
    )
    table = known.table({"day": [day, None], "ward": ["Z", None], "well": [True, False], "grade": [2, 7]})
    assert table[0].tolist() == [day.toordinal(), 0, 0, 1, 0, 1, 0, 1]
    assert np.isnan(table[1, 0]) and table[1, 1:].tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert known.norm == 2  # four columns, each of at most 1 when scaled
    with pytest.raises(ParameterError, match="there is no ward"):
        known.table({"day": []})


@pytest.mark.slow
def test_the_price_is_the_one_that_was_named(curator):
    # Gaussian noise is planned for a little less, so that the ledger charges 3 and not 3.2.
    for method in ("output", "objective", "gradient", "newton"):
        before = spent(curator, "ada")
        model = curator.fit(logistic(method=method), QUESTION, "died", "ada", 3)
        charged = spent(curator, "ada") - before
        assert Fraction(299, 100) < charged <= 3
        assert model.guarantee_.epsilon <= 3


@pytest.mark.slow
def test_a_delta_may_be_named_and_a_large_one_is_warned_of(curator):
    model = curator.analyst("ada").fit(logistic(), QUESTION, target="died", epsilon=1, delta=1e-6)
    assert model.guarantee_.delta == Fraction(1, 10**6)
    with pytest.warns(UserWarning, match="publishing a row at random would satisfy it"):
        curator.analyst("ada").fit(logistic(rows=100_000), QUESTION, target="died", epsilon=1, delta=1e-5)


@pytest.mark.slow
def test_the_public_door_is_tacit_open(tmp_path):
    given = {**policy(), "ledger": {"store": str(tmp_path / "books"), "witness": str(tmp_path / "witness")}}
    with tacit.open(given, data={"visits": frame(), "people": PEOPLE, "wards": WARDS}) as curator:
        model = curator.analyst("ada").fit(logistic(), QUESTION, target="died", epsilon=8)
        rows = model.encoding_.table({"age": list(range(0, 110, 5)), "ward": ["A"] * 22})
        assert np.mean(model.predict(rows) == (np.arange(0, 110, 5) > 60)) > 0.7


@pytest.mark.parametrize("missing", [0, 1])
def test_how_many_rows_there_are_decides_of_no_fit(tmp_path, missing):
    # With a person more or less: were the true number compared with any limit, an analyst could move it there by the
    # number of columns, and a model of a tiny epsilon would tell whether the person is in the data.
    data = frame()
    with opened(tmp_path, data.slice(0, len(data) - missing)) as curator:
        for rows in (1, 1198, 1199, 1200, 1201):
            limits = FitLimits(rows=rows, cells=2 * rows)  # the age, and a constant beside it
            model = LogisticRegression(missing=0, rows=1200)
            ages = "SELECT age, died FROM visits"
            release_fit(model, ages, "died", "ada", curator, Fraction(rows, 10**6), 1e-7, limits=limits)
            with pytest.raises(Refused) as caught:
                release_fit(model, ages, "died", "ada", curator, 1, 1e-7, limits=replace(limits, cells=2 * rows - 1))
            assert caught.value.code is ErrorCode.TOO_LARGE


def test_a_method_is_proved_for_all_rows_that_a_server_is_made_for(tmp_path):
    # The proof of a minimizer is for a multiple of the declared rows, which an analyst chooses: for few of them it is
    # for 2^20 or more. What a server is made for is the owner's number.
    ages = "SELECT age, died FROM visits"
    enough = most_rows(1)
    assert enough >= 2**20 > MAX_FIT_ROWS and fewest_declared(enough + 1) == 2**14 + 1
    with opened(tmp_path) as curator:
        for method in ("output", "objective"):
            model = LogisticRegression(missing=0, rows=1, method=method, C=1.0)
            release_fit(model, ages, "died", "ada", curator, 1, 1e-7, limits=FitLimits(rows=enough))
            release_fit(model, ages, "died", "ada", curator, 1, 1e-7, limits=FitLimits(rows=enough + 1))  # it is paid
            with pytest.raises(Refused) as caught:
                release_fit(model, ages, "died", "ada", curator, 2, 1e-7, limits=FitLimits(rows=enough + 1))
            assert caught.value.code is ErrorCode.TOO_LARGE and "rows=16_385," in caught.value.fix
            model.set_params(rows=2**14 + 1)
            release_fit(model, ages, "died", "ada", curator, 1, 1e-7, limits=FitLimits(rows=enough + 1))
        other = LogisticRegression(missing=0, rows=1, method="gradient")
        release_fit(other, ages, "died", "ada", curator, 1, 1e-7, limits=FitLimits(rows=10**10))


def test_a_fit_that_was_paid_for_is_free_whatever_limits_are_now(tmp_path):
    model, ages = LogisticRegression(missing=0, rows=1200), "SELECT age, died FROM visits"
    with opened(tmp_path) as curator:
        release_fit(model, ages, "died", "ada", curator, 1, 1e-7)
        paid = spent(curator, "ada")
        for limits in (FitLimits(features=0), FitLimits(classes=0), FitLimits(rows=10**9, cells=1)):
            _, claim = release_fit(model, ages, "died", "ada", curator, 1, 1e-7, limits=limits)
            assert claim.receipt.repeat and spent(curator, "ada") == paid
            with pytest.raises(Refused):  # what ada has paid for is hers
                release_fit(model, ages, "died", "ben", curator, 1, 1e-7, limits=limits)
