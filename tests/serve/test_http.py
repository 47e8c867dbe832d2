"""The curator over HTTP: forms of answers, statuses of errors, who may see what, and no 500 whatever is sent."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

from tacit.answers.answer import Answer
from tacit.answers.columns import AnswerColumn, IntervalKind
from tacit.client import arrow_stream
from tacit.errors import DataError, ErrorCode, Failed, LedgerError, ParameterError, PolicyError, Refused
from tacit.ledger.verify import check_receipt
from tacit.query.types import Type
from tacit.serve.metrics import Metrics
from tacit.serve.responses import (
    encode_json,
    error_to_dict,
    escape_formula,
    http_status,
    negotiate_media_type,
    render_answer,
)

COUNT = "SELECT COUNT(*) AS n FROM visits"
WARDS = 'SELECT ward, COUNT(*) AS n, AVG(cost) AS "-c" FROM visits GROUP BY ward'


@pytest.fixture(scope="module")
def ask(client, served):
    """Posts a question as someone, with headers."""

    def post(sql=COUNT, who="ada", path="/v1/ask", headers=None, **fields):
        fields = {"epsilon": 0.5} | fields if "within" not in fields else fields
        given = {"Authorization": f"Bearer {served.key(who)}", **(headers or {})}
        return client.post(path, json={"sql": sql, **fields}, headers=given)

    return post


@pytest.fixture(scope="module")
def get(client, served):
    def fetch(path, who="ada", **params):
        return client.get(path, headers={"Authorization": f"Bearer {served.key(who)}"}, params=params)

    return fetch


@pytest.mark.slow
def test_an_answer_in_json_has_rows_intervals_and_a_receipt(ask, served):
    response = ask(WARDS)
    assert response.status_code == 200 and response.headers["content-type"] == "application/json"
    found = response.json()
    assert [row["ward"] for row in found["rows"]] == ["A", "B", "=C"]
    assert found["rows"][0]["n"]["low"] < found["rows"][0]["n"]["value"] < found["rows"][0]["n"]["high"]
    assert found["types"][:2] == [{"name": "ward", "type": "text"}, {"name": "n", "type": "int"}]
    assert found["receipt"]["who"] == "ada" and found["confidence"] == 0.95
    assert response.headers["Tacit-Entry"] == str(found["receipt"]["entry"])
    assert check_receipt(served.curator.ledger, found["receipt"]) == []


def test_the_same_answer_in_csv_arrow_and_text(ask):
    first = ask(WARDS).json()
    lines = list(csv.reader(io.StringIO(ask(WARDS, headers={"Accept": "text/csv"}).text)))
    # What could be read as a formula has a quote before it: the name -c and the key =C.
    assert lines[0] == ["ward", "n", "n_low", "n_high", "'-c", "'-c_low", "'-c_high"]
    assert [line[0] for line in lines[1:]] == ["A", "B", "'=C"]
    assert [int(line[1]) for line in lines[1:]] == [row["n"]["value"] for row in first["rows"]]
    with pa.ipc.open_stream(ask(WARDS, headers={"Accept": arrow_stream.ARROW_STREAM}).content) as stream:
        table = stream.read_all()
    assert table.column("n").to_pylist() == [row["n"]["value"] for row in first["rows"]]
    assert table.column_names[:4] == ["ward", "n", "n_low", "n_high"]
    assert "95% interval" in ask(WARDS, headers={"Accept": "text/plain"}).text


def test_a_media_type_that_is_not_offered_is_said_before_anything_is_paid(ask, get):
    before = get("/v1/budget").json()
    response = ask("SELECT COUNT(*) AS unpaid FROM visits WHERE age > 7", headers={"Accept": "image/png"})
    assert (response.status_code, response.json()["error"]["code"]) == (406, "protocol")
    assert get("/v1/budget").json() == before


def test_an_idempotency_key_is_charged_once_and_is_one_question(ask, get):
    name, sql = str(uuid4()), "SELECT SUM(age) AS x FROM visits WHERE paid"
    spent = float(get("/v1/budget", "ben").json()["own"]["spent"])
    one, two = (ask(sql, "ben", headers={"Idempotency-Key": name}).json() for _ in range(2))
    assert one["rows"] == two["rows"] and one["receipt"]["entry"] == two["receipt"]["entry"]
    assert two["receipt"]["request"] == name
    assert float(get("/v1/budget", "ben").json()["own"]["spent"]) == spent + 0.5
    other = ask(COUNT, "ben", headers={"Idempotency-Key": name})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "request")


@pytest.mark.parametrize("name", [b"\xe9\xa0\x9f", b"x" * 201, b"a\tb"])
def test_what_is_no_name_of_a_question_is_said(client, served, name):
    headers = [(b"Authorization", f"Bearer {served.key('ada')}".encode()), (b"Idempotency-Key", name)]
    response = client.post("/v1/ask", json={"sql": COUNT, "epsilon": 0.5}, headers=headers)
    assert response.status_code == 400


def test_an_exact_price_may_be_text(ask):
    assert ask(epsilon="1/4").json()["receipt"]["answer_epsilon"] == "0.25"
    assert ask(epsilon="0.25").json()["receipt"]["answer_epsilon"] == "0.25"


def test_parameters_are_values_of_the_question(ask):
    text = "SELECT COUNT(*) AS n FROM visits WHERE age > $1 AND seen >= $2 AND ward = ANY($3) AND paid = $4"
    given = [20, "2025-02-01", ["A", "it's"], True]
    found = ask(text, parameters=given).json()
    written = text.replace("$1", "20").replace("$2", "DATE '2025-02-01'").replace("$4", "TRUE")
    again = ask(written.replace("= ANY($3)", "IN ('A', 'it''s')")).json()
    assert again["rows"] == found["rows"] and again["receipt"]["entry"] == found["receipt"]["entry"]
    repeated = ask(text, parameters=given, headers={"Accept": "application/vnd.apache.arrow.stream"})
    assert arrow_stream.decode_answer(repeated.content).receipt.entry == found["receipt"]["entry"]
    explained = ask(text, path="/v1/explain", parameters=given)
    assert explained.status_code == 200 and explained.json()["text"]


def test_explaining_is_free_and_within_is_a_price(ask, get):
    before = get("/v1/budget").json()
    found = ask(path="/v1/explain", within={"n": 9}).json()
    assert found["columns"][0]["error"] <= 9 and "costs epsilon" in found["text"]
    assert get("/v1/budget").json() == before


def test_explaining_more_than_what_is_left_says_so(ask):
    ask(epsilon=1)
    found = ask(path="/v1/explain", epsilon=1000).json()
    assert found["refused"]["code"] == "budget" and found["refused"]["fix"].startswith("ask for at most epsilon=")
    assert "asking it would be refused now: it costs epsilon 1000" in found["text"]
    assert ask(path="/v1/explain", epsilon=0.001).json()["refused"] is None


def test_the_schema_and_the_budget_are_those_of_the_curator(get, served):
    local = served.curator.analyst("ada")
    found = get("/v1/schema").json()
    assert found.pop("text") == str(local.schema) and found == json.loads(encode_json(local.schema.to_dict()))
    found = get("/v1/budget").json()
    assert (found.pop("text"), found.pop("remaining")) == (str(local.budget), local.budget.remaining)
    assert found.pop("grains") == local.budget.to_grains()
    assert found == local.budget.to_dict()


def test_the_schema_shows_the_profile_that_was_released_last(get, served):
    profile = served.curator.profile(epsilon=0.5)
    found = get("/v1/schema").json()
    assert found["profile"] == json.loads(encode_json(profile.to_dict()))
    assert str(profile) in found["text"]


def test_a_receipt_can_be_had_again_and_verified(ask, get, served):
    answer = ask("SELECT COUNT(*) AS n FROM visits WHERE age > 20").json()["receipt"]
    found = get(f"/v1/receipts/{answer['entry']}").json()
    assert found["answered"] and check_receipt(served.curator.ledger, found) == []
    assert {
        name: answer[name] for name in ("entry", "time", "who", "key", "head", "signature")
    }.items() <= found.items()
    again = ask("SELECT COUNT(*) AS n FROM visits WHERE age > 20").json()["receipt"]
    assert (again["repeat"], again["charged_epsilon"]) == (True, "0")
    assert check_receipt(served.curator.ledger, again) == []
    repeat = again["entry"]  # the charge that paid for it
    assert get(f"/v1/receipts/{repeat}").json() == found
    assert get(f"/v1/receipts/{repeat}", "otto").status_code == get(f"/v1/receipts/{repeat}", "olga").status_code == 200
    hidden, missing = get(f"/v1/receipts/{repeat}", "ben"), get("/v1/receipts/999999", "ben")
    assert hidden.status_code == missing.status_code == 404
    words = hidden.json()["error"]["what"].replace(str(repeat), "999999")
    assert words == missing.json()["error"]["what"]  # what is another's and what is not there read the same


def test_roles_see_what_is_theirs(ask, get):
    assert get("/metrics").status_code == get("/v1/budget", analyst="ben").status_code == 403
    assert get("/metrics", "otto").status_code == get("/v1/budget", "otto", analyst="ben").status_code == 200
    assert get("/v1/budget", "otto", analyst="zoe").status_code == 403
    refused = ask(who="olga")  # the owner is not in the policy, so has no budget
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "unknown-analyst")


def test_metrics_count_and_tell_nothing_of_questions(ask, get):
    ask("SELECT COUNT(*) AS supercalifragilistic FROM visits", epsilon=0.123)
    ask("SELECT nonsuch FROM visits")
    text = get("/metrics", "otto").text
    assert 'tacit_requests_total{route="/v1/ask",status="200"}' in text
    assert 'tacit_errors_total{code="unknown-column"}' in text
    for word in ("supercali", "nonsuch", "0.123", "ada", "visits"):
        assert word not in text


def test_health_needs_no_key(client):
    assert client.get("/healthz").text == "ok\n"


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"sql": "SELEC 1"}, 400, "syntax"),
        ({"sql": ""}, 400, "syntax"),
        ({"sql": "SELECT age FROM visits"}, 422, "raw-column"),
        ({"sql": "SELECT COUNT(*) FROM nowhere"}, 422, "unknown-table"),
        ({"sql": "DROP TABLE visits"}, 422, "statement"),
        ({"sql": "SELECT SUM(age * 1e300) FROM visits"}, 422, "overflow"),
        ({"epsilon": -1}, 400, "parameter"),
        ({"epsilon": "a lot"}, 400, "parameter"),
        ({"epsilon": "1/0"}, 400, "parameter"),
        ({"epsilon": "1/00"}, 400, "parameter"),
        ({"epsilon": True}, 400, "protocol"),
        ({"epsilon": None}, 400, "parameter"),
        ({"epsilon": 1, "within": {"n": 3}}, 400, "parameter"),
        ({"within": {}}, 400, "parameter"),
        ({"confidence": 2}, 400, "parameter"),
        ({"colour": "red"}, 400, "protocol"),
        ({"sql": 7}, 400, "protocol"),
        ({"parameters": [1]}, 400, "parameter"),
        ({"parameters": 7}, 400, "protocol"),
        ({"parameters": [{"sql": 1}]}, 400, "protocol"),
        ({"parameters": [[[1]]]}, 400, "protocol"),
        ({"parameters": ["x" * 1001]}, 400, "protocol"),
        ({"epsilon": 1000}, 402, "budget"),
    ],
)
def test_statuses_of_errors(ask, fields, status, code):
    ask()  # the budget is 1,000, as is the largest price: now less is left
    response = ask(**{"sql": "SELECT SUM(cost) AS n FROM visits", **fields})
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert set(response.json()["error"]) - {"suggestion"} == {"code", "kind", "what", "at", "fix"}


def test_a_fix_that_is_code_is_told_as_a_whole_question(ask):
    assert "suggestion" not in ask("SELECT AVG(heigth) AS n FROM visits").json()["error"]
    suggestion = ask("SELECT COUNT(*) AS n FROM visits WHERE age = '40'").json()["error"]["suggestion"]
    assert suggestion == "SELECT COUNT(*) AS n FROM visits WHERE age = 40"
    assert ask(suggestion).status_code == 200


def test_the_place_of_an_error_is_told(ask):
    at = ask("SELECT COUNT(*)\nFROM visits WHERE heigth > 2").json()["error"]["at"]
    assert (at["line"], at["column"], at["length"], at["excerpt"]) == (2, 19, 6, "FROM visits WHERE heigth > 2")


@pytest.mark.parametrize(
    "sent", [b"", b"{", b"[]", b"null", b'"x"', b"[" * 200_000, b'{"sql": "\\ud800", "epsilon": 1}', b"\xff", b"NaN"]
)
def test_a_body_that_is_no_question_is_a_protocol_error(client, served, sent):
    headers = {"Authorization": f"Bearer {served.key('ada')}", "Content-Type": "application/json"}
    response = client.post("/v1/ask", content=sent, headers=headers)
    assert response.status_code == 400 and response.json()["error"]["code"] in {"protocol", "syntax"}


@pytest.mark.parametrize("kind", [{}, {"Content-Type": "application/x-www-form-urlencoded"}])
def test_a_body_that_is_not_sent_as_json_is_told_how(client, served, kind):
    headers = {"Authorization": f"Bearer {served.key('ada')}", **kind}
    response = client.post("/v1/ask", content=json.dumps({"sql": COUNT, "epsilon": 0.5}), headers=headers)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "protocol")
    assert (error["what"], error["fix"]) == ("the body is not sent as JSON", "send Content-Type: application/json")


def test_numbers_that_json_should_not_have_are_parameters(client, served):
    headers = {"Authorization": f"Bearer {served.key('ada')}", "Content-Type": "application/json"}
    for number in ("NaN", "Infinity", "1e999", "1" + "0" * 400):
        content = f'{{"sql": "{COUNT}", "epsilon": {number}}}'
        assert client.post("/v1/ask", content=content, headers=headers).status_code == 400


def test_unknown_addresses_and_methods(client, get):
    assert get("/v1/nothing").json()["error"]["code"] == "not-found"
    assert client.get("/v1/ask").status_code == 405
    assert get("/v1/receipts/0").status_code == get("/v1/receipts/x").status_code == 400
    assert get("/v1/receipts/9223372036854775807").status_code == 404


def test_the_openapi_names_every_route(client):
    found = client.get("/openapi.json").json()
    assert set(found["paths"]) >= {
        *("/v1/ask", "/v1/explain", "/v1/schema", "/v1/budget", "/v1/receipts/{entry}", "/healthz", "/metrics")
    }


@pytest.mark.slow
def test_schemathesis_finds_no_500(served, full, tmp_path):
    import subprocess
    import sys

    environment = os.environ | {"SCHEMATHESIS_HOOKS": str(Path(__file__).parent / "schemathesis_hooks.py")}
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{served.http}/openapi.json"),
        *("-H", f"Authorization: Bearer {served.key('ben')}", "--tls-verify", str(served.cafile)),
        *("--checks", "not_a_server_error", "--phases", "examples,coverage,fuzzing" if full else "examples,fuzzing"),
        *("--max-examples", "200" if full else "2", "--seed", "1", "--no-color"),
        *("--request-timeout", "20"),
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout[-3000:]


# The pieces


def test_every_kind_of_error_has_a_status():
    assert http_status(Failed()) == 500
    assert http_status(LedgerError(ErrorCode.LEDGER_BUSY, "x")) == http_status(Refused(ErrorCode.BUSY, "x")) == 503
    assert http_status(ParameterError("x", "y")) == 400
    assert http_status(PolicyError(ErrorCode.POLICY, "x")) == http_status(DataError(ErrorCode.DATA, "x")) == 422
    assert all(400 <= http_status(Refused(code, "x")) < 600 for code in ErrorCode)


def test_the_guide_has_the_status_of_every_code():
    page = (Path(__file__).parents[2] / "docs" / "guide" / "serving.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| ([\d, ]+) \| (.*) \|$", page, re.MULTILINE))
    for code in ErrorCode:
        kind = LedgerError if code.startswith("ledger") else Refused
        status = http_status(kind(code, "x"))
        told_here = {int(number): words for numbers, words in table.items() for number in numbers.split(", ")}
        assert status in told_here
        if status not in {422, 503}:
            assert f"`{code}`" in told_here[status]
    assert "`busy`" in table["503"] and "every code of the ledger" in table["503"]


def test_where_the_ledger_lies_is_not_told():
    error = LedgerError(ErrorCode.LEDGER_DISK, "/secret/place/clinic.ledger cannot be read", fix="check /secret")
    assert "secret" not in json.dumps(error_to_dict(error))


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/*", "text/csv"),
        ("text/csv;q=0.5, application/json;q=0.4", "text/csv"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "application/json"),
        ("TEXT/PLAIN", "text/plain"),
    ],
)
def test_what_is_accepted(accept, media):
    assert negotiate_media_type(accept) == media


@pytest.mark.parametrize("accept", ["image/png", "text/csv;q=0", "text/csv;q=x", ",", "application/json;q=2"])
def test_what_is_not_accepted(accept):
    with pytest.raises(Refused):
        negotiate_media_type(accept)


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "  =1", "\tx", "\rx", "\nx"),
        *("\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20SUM(A1)", "\ufe661", "\u22121"),  # full width, small, minus
        *("\u00a0=1", "\u3000=1", "\u200b=1", "\ufeff=1", "\u202e=1", "\x1f=1", '"=1'),  # after what is not seen
    ],
)
def test_what_begins_like_a_formula_is_quoted(text):
    assert escape_formula(text) == f"'{text}"


@pytest.mark.parametrize("separator", [";", ",", "\t", "|", "\n", "\r", "\uff1b", "\u2028"])
@pytest.mark.parametrize("formula", ["=1+1", " +1", "\u00a0-1", "\uff20A1", '"=1'])
def test_no_part_of_a_text_is_a_formula_whatever_a_spreadsheet_separates_by(separator, formula):
    # A spreadsheet in another language cuts a line at semicolons, so a;=1+1 is two cells there.
    assert escape_formula(f"a{separator}{formula}") == f"a{separator}'{formula}"
    assert escape_formula(f"{separator}{formula}").endswith(f"'{formula}")


@pytest.mark.parametrize("text", ["", "a", "a;b", "2025-01-31", "x = y", "a-b, c+d", "Ärzte & Pflege", "3 @ 4"])
def test_other_text_stays_as_it_is(text):
    assert escape_formula(text) == text


def test_numbers_in_csv_stay_numbers_and_infinities_leave_json(ask):
    receipt = arrow_stream.decode_answer(ask(headers={"Accept": arrow_stream.ARROW_STREAM}).content).receipt
    columns = {"c0": [-5], "c0_low": [-9.5], "c0_high": [float("inf")], "c1": [["=a", "b"]]}
    headings = (
        AnswerColumn("x", Type.FLOAT, IntervalKind.EXACT),
        AnswerColumn("k", Type.TEXT, IntervalKind.NONE, many=True),
    )
    answer = Answer(pa.table(columns), headings, 0.5, (), receipt)
    assert render_answer(answer, "text/csv").decode().splitlines()[1] == "-5,-9.5,inf,'=a; b"
    assert json.loads(render_answer(answer, "application/json"))["rows"] == [
        {"x": {"value": -5, "low": -9.5, "high": None, "bars": "exact"}, "k": ["=a", "b"]}
    ]


def test_the_histogram_counts_every_response_once():
    metrics = Metrics()
    for seconds in (0.001, 0.03, 5000.0):
        metrics.count("/v1/ask", 200, seconds)
    lines = metrics.text(seats_taken=2).splitlines()
    assert 'tacit_response_seconds_bucket{le="0.02"} 1' in lines
    assert 'tacit_response_seconds_bucket{le="0.04"} 2' in lines
    assert 'tacit_response_seconds_bucket{le="+Inf"} 3' in lines and "tacit_seats_taken 2" in lines
