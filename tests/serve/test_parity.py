"""One body of tests for an analyst of an open curator and for one who is connected to it: what both can do is equal."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as PlainRegression
from tests.support.command import run_command

import tacit
from tacit.accounting.filters import GRAINS_PER_EPSILON
from tacit.errors import Refused, TacitError
from tacit.learn import ElasticNet, HistGradientBoostingClassifier, KMeans, LinearSVC, LogisticRegression, Ridge
from tacit.serve import fit_requests, response_models
from tacit.serve.response_models import (
    AnswerBody,
    BudgetBody,
    ExplanationBody,
    FitResultBody,
    SchemaBody,
    StoredReceiptBody,
)

pytestmark = pytest.mark.slow
WARDS = "SELECT ward, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY ward"
COUNT = "SELECT COUNT(*) AS n FROM visits"
ROWS = "SELECT age, ward, paid FROM visits"
PARAMETERS = {"missing": 0, "rows": 200}
FIT = {"estimator": "LogisticRegression", "parameters": PARAMETERS, "sql": ROWS, "target": "paid", "epsilon": 3}


@pytest.fixture(scope="module")
def near(served):
    return served.curator.analyst("ada")


@pytest.fixture(scope="module", params=["near", "far"])
def ada(request, served, near):
    if request.param == "near":
        yield near
        return
    with tacit.connect(served.http, served.key("ada"), cafile=served.cafile) as opened:
        yield opened


FILTERED = "SELECT ward, COUNT(*) AS n FROM visits WHERE age > $1 AND seen < $2 AND ward = ANY($3) GROUP BY ward"
WRITTEN = FILTERED.replace("$1", "30").replace("$2", "DATE '2025-07-01'").replace("= ANY($3)", "IN ('A', '=C')")


def test_a_question_with_parameters_is_the_question_with_its_values_written_out(ada, served):
    before = float(served.curator.analyst("ada").budget.to_dict()["own"]["spent"])
    first = ada.ask(FILTERED, parameters=[30, datetime.date(2025, 7, 1), ["A", "=C"]], epsilon=0.5)
    again = ada.ask(FILTERED, [30, "2025-07-01", ["A", "=C"]], epsilon=0.5)  # a text beside a date is a date
    plain = ada.ask(WRITTEN, epsilon=0.5)
    assert first.to_arrow() == again.to_arrow() == plain.to_arrow()
    assert first.receipt.entry == again.receipt.entry == plain.receipt.entry
    assert float(served.curator.analyst("ada").budget.to_dict()["own"]["spent"]) <= before + 0.5
    explained = ada.explain(FILTERED, parameters=[30, "2025-07-01", ["A", "=C"]], epsilon=0.5)
    assert str(explained) == str(ada.explain(WRITTEN, epsilon=0.5))


def test_a_value_is_never_read_as_sql(ada):
    for text in ("A' OR 1=1 --", "A'; DROP TABLE visits; --", "\\' OR TRUE --"):
        count = ada.ask("SELECT COUNT(*) AS n FROM visits WHERE ward = $1", parameters=[text], epsilon=1).value
        assert abs(count) < 60  # no row has that ward: noise of scale 2 is beyond with probability e^-30 = 1e-13
    with pytest.raises(tacit.ParameterError, match=r"there is no value for \$2: 1 were given"):
        ada.ask("SELECT COUNT(*) FROM visits WHERE ward = $2", parameters=["A"], epsilon=1)


def read_cells(html: str) -> list[str]:
    """The texts of the cells of a table, by the standard library's own parser."""
    found: list[str] = []

    class Reader(HTMLParser):
        inside = False

        def handle_starttag(self, tag: str, attributes: object) -> None:
            self.inside = tag in {"td", "th"}
            if self.inside:
                found.append("")

        def handle_data(self, data: str) -> None:
            if self.inside:
                found[-1] += data

        def handle_endtag(self, tag: str) -> None:
            self.inside = False

    Reader().feed(html)
    return found


def test_questions_in_sql_and_by_ibis_are_one(ada):
    visits = ada.table("visits")
    assert visits.columns == ("age", "cost", "ward", "seen", "paid", "illness", "patient")
    expression = visits.group_by("ward").agg(n=visits.count())
    answer = ada.ask(expression, epsilon=0.25)
    assert answer["ward"] == ["A", "B", "=C"] and answer.receipt.cost.text == "0.25"
    assert ada.ask(expression, epsilon=0.25).receipt.charged.epsilon == 0
    assert ada.explain(expression, epsilon=0.25).epsilon == 0.25
    with pytest.raises(Refused, match="there is no table nowhere") as refusal:
        ada.table("nowhere")
    assert refusal.value.fix == "the tables are visits"


def test_an_answer_is_drawn_and_saved(ada, tmp_path):
    answer = ada.ask(WARDS, epsilon=0.25)
    assert "<svg" in answer.plot()._repr_svg_() and repr(answer.plot()) == answer.chart()
    assert list(tmp_path.iterdir()) == []  # nothing is written unless a file is named
    assert answer.plot(tmp_path / "n.png") is None and (tmp_path / "n.png").stat().st_size > 1000
    assert list(answer.to_pandas(intervals=False)["ward"]) == ["A", "B", "=C"]


def test_what_may_be_seen_is_equal_in_every_form(ada, near):
    for seen, local in [
        (ada.schema, near.schema),
        (ada.budget, near.budget),
        (ada.explain(WARDS, epsilon=0.5), near.explain(WARDS, epsilon=0.5)),
        (ada.explain(WARDS, epsilon=1000), near.explain(WARDS, epsilon=1000)),
        (ada.explain("SELECT illness, COUNT(*) FROM visits GROUP BY 1", epsilon=1),) * 2,
    ]:
        assert str(seen) == str(local) and seen.to_dict() == local.to_dict()
        assert seen._repr_html_() == local._repr_html_()
    assert ada.explain(WARDS, epsilon=1000).refused.code == "budget"
    assert ada.explain("SELECT MEDIAN(age) AS m, COUNT(*) AS n FROM visits", epsilon=1).columns[1].name == "n"
    assert ada.budget.own.spent == near.budget.own.spent


def test_what_a_notebook_shows_holds_the_facts(ada):
    cells = read_cells(ada.schema._repr_html_())
    assert cells[:3] == ["column", "type", "values"] and cells[3:6] == ["age", "int", "from 0 to 110"]
    budget = ada.budget
    own = budget.to_dict()["own"]
    assert read_cells(budget._repr_html_())[4:8] == ["ada", own["spent"], own["cap"], own["remaining"]]
    assert read_cells(ada.explain(COUNT, epsilon=0.5)._repr_html_())[2:4] == [
        "n",
        "within 12 of the bounded value, 95% of the time",  # 2 rows of a patient at epsilon 0.5: scale 4, ln(20) 4 = 12
    ]
    receipt = ada.ask(COUNT, epsilon=0.25).receipt
    assert str(receipt.entry) in read_cells(receipt._repr_html_())


def test_a_profile_that_was_released_is_seen(ada, near, served):
    profile = served.curator.profile(epsilon=0.5)
    assert ada.schema == near.schema and ada.schema.profile.tables == profile.tables
    assert str(profile) in str(ada.schema)


@pytest.mark.parametrize(
    "sql", ["SELECT age FROM visits", "SELECT COUNT(*)\nFROM visit", "SELEC", "SELECT heigth FROM visits"]
)
def test_a_refusal_is_short_in_a_notebook(ada, sql):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.user_ns |= {"ada": ada, "sql": sql}
    shown: list[str] = []
    shell._showtraceback = lambda kind, error, lines: shown.extend(lines)
    result = shell.run_cell("x = 1\nada.ask(sql, epsilon=1)", store_history=False)
    assert isinstance(result.error_in_exec, Refused)
    assert shown == ["line 2: ada.ask(sql, epsilon=1)", *str(result.error_in_exec).split("\n")]
    assert len(shown) <= 7


FITS = [
    (LogisticRegression, {}, "SELECT age, cost, ward, paid FROM visits", "paid"),
    (LogisticRegression, {"C": 2.5, "classes": ["A", "B", "=C"]}, "SELECT age, cost, ward FROM visits", "ward"),
    (LinearSVC, {"classes": np.array([False, True])}, "SELECT age, paid FROM visits", "paid"),
    (LinearSVC, {"classes": ["A", "B", "=C"]}, "SELECT age, cost, ward FROM visits", "ward"),
    (ElasticNet, {"alpha": 0.1, "l1_ratio": 0.25}, "SELECT age, seen, ward, cost FROM visits", "cost"),
    (Ridge, {"target_bounds": (0, 50)}, "SELECT age, seen, ward, cost FROM visits", "cost"),
]


@pytest.mark.parametrize(("kind", "parameters", "sql", "target"), FITS)
def test_a_model_is_the_same_wherever_it_is_fitted(ada, near, kind, parameters, sql, target):
    model = ada.fit(kind(missing=0, rows=200, **parameters), sql, target=target, epsilon=3)
    local = near.fit(kind(missing=0, rows=200, **parameters), sql, target=target, epsilon=3)
    assert local.receipt_.repeat and type(model) is kind
    assert np.array_equal(model.coef_, local.coef_) and np.array_equal(model.intercept_, local.intercept_)
    rows = {"age": [3, None], "cost": [9.5, 80], "ward": ["A", "B"], "seen": [datetime.date(2025, 5, 1)] * 2}
    assert (model.predict(model.encoding_.table(rows)) == local.predict(local.encoding_.table(rows))).all()
    assert (model.guarantee_, model.loss_, model.method_) == (local.guarantee_, local.loss_, local.method_)
    assert model.encoding_ == local.encoding_ and model.receipt_.cost == local.receipt_.cost


def test_networks_are_the_same_wherever_they_are_fitted(ada, near):
    estimators = pytest.importorskip("tacit.learn.torch.estimators", exc_type=ImportError)
    network = estimators.MLPClassifier(missing=0, rows=200, hidden_layer_sizes=(3,), epochs=2)
    sql = "SELECT age, cost, ward, paid FROM visits"
    model, local = (analyst.fit(network, sql, target="paid", epsilon=2, delta=1e-9) for analyst in (ada, near))
    rows = model.encoding_.table({"age": [3, None], "cost": [9.5, 80], "ward": ["A", "B"]})
    assert local.receipt_.repeat and model.predict_proba(rows).tolist() == local.predict_proba(rows).tolist()
    assert (model.guarantee_, model.loss_) == (local.guarantee_, local.loss_)


def test_trees_are_the_same_wherever_they_are_fitted(ada, near):
    trees = HistGradientBoostingClassifier(missing=0, rows=200, max_iter=5, max_bins=31)
    sql = "SELECT age, cost, ward, paid FROM visits"
    model, local = (analyst.fit(trees, sql, target="paid", epsilon=2) for analyst in (ada, near))
    assert local.receipt_.repeat and model.export_text(4) == local.export_text(4)
    rows = model.encoding_.table({"age": [3, None], "cost": [9.5, 80], "ward": ["A", "B"]})
    assert model.predict_proba(rows).tolist() == local.predict_proba(rows).tolist()
    assert (model.guarantee_, model.loss_, model.method_) == (local.guarantee_, local.loss_, local.method_)


@pytest.mark.parametrize(
    ("estimator", "sql", "target", "epsilon"),
    [
        (LogisticRegression(missing=0, rows=200), "SELECT age, illness, paid FROM visits", "paid", 1),
        (LogisticRegression(missing=0, rows=200), "SELECT age, paid FROM visits", "weight", 1),
        (LogisticRegression(missing=0, rows=200), "SELECT age, paid FROM visits", "paid", 1000),
        (LogisticRegression(missing=0, rows=200, bounds=(0, 1)), "SELECT age, paid FROM visits", "paid", 1),
        (LogisticRegression(missing=0, rows=200, neighbors="replace"), "SELECT age, paid FROM visits", "paid", 1),
        (LogisticRegression(C="much", rows=200), "SELECT age, paid FROM visits", "paid", 1),
        (KMeans(), "SELECT age, paid FROM visits", "paid", 1),
        (PlainRegression(), "SELECT age, paid FROM visits", "paid", 1),
    ],
)
def test_a_fit_is_refused_alike(ada, near, estimator, sql, target, epsilon):
    before = near.budget
    with pytest.raises(TacitError) as refusal:
        ada.fit(estimator, sql, target=target, epsilon=epsilon)
    with pytest.raises(TacitError) as local:
        near.fit(estimator, sql, target=target, epsilon=epsilon)
    assert type(refusal.value) is type(local.value) and refusal.value.code == local.value.code
    assert refusal.value.fix and near.budget == before


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"estimator": "BaseEstimator"}, "none that is fitted here"),
        ({"estimator": "__import__"}, "none that is fitted here"),
        ({"parameters": {"__class__": 1}}, "has no '__class__'"),
        ({"parameters": {"bits": "system"}}, "bits is not its own to say here"),
        ({"parameters": {"C": [[1]]}}, "protocol"),
        ({"parameters": {"classes": ["x" * 2000]}}, "protocol"),
        ({"parameters": {**PARAMETERS, "C": 1e400}}, "parameter"),
        ({"parameters": {**PARAMETERS, "norm": 10**400}}, "of another type, or too large"),
        ({"parameters": {**PARAMETERS, "scaling": []}}, "scaling is by the bounds"),
        (
            {"estimator": "HistGradientBoostingClassifier", "parameters": {**PARAMETERS, "learning_rate": 10**400}},
            "of another type, or too large",
        ),
        ({"parameters": {**PARAMETERS, "classes": 5}}, "is not a list"),
        ({"parameters": {**PARAMETERS, "classes": list(range(51))}}, "51 classes, and a server takes 50 at most"),
        (
            {"estimator": "HistGradientBoostingClassifier", "parameters": {**PARAMETERS, "max_iter": 500}},
            "1,000 levels",
        ),
        ({"estimator": "Ridge", "parameters": {"rows": 200, "fit_intercept": 1e400}}, "protocol"),
        ({"dialect": "tsql"}, "postgres, duckdb, bigquery, snowflake"),
        ({"epsilon": "1/0"}, "divides by zero"),
        ({"target": 3}, "protocol"),
    ],
)
def test_no_request_for_a_fit_does_more_than_fit(client, served, changed, what):
    body = {"estimator": "LogisticRegression", "sql": "SELECT age, paid FROM visits", "target": "paid", "epsilon": 1}
    before = served.curator.ledger.overall()
    found = client.post(
        "/v1/fit",
        content=json.dumps({**body, **changed}),
        headers={"Authorization": f"Bearer {served.key('ada')}", "Content-Type": "application/json"},
    )
    assert found.status_code in {400, 422} and what in found.text
    assert served.curator.ledger.overall() == before


def test_a_fit_of_too_many_numbers_is_refused_by_public_ones(served, monkeypatch):
    monkeypatch.setattr(fit_requests, "LIMITS", replace(fit_requests.LIMITS, features=3))
    with tacit.connect(served.http, served.key("ben"), cafile=served.cafile) as ben:
        before = ben.budget.own.spent.epsilon
        with pytest.raises(Refused, match="make 4 features, and a server takes 3"):  # ward has three keys
            ben.fit(
                LogisticRegression(missing=0, rows=200), "SELECT age, ward, paid FROM visits", target="paid", epsilon=1
            )
        assert ben.budget.own.spent.epsilon == before
        monkeypatch.setattr(
            fit_requests, "LIMITS", replace(fit_requests.LIMITS, cells=399_999)
        )  # the age, and a constant beside it
        model = LogisticRegression(missing=0, rows=200)
        with pytest.raises(Refused, match="make 2 numbers a row, and a server that is made for 200,000 rows takes 1"):
            ben.fit(model, "SELECT age, paid FROM visits", target="paid", epsilon=1)
        assert ben.budget.own.spent.epsilon == before
        monkeypatch.setattr(fit_requests, "LIMITS", replace(fit_requests.LIMITS, cells=400_000))
        ben.fit(model, "SELECT age, paid FROM visits", target="paid", epsilon=1)
        # noise by rho is charged a little less than the epsilon that was named
        assert 0.99 < (ben.budget.own.spent.epsilon - before) / GRAINS_PER_EPSILON <= 1


@pytest.fixture(scope="module")
def spec(client):
    return client.get("/openapi.json").json()


@pytest.mark.parametrize(
    ("method", "path", "body", "model"),
    [
        ("POST", "/v1/ask", {"sql": WARDS, "epsilon": 0.25}, AnswerBody),
        (
            "POST",
            "/v1/ask",
            {"sql": "SELECT MEDIAN(seen), TOP_K(ward, 2) FROM visits", "epsilon": 0.25},
            AnswerBody,
        ),
        ("POST", "/v1/explain", {"sql": WARDS, "epsilon": 1000}, ExplanationBody),
        ("POST", "/v1/fit", FIT, FitResultBody),
        ("GET", "/v1/budget", None, BudgetBody),
        ("GET", "/v1/schema", None, SchemaBody),
        ("GET", "/v1/receipts/{entry}", None, StoredReceiptBody),
    ],
)
def test_responses_are_what_the_openapi_says(client, served, spec, method, path, body, model):
    headers = {"Authorization": f"Bearer {served.key('ada')}"}
    entry = client.post("/v1/ask", json={"sql": COUNT, "epsilon": 0.25}, headers=headers).json()["receipt"]["entry"]
    found = client.request(method, path.format(entry=entry), json=body, headers=headers).json()
    content = spec["paths"][path][method.lower()]["responses"]["200"]["content"]
    assert content["application/json"]["schema"] == {"$ref": f"#/components/schemas/{model.__name__}"}
    model.model_validate_json(json.dumps(found), strict=True)
    # every field that is sent is described, and every field that is required is sent
    fields = model.model_fields
    assert set(found) <= set(fields) and {name for name, field in fields.items() if field.is_required()} <= set(found)


def test_every_table_and_column_of_the_schema_is_described(client, served):
    found = client.get("/v1/schema", headers={"Authorization": f"Bearer {served.key('ada')}"}).json()
    for table in found["tables"].values():
        assert set(table) <= set(response_models.TableBody.model_fields)
        for column in table["columns"].values():
            assert set(column) <= set(response_models.ColumnBody.model_fields)


def run(*arguments: object, key: str = "") -> subprocess.CompletedProcess[str]:
    return run_command(*arguments, TACIT_KEY=key, COLUMNS="100")


def run_process(*arguments: object, key: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tacit", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env={"TACIT_KEY": key, "COLUMNS": "100"}
    )


def test_the_commands_of_an_analyst_work_at_a_server(served, near):
    far = ("--server", served.http, "--cafile", served.cafile)
    key = served.key("ada")
    for way in (run, run_process):
        assert way("schema", *far, key=key).stdout == f"{near.schema}\n"
    assert run("budget", *far, key=key).stdout == f"{near.budget}\n"
    found = run("explain", WARDS, "--epsilon", 0.5, *far, "--json", key=key)
    assert json.loads(found.stdout) == json.loads(json.dumps(near.explain(WARDS, epsilon=0.5).to_dict()))
    found = run("ask", COUNT, "--epsilon", 0.5, *far, "--chart", key=key)
    again = near.ask(COUNT, epsilon=0.5)
    assert found.returncode == 0 and found.stdout.splitlines()[:3] == str(again).splitlines()[:3]
    assert again.receipt.repeat and "●" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "what"),
    [
        (["ask", "SELECT age FROM visits", "--epsilon", "1"], 3, "refused [raw-column]"),
        (["ask", COUNT, "--epsilon", "1", "--as", "ada"], 2, "the key says who asks"),
        (["budget", "--as", "ben"], 2, "the key says who asks"),
    ],
)
def test_mistakes_at_a_server_are_those_at_home(served, arguments, status, what):
    found = run(*arguments, "--server", served.http, "--cafile", served.cafile, key=served.key("ada"))
    assert found.returncode == status and what in found.stderr and "fix:" in found.stderr
    assert "tacit_" not in found.stderr


def test_a_server_that_is_not_known_is_an_error(served):
    found = run("schema", "--server", served.http, key=served.key("ada"))  # its certificate is its own
    assert found.returncode == 2 and "not trusted" in found.stderr
    found = run("schema", "--server", served.http, "--cafile", served.cafile)
    assert found.returncode == 2 and "TACIT_KEY" in found.stderr


def test_a_notebook_asks_a_server(served, monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("TACIT_KEY", served.key("ada"))
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "tacit")
    far = shell.run_line_magic("tacit", f"{served.http} --cafile {served.cafile}")
    assert repr(far).startswith(f"<Analyst ada at {served.http}: ada has spent")
    answer = shell.run_cell_magic("tacit", "--epsilon 0.25", COUNT)
    assert answer.receipt.analyst == "ada" and repr(far).endswith(f"{far.budget}>")
    with pytest.raises(TacitError, match="the key says who asks"):
        shell.run_line_magic("tacit", f"{served.http} --cafile {served.cafile} --as ada")
    monkeypatch.setenv("TACIT_KEY", "tacit_wrong_key")
    with pytest.raises(TacitError, match="authentication"):
        shell.run_line_magic("tacit", f"{served.http} --cafile {served.cafile}")
    assert shell.run_cell_magic("tacit", "--epsilon 0.25", COUNT).receipt.repeat  # the one before stays open
    far.close()
