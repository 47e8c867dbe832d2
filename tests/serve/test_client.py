"""From afar as from near: the answers, errors and prices of a served curator are those of the local one."""

from __future__ import annotations

import http.server
import json
import re
import socket
import threading
import time
from contextlib import contextmanager, suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import tacit
from tacit.client.arrow_stream import decode_answer, receipt_from_dict, receipt_to_dict
from tacit.client.remote_fit import encode_estimator, restore_estimator
from tacit.client.views import error_from_json, read_budget, read_explanation, read_schema
from tacit.errors import ErrorCode, Failed, LedgerError, ParameterError, Refused
from tacit.learn import LogisticRegression
from tacit.ledger.entries import EntryKind
from tacit.serve.fit_requests import fit_for_analyst
from tacit.serve.models import FitBody
from tacit.serve.responses import error_to_dict

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT ward, COUNT(*) AS n, SUM(cost) AS s, AVG(age) AS a FROM visits GROUP BY ward",
    "SELECT illness, COUNT(*) AS n FROM visits GROUP BY illness",
    "SELECT MEDIAN(seen) AS day, MODE(ward) AS most, TOP_K(ward, 2) AS top FROM visits",
    "SELECT ward, COUNT(*) * 2.5 AS x, COUNT(*) > 3 AS many FROM visits GROUP BY ward HAVING COUNT(*) > 10 ORDER BY x",
    'SELECT COUNT(*) AS "x", SUM(age) AS "x_low" FROM visits',
    "SELECT ward, AVG(cost) AS c FROM visits WHERE age > 200 GROUP BY ward",
]


@pytest.fixture(scope="module")
def ada(served):
    with tacit.connect(served.http, served.key("ada"), cafile=served.cafile) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("sql", QUESTIONS)
def test_an_answer_is_the_same_object_from_afar(ada, served, sql):
    far = ada.ask(sql, epsilon=0.25, confidence=0.9)
    near = served.curator.analyst("ada").ask(sql, epsilon=0.25, confidence=0.9)  # a repeat of the same
    assert far.to_arrow().equals(near.to_arrow()) and far.to_arrow(intervals=False).equals(near.to_arrow(False))
    assert far.cells() == near.cells() and far.headings == near.headings
    assert (far.notes, far.confidence, far.percent) == (near.notes, near.confidence, near.percent)
    assert far.to_pandas().equals(near.to_pandas()) and far.to_polars().equals(near.to_polars())
    assert str(far).splitlines()[:-1] == str(near).splitlines()[:-1]  # the receipts differ: one is a repeat
    assert far.receipt.cost == near.receipt.cost and far.receipt.analyst_budget.cap == near.receipt.analyst_budget.cap
    assert far.to_dict()["rows"] == near.to_dict()["rows"]
    assert receipt_from_dict(json.loads(json.dumps(receipt_to_dict(far.receipt)))) == far.receipt


def test_a_dialect_is_named_from_afar_as_from_near(ada, served):
    sql = "SELECT COUNT(*) * 0 + 7 / 2 AS x FROM visits"
    far = {dialect: ada.ask(sql, epsilon=0.01, dialect=dialect).value for dialect in (None, "postgres", "duckdb")}
    assert far == {None: 3, "postgres": 3, "duckdb": 3.5}
    assert served.curator.analyst("ada").ask(sql, epsilon=0.01, dialect="duckdb").receipt.repeat
    with pytest.raises(ParameterError, match="postgres, duckdb, bigquery, snowflake"):
        ada.explain(sql, epsilon=0.01, dialect="tsql")


def test_prices_budgets_and_schemas_read_the_same(ada, served):
    near = served.curator.analyst("ada")
    assert ada.explain(QUESTIONS[1], within={"n": 9}) == near.explain(QUESTIONS[1], within={"n": 9})
    assert ada.budget == near.budget and ada.schema == near.schema and "visits" in ada.schema.tables
    assert ada.name == "ada" and "tacit_" not in repr(ada)
    entry = ada.ask(QUESTIONS[0], epsilon=0.25).receipt.entry
    assert ada.receipt(entry)["who"] == "ada"


@pytest.mark.parametrize(
    ("sql", "price"),
    [
        ("SELECT age FROM visits", {"epsilon": 1}),
        ("SELECT COUNT(*)\nFROM visits WHERE heigth > 2", {"epsilon": 1}),
        ("SELEC", {"epsilon": 1}),
        (QUESTIONS[0], {"epsilon": -1}),
        (QUESTIONS[0], {"epsilon": 1001}),  # whatever was spent before
        (QUESTIONS[0], {}),
        (QUESTIONS[0], {"epsilon": 1, "confidence": 3}),
        (QUESTIONS[0], {"within": {"m": 1}}),
        ("SELECT AVG(age) AS a FROM visits", {"within": {"a": 1}}),
        (QUESTIONS[0], {"epsilon": "much"}),
        (QUESTIONS[0], {"epsilon": True}),
    ],
)
def test_an_error_is_the_same_error_from_afar(ada, served, sql, price):
    with pytest.raises(tacit.TacitError) as far:
        ada.ask(sql, **price)
    with pytest.raises(tacit.TacitError) as near:
        served.curator.analyst("ada").ask(sql, **price)
    assert type(far.value) is type(near.value) and far.value.code == near.value.code
    if "much" not in str(price) and "True" not in str(price):  # those do not reach the server
        assert str(far.value) == str(near.value) and far.value.at == near.value.at


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Decimal("0.25"), 0.25])
def test_a_price_may_be_any_exact_number(ada, epsilon):
    assert ada.ask(QUESTIONS[0], epsilon=epsilon).receipt.cost.text == "0.25"


def test_what_is_no_text_is_an_error(ada):
    with pytest.raises(ParameterError, match="needs text"):
        ada.ask(7, epsilon=1)
    with pytest.raises(ParameterError, match="not a name"):
        ada.ask(QUESTIONS[0], epsilon=1, request="naïve")
    with pytest.raises(ParameterError, match="epsilon"):
        ada.ask(QUESTIONS[0], epsilon=Decimal("Infinity"))


@contextmanager
def cutting(served, losses: int):
    """A line to the server that breaks so many times: the request goes through, the response does not."""
    host, port = served.http.removeprefix("https://").split(":")
    listener = socket.create_server(("127.0.0.1", 0))
    left, carriers = [losses], []

    def carry(one: socket.socket, other: socket.socket, cut: bool) -> None:
        size = 0
        try:
            while data := one.recv(65536):
                size += len(data)
                if cut and size > 3000:  # after the handshake, when the answer begins to come
                    break
                other.sendall(data)
        except OSError:
            pass
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        one.close()

    def accept() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection((host, int(port)))
            cut = left[0] > 0
            left[0] -= 1
            for pair in ((near, far, False), (far, near, cut)):
                carriers.append(threading.Thread(target=carry, args=pair))
                carriers[-1].start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for each in (thread, *carriers):
            each.join(10)


@pytest.mark.slow
def test_a_question_whose_answer_was_lost_twice_is_charged_once(served):
    sql = "SELECT " + ", ".join(f"COUNT(*) FILTER (WHERE age > {n}) AS n{n}" for n in range(12)) + " FROM visits"
    ledger = served.curator.ledger
    before = ledger.standing("ben").spent.epsilon
    with cutting(served, 2) as url, tacit.connect(url, served.key("ben"), cafile=served.cafile) as ben:
        answer = ben.ask(sql, epsilon=0.5)
    assert ledger.standing("ben").spent.epsilon - before == answer.receipt.cost.epsilon > 0
    named = [entry for entry in ledger.entries() if entry.request == answer.receipt.request]
    assert [entry.kind for entry in named] == [EntryKind.RESERVE]


def test_a_line_that_stays_broken_is_said(served):
    with socket.socket() as closed:  # nobody listens on it, nor can anybody meanwhile
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        nobody = tacit.connect(f"https://127.0.0.1:{port}", served.key("ben"), cafile=served.cafile, tries=2)
        with pytest.raises(LedgerError) as caught:
            nobody.ask(QUESTIONS[0], epsilon=1)
    assert caught.value.code == ErrorCode.LEDGER_UNREACHABLE


@pytest.mark.slow
def test_a_busy_server_is_asked_again():
    replies = [
        (503, error_to_dict(Refused(ErrorCode.BUSY, "full"))),
        (429, error_to_dict(Refused(ErrorCode.RATE, "often"))),
        (200, {"who": "ada", "own": {}, "grains": {"own": [[0] * 4] * 2, "overall": [[0] * 4] * 2}}),
    ]

    class Busy(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, found = replies.pop(0)
            data = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *words: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with tacit.connect(f"http://127.0.0.1:{server.server_port}", "tacit_1_2") as ada:
                assert ada.name == "ada"
                replies.append((200, []))
                with pytest.raises(Refused, match="protocol"):
                    _ = ada.budget
        finally:
            server.shutdown()
            thread.join()


def test_a_certificate_that_is_not_trusted_is_said(served):
    with tacit.connect(served.http, served.key("ada")) as ada, pytest.raises(ParameterError, match="not trusted"):
        _ = ada.budget


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://clinic.example:8080", "tacit_1_2"),
        ("ftp://127.0.0.1", "tacit_1_2"),
        ("clinic.example", "tacit_1_2"),
        ("https://127.0.0.1:99999", "tacit_1_2"),
        ("https://ada:secret@127.0.0.1", "tacit_1_2"),
        ("https://127.0.0.1", ""),
        ("https://127.0.0.1", "tacit\n_1"),
    ],
)
def test_what_is_no_address_or_no_key_is_an_error(url, key):
    with pytest.raises(ParameterError):
        tacit.connect(url, key)


def test_the_key_may_come_from_the_environment(served, monkeypatch):
    monkeypatch.setenv("TACIT_KEY", served.key("ben"))
    with tacit.connect(served.http, cafile=served.cafile) as ben:
        assert ben.name == "ben"


def test_a_wrong_key_is_refused(served):
    with tacit.connect(served.http, "tacit_1_2", cafile=served.cafile) as nobody, pytest.raises(Refused) as caught:
        _ = nobody.budget
    assert caught.value.code == ErrorCode.AUTHENTICATION


@pytest.mark.parametrize("found", [None, [], {}, {"error": 7}, {"error": {"code": "new"}}, {"error": {"code": "busy"}}])
def test_what_is_no_error_of_ours_is_a_protocol_error(found):
    assert error_from_json(found).code == ErrorCode.PROTOCOL


@pytest.mark.parametrize("error", [Failed(), LedgerError(ErrorCode.LEDGER, "x"), ParameterError("a", "b: c", fix="d")])
def test_errors_keep_their_class(error):
    assert type(error_from_json(error_to_dict(error))) is type(error)


def test_a_suggestion_comes_as_it_was_made():
    error = Refused(ErrorCode.TYPE, "x", fix="write 40", suggestion="SELECT COUNT(*)\nFROM visits WHERE age = 40")
    assert error_from_json(error_to_dict(error)).suggestion == error.suggestion
    assert error_from_json(error_to_dict(Refused(ErrorCode.TYPE, "x"))).suggestion is None


@pytest.mark.parametrize("data", [b"", b"{}", b"ARROW1"])
def test_what_is_no_answer_is_a_protocol_error(data):
    with pytest.raises(Refused, match="no answer"):
        decode_answer(data)


SHAPES = [
    {},
    {"tables": {"t": {}}, "neighbors": "add-remove"},
    {"who": "ada", "own": {}, "grains": {"own": [[0], [0]]}},
]


@pytest.mark.parametrize(
    "changed",
    [
        {"parameters": {"C": {"exact": "1e400000000"}}},  # a number that takes minutes to write out
        {"parameters": {"norm": [[[{}]]]}},
        {"parameters": {"nothing": 1}},
        {"released": {"shape": [1, 3], "weights": ["nan"] * 3}},
        {"released": {"shape": [9], "weights": ["0x1p+0"] * 2}},
        {"released": {"shape": [1, 2], "weights": ["0x1p+0"] * 2}},
        {"features": [{}]},
        {"method": "magic"},
    ],
)
def test_what_is_no_model_is_a_protocol_error(served, changed):
    model = LogisticRegression(missing=0, rows=200, classes=[False, True])
    form = {**encode_estimator(model), "sql": "SELECT age, paid FROM visits", "target": "paid", "epsilon": 3}
    found = fit_for_analyst(served.curator, "ada", FitBody.model_validate(form), "")
    assert restore_estimator(model, json.loads(json.dumps(found))).coef_.shape == (1, 1)
    with pytest.raises(Refused, match="no model") as error:
        restore_estimator(model, json.loads(json.dumps({**found, **changed})))
    assert error.value.code is ErrorCode.PROTOCOL


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["endless", "slow"])
def test_a_response_without_an_end_is_given_up(kind):
    class Endless(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                while True:
                    self.wfile.write(b"x" * 2**16 if kind == "endless" else b"x")
                    if kind == "slow":
                        time.sleep(0.05)

        def log_message(self, *words: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            with (
                tacit.connect(url, "tacit_1_2", timeout=0.5, tries=1) as ada,
                pytest.raises(LedgerError, match="cannot be reached"),
            ):
                _ = ada.budget
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("read", [read_budget, read_explanation, read_schema])
@pytest.mark.parametrize("found", SHAPES)
def test_what_is_of_another_shape_is_a_protocol_error(read, found):
    with pytest.raises(Refused, match=r"not of Tacit's") as error:
        read(found)
    assert error.value.code is ErrorCode.PROTOCOL


@pytest.mark.slow
def test_the_python_of_the_guide_runs(served, monkeypatch, capsys):
    page = (Path(__file__).parents[2] / "docs" / "guide" / "serving.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    monkeypatch.setenv("TACIT_KEY", served.key("ada"))
    code = code.replace("https://127.0.0.1:8080", served.http).replace("clinic.tls.pem", str(served.cafile))
    found: dict[str, object] = {}
    exec(code, found)
    found["ada"].close()
    assert "95% interval" in capsys.readouterr().out
