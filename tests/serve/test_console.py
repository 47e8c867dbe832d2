"""The console without a browser: what its pages hold, who sees them, and what no form or name can do."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import csv
import io
import itertools
import json
import logging
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from fractions import Fraction

import httpx
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.console import Page, Visitor

from tacit.accounting.filters import (
    BudgetCharge,
    BudgetStatus,
    compute_charge,
    compute_limits,
    fraction_used,
    is_admitted,
)
from tacit.accounting.interpretation import min_guessing_error
from tacit.accounting.receipt import Receipt
from tacit.answers.answer import Answer
from tacit.answers.chart import chart_column
from tacit.answers.columns import AnswerColumn, IntervalKind
from tacit.errors import Refused
from tacit.ledger.verify import check_receipt
from tacit.policy.load import load
from tacit.privacy.loss import LaplaceNoise
from tacit.query.types import Type
from tacit.sampling.bits import ReplayBits
from tacit.serve import credentials
from tacit.serve.authentication import Authenticator
from tacit.serve.console import estimate, learn_pages, view_models
from tacit.serve.console.answer_charts import draw_chart
from tacit.serve.console.distinguishing_game import DistinguishingGame
from tacit.serve.console.learn_pages import max_guessed_share, run_attacks
from tacit.serve.console.requests import CONTENT_SECURITY_POLICY, LongWork
from tacit.serve.console.sessions import AskedQuestion, ConsoleSession, SessionStore
from tacit.serve.credentials import Role
from tacit.serve.http import build_app
from tacit.serve.service import CuratorService

COUNT = "SELECT COUNT(*) AS n FROM visits"
WARDS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
HOSTILE = '<img src=x onerror="alert(1)">'
PAGES = ("ask", "budget", "learn", "owner")


@pytest.fixture(scope="module")
def ada(signed):
    return signed("ada")


@pytest.fixture(scope="module")
def olga(signed):
    return signed("olga")


@contextmanager
def unchanged(served):
    """Nothing is written to the ledger meanwhile."""
    before = served.curator.ledger.head()
    yield
    assert served.curator.ledger.head() == before


def whose(name, ada, olga):
    return olga if name == "owner" else ada


# Signing in.


def test_the_first_address_leads_to_the_form(visitor):
    someone = visitor()
    response = someone.client.get("/", follow_redirects=True)
    assert response.url.path == "/console/sign-in" and "Sign in" in response.text


def test_a_cookie_of_a_session_is_for_this_host_and_no_script(visitor, served):
    response = visitor().sign_in("ada", served.clinic.secrets["ada"].password)
    (cookie,) = [c for c in response.headers.get_list("set-cookie") if c.startswith("__Host-tacit=")]
    for part in ("HttpOnly", "Secure", "SameSite=strict", "Path=/"):
        assert part in cookie
    assert "Max-Age" not in cookie and "Domain" not in cookie
    assert len(cookie.partition("=")[2].partition(";")[0]) >= 43  # 256 bits in base 64


def test_a_wrong_name_and_a_wrong_password_are_told_in_the_same_words(visitor):
    told = []
    for name in ("ada", "nobody"):
        response = visitor().sign_in(name, "wrong")
        assert response.status_code == 401 and "__Host-tacit" not in response.headers.get("set-cookie", "")
        told.append(re.sub(r'value="\w*"', "", response.text))
    assert told[0] == told[1] and "the name or the password is wrong" in told[0]


def test_pages_are_for_those_who_signed_in(visitor):
    someone = visitor()
    for page in (*PAGES, "answers/2", "answers/2.csv", "receipts/2.json", "owner/registry.json", "nowhere"):
        response = someone.get(f"/{page}")
        assert (response.status_code, response.headers["location"]) == (303, "/console/sign-in")
    assert someone.get("/ask", **{"HX-Request": "true"}).headers["HX-Redirect"] == "/console/sign-in"


@pytest.mark.parametrize("entry", ["0", "x", "-1", "1" * 20, "1" * 5000, "\u0662", "2.5"])
@pytest.mark.parametrize("page", ["answers/{}", "answers/{}.csv", "receipts/{}.json"])
def test_an_entry_that_is_no_number_of_one_is_not_there(page, entry, visitor, ada):
    address = f"/{page.format(entry)}"
    assert visitor().get(address).status_code == 303
    assert ada.get(address).status_code == 404


def test_signing_out_ends_the_session_and_not_only_its_cookie(signed):
    ben = signed("ben")
    kept = dict(ben.client.cookies)
    assert ben.post("/sign-out").status_code == 303
    ben.client.cookies.update(kept)
    assert ben.get("/ask").status_code == 303


@pytest.mark.slow
def test_a_new_password_ends_the_sessions_of_the_old_one(visitor, served):
    made = credentials.add_credential(served.clinic.people, "vera", Role.AUDITOR)
    vera = visitor()
    assert vera.sign_in("vera", made.password).status_code == 303
    assert vera.get("/owner").status_code == 200
    credentials.rotate_credential(served.clinic.people, "vera")
    assert vera.get("/owner").status_code == 303
    credentials.revoke_credential(served.clinic.people, "vera")


def test_a_password_that_is_changed_while_it_is_checked_opens_no_session(visitor, served, monkeypatch):
    made = credentials.add_credential(served.clinic.people, "vera", Role.AUDITOR)
    check = Authenticator.by_password

    def late(self, name, password):
        found = check(self, name, password)
        credentials.rotate_credential(served.clinic.people, "vera")
        return found

    monkeypatch.setattr(Authenticator, "by_password", late)
    vera = visitor()
    (form,) = Page(vera.get("/sign-in").text).forms
    vera.token = next(field["value"] for field in form[1] if field.get("name") == "csrf")
    vera.post("/sign-in", name="vera", password=made.password)
    assert vera.get("/owner").status_code == 303  # back to the form
    credentials.revoke_credential(served.clinic.people, "vera")


def test_sessions_end_when_unused_and_when_old():
    sessions = SessionStore()
    token, now = sessions.open("ada", b""), time.monotonic()
    assert sessions.find(token, now + 7000) is not None
    assert sessions.find(token, now + 7000 + 7201) is None  # two hours unused
    token = sessions.open("ada", b"")
    assert all(sessions.find(token, now + hours * 3600) is not None for hours in range(1, 12))
    assert sessions.find(token, now + 12.1 * 3600) is None  # however much used


def test_a_session_keeps_its_newest_answers_and_always_the_last():
    session = ConsoleSession("ada", b"", "", 0.0, 0.0)
    for entry in range(1, 31):
        session.keep(AskedQuestion("SELECT 1", "1", "0.95", hostile_answer("k", "n", entry)))
    assert list(session.asked) == list(range(11, 31))
    session.keep(AskedQuestion("x" * 1_000_000, "1", "0.95", hostile_answer("k", "n", 31)))
    assert list(session.asked) == [31]


def test_one_person_cannot_push_others_out():
    sessions = SessionStore()
    mine = sessions.open("ben", b"")
    tokens = [sessions.open("ada", b"") for _ in range(2000)]
    assert sessions.find(mine) is not None
    assert [sessions.find(token) is not None for token in tokens] == [False] * 1992 + [True] * 8


# Forms.


@pytest.mark.parametrize("name", PAGES)
def test_every_form_carries_the_token(name, ada, olga):
    visit = whose(name, ada, olga)
    forms = Page(visit.get(f"/{name}").text).forms
    assert forms
    for form, fields in forms:
        assert form["method"] == "post"
        assert [field["value"] for field in fields if field.get("name") == "csrf"] == [visit.token]


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        "/ask",
        "/price",
        "/sign-out",
        "/learn/game",
        "/learn/attack",
        "/owner/verify",
        "/owner/sessions/end",
        "/owner/sessions/end-others",
    ],
)
def test_a_form_without_the_token_of_its_session_does_nothing(path, olga, ada, served, signed):
    visit = olga if path.startswith("/owner") else ada
    fields = {"sql": "SELECT COUNT(*) AS forged FROM visits", "epsilon": "0.5", "confidence": "0.95"}
    with unchanged(served):
        for token in ("", "x", signed("ben").token):
            response = visit.client.post(f"/console{path}", data={"csrf": token, **fields})
            assert response.status_code == 403 and "not of your session" in response.text
    assert visit.get("/learn").status_code == 200  # still signed in


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "http://["},  # no address
        {"Origin": "http://[::1"},
    ],
)
def test_a_form_from_elsewhere_does_nothing_even_with_the_token(headers, ada, visitor, served):
    with unchanged(served):
        response = ada.post("/ask", headers, sql="SELECT COUNT(*) AS forged FROM visits", epsilon="0.5")
        assert response.status_code == 403
    someone = visitor()
    someone.get("/sign-in")
    assert someone.post("/sign-in", headers, name="ada", password="x").status_code == 403


def test_a_form_of_this_host_is_taken(ada, served):
    headers = {"Origin": served.http, "Sec-Fetch-Site": "same-origin"}
    assert ada.post("/price", headers, sql=COUNT, epsilon="0.5").status_code == 200
    assert ada.post("/price", {"Origin": served.http}, sql=COUNT, epsilon="0.5").status_code == 200


def test_signing_in_needs_the_form_that_was_sent_to_this_browser(visitor, served):
    one, other = visitor(), visitor()
    (form,) = Page(one.get("/sign-in").text).forms
    token = next(field["value"] for field in form[1] if field.get("name") == "csrf")
    fields = {"csrf": token, "name": "ada", "password": served.clinic.secrets["ada"].password}
    assert other.client.post("/console/sign-in", data=fields).status_code == 403
    assert one.client.post("/console/sign-in", data=fields).status_code == 303


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"sql=%ff", "application/x-www-form-urlencoded"),
        (b"&".join(b"a=1" for _ in range(50)), "application/x-www-form-urlencoded"),
        (b"{}", "application/json"),
        (b"", ""),
    ],
)
def test_what_is_no_form_is_said_to_be_none(body, kind, ada):
    response = ada.client.post("/console/ask", content=body, headers={"Content-Type": kind})
    assert response.status_code == 400 and "form" in response.text


# Headers and markup.


@pytest.mark.parametrize("name", [*PAGES, "sign-in", "nowhere"])
def test_no_page_can_be_framed_or_run_what_it_did_not_bring(name, ada, olga, visitor):
    response = (visitor() if name == "sign-in" else whose(name, ada, olga)).get(f"/{name}")
    assert response.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert (
        "default-src 'self'" in CONTENT_SECURITY_POLICY
        and "frame-ancestors 'none'" in CONTENT_SECURITY_POLICY
        and "unsafe" not in CONTENT_SECURITY_POLICY
    )
    assert response.headers["x-frame-options"] == "DENY"
    assert response.headers["cache-control"] == "no-store"
    page = Page(response.text)
    assert page.open == []  # every tag is closed
    for tag, found in page.tags:
        assert tag != "style" and not any(key == "style" or key.startswith("on") for key in found)
        for place in (found.get("src"), found.get("href"), found.get("action"), found.get("formaction")):
            assert place is None or place.startswith(("/console", "#"))
        assert tag != "script" or "src" in found


@pytest.mark.parametrize("name", [*PAGES, "sign-in"])
def test_pages_can_be_heard_and_used_by_keys(name, ada, olga, visitor):
    page = Page((visitor() if name == "sign-in" else whose(name, ada, olga)).get(f"/{name}").text)
    assert page.all("html", lang="en") and len(page.all("h1")) == 1 and page.all("main")
    labels = {label["for"] for label in page.all("label")}
    for tag in ("input", "select", "textarea"):
        for field in page.all(tag):
            assert field.get("type") == "hidden" or field["id"] in labels or field.get("aria-label")
    assert all("scope" in head for head in page.all("th"))
    assert all("alt" in picture for picture in page.all("img"))
    assert all("aria-label" in drawing for drawing in page.all("svg", role="img"))
    ids = [found["id"] for _, found in page.tags if "id" in found]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "name", ["..%2fpages.py", "%2e%2e/pages.py", "../web.py", "....//web.py", "console.css%00", "/etc/passwd", ""]
)
def test_no_address_leads_out_of_the_files_that_are_served(name, visitor):
    assert visitor().client.get(f"/console/static/{name}").status_code in {303, 404}


def test_the_style_and_the_scripts_are_served_with_their_license(visitor):
    for name, kind in (
        ("console.css", "text/css"),
        ("htmx.min.js", "text/javascript"),
        ("codemirror.min.js", "text/javascript"),
        ("editor.js", "text/javascript"),
        ("mark.svg", "image/svg+xml"),
    ):
        response = visitor().client.get(f"/console/static/{name}")
        assert response.status_code == 200 and response.headers["content-type"].startswith(kind)
    assert "Zero-Clause BSD" in visitor().client.get("/console/static/htmx.LICENSE").text
    assert "Permission is hereby granted" in visitor().client.get("/console/static/codemirror.LICENSE").text


# Asking.


def test_an_answer_has_a_table_error_bars_and_a_receipt(ada):
    response = ada.ask(WARDS)
    page = Page(response.text)
    assert response.status_code == 200 and "95% interval" in page.text and "Paid epsilon 0.5 ." in page.text
    assert len(page.all("circle", **{"class": "dot"})) >= 3
    assert len(page.of_class("error-bar")) >= 9  # a line and two ends for each of three wards
    assert [found["scope"] for found in page.all("th", scope="row")].count("row") >= 3


def test_the_same_question_again_is_the_same_page_at_no_cost(ada):
    sql = "SELECT COUNT(*) AS twice FROM visits"
    first, second = (re.search(r'<span class="number">([\d,]+)</span>', ada.ask(sql).text)[1] for _ in range(2))
    assert first == second
    assert "A repeat: free." in ada.ask(sql).text
    assert "You paid for this before." in ada.ask(sql, path="/price").text
    assert "You paid for this before." not in ada.ask(sql, "0.25", path="/price").text  # another price is another one


def test_a_script_gets_only_the_parts_that_change(ada):
    whole, part = ada.ask(COUNT), ada.ask(COUNT, headers={"HX-Request": "true"})
    assert "<html" in whole.text and "<html" not in part.text
    page = Page(part.text)
    swapped = {found["id"] for _, found in page.tags if found.get("hx-swap-oob")}
    assert swapped == {"history", "left"} and page.of_class("answer")
    assert part.headers["HX-Trigger"] == "asked"


def test_the_price_is_shown_and_not_paid(ada, served):
    with unchanged(served):
        page = Page(ada.ask("SELECT COUNT(*) AS priced FROM visits", "0.25", "/price").text)
        assert "Costs epsilon 0.25" in page.text and len(page.of_class("curve")) >= 6
        # One patient has at most 2 rows in the one group: Laplace of scale 2/0.25 = 8, and 8 ln 20 = 23.97.
        assert "priced within 24" in page.text
        assert "errs at least 43.8% of the time" in page.text  # 1/(e^0.25 + 1)
        assert "Costs epsilon" in ada.get("/ask?sql=SELECT+COUNT(*)+FROM+visits").text


def test_an_accuracy_in_place_of_a_price(ada, served):
    question = {"sql": "SELECT COUNT(*) AS near FROM visits", "within": "near=24"}
    with unchanged(served):
        page = Page(ada.ask(path="/price", epsilon="9", **question).text)
        # Laplace of scale 2/epsilon is within 24 for 95%: at epsilon 0.25 it is, at 0.24 it is within 25.
        found = re.search(r"Costs epsilon ([\d.]+)", page.text)
        assert 0.24 < float(found[1]) <= 0.25 and "near within 24" in page.text
    response = ada.ask(epsilon="9", **question)
    assert response.status_code == 200 and f"Paid epsilon {found[1]}" in Page(response.text).text
    assert 'value="near=24"' in response.text
    receipt = re.search(r"/answers/(\d+)\.csv", response.text)[1]
    assert 'value="near=24"' in ada.get(f"/answers/{receipt}").text
    assert "You paid for this before" in ada.ask(path="/price", epsilon="9", **question).text


@pytest.mark.parametrize("within", ["near", "near=", "near=x", "=5", "near=0", "near=-1", "far=5", "near=1e400", ","])
def test_an_accuracy_that_is_none_is_refused(within, ada, served):
    with unchanged(served):
        sql = "SELECT COUNT(*) AS near FROM visits"
        assert ada.ask(sql, within=within).status_code in {400, 422}
        assert "Not yet a question" in ada.ask(sql, path="/price", within=within).text


def test_a_refusal_underlines_its_place_and_says_the_fix(ada, served):
    with unchanged(served):
        response = ada.ask("SELECT ward,\n  AVG(cost / age) AS x FROM visits GROUP BY ward")
    assert response.status_code == 422
    assert "<code>  <mark>AVG(cost / age)</mark> AS x FROM visits" in response.text
    assert "Line 2, column 3" in response.text and "Fix" in response.text and "Nothing was charged." in response.text


def test_what_does_not_fit_the_budget_is_said_before_and_after(ada, served):
    ada.ask(COUNT)
    with unchanged(served):
        shown = Page(ada.ask(WARDS, "1000", "/price").text).text
        assert (
            "This does not fit into what is left: at most epsilon" in shown and "Asking it would be refused." in shown
        )
        response = ada.ask("SELECT COUNT(*) AS much FROM visits", "1000")
    assert response.status_code == 402 and "own budget has" in response.text


@pytest.mark.parametrize("epsilon", ["", "x", "1e400", "-1", "0", "nan", "1/3", "9" * 40, "١"])
def test_a_price_that_is_no_number_is_no_price(epsilon, ada, served):
    with unchanged(served):
        assert ada.ask(COUNT, epsilon).status_code == 400
        assert ada.ask(COUNT, epsilon, "/price").status_code == 200
        assert ada.post("/ask", sql=COUNT, epsilon="0.5", confidence="2").status_code == 400


def test_the_history_is_that_of_the_ledger_and_only_ones_own(ada, signed):
    ada.ask("SELECT COUNT(*) AS only_ada FROM visits")
    assert "only_ada" in ada.get("/budget").text
    page = Page(signed("ada").get("/ask").text)  # another browser: the ledger has no words, only a hash
    assert "only_ada" not in page.text and re.search(r"\b[0-9a-f]{12}\b", page.text)
    assert "only_ada" not in signed("ben").get("/budget").text


def test_answers_stay_in_their_session(ada, signed):
    entry = re.search(r"/console/answers/(\d+)\.csv", ada.ask(WARDS).text)[1]
    assert "error-bar" in ada.get(f"/answers/{entry}").text
    ben = signed("ben")
    for path in (f"/answers/{entry}", f"/answers/{entry}.csv", f"/answers/{entry}.json", f"/receipts/{entry}.json"):
        assert ada.get(path).status_code == 200
        response = ben.get(path)
        assert response.status_code == 404 and "<html" in response.text


def test_a_download_is_the_answer_and_no_formula(ada, served):
    sql = 'SELECT ward, COUNT(*) AS "=1+1", AVG(cost) AS "@c" FROM visits GROUP BY ward'
    entry = re.search(r"/console/answers/(\d+)\.csv", ada.ask(sql).text)[1]
    response = ada.get(f"/answers/{entry}.csv")
    assert response.headers["content-disposition"] == f'attachment; filename="answer-{entry}.csv"'
    lines = list(csv.reader(io.StringIO(response.text)))
    assert lines[0] == ["ward", "'=1+1", "'=1+1_low", "'=1+1_high", "'@c", "'@c_low", "'@c_high"]
    assert [line[0] for line in lines[1:]] == ["A", "B", "'=C"]
    found = ada.get(f"/answers/{entry}.json").json()
    assert [str(row["=1+1"]["value"]) for row in found["rows"]] == [line[1] for line in lines[1:]]
    assert check_receipt(served.curator.ledger, ada.get(f"/receipts/{entry}.json").json()) == []
    assert ada.get(f"/answers/{entry}.exe").status_code == 404


def test_names_and_keys_are_words_and_never_markup(ada):
    alias = HOSTILE.replace('"', '""')
    keys = f"CASE WHEN age > 50 THEN '{HOSTILE}' ELSE '</td><script>alert(2)</script>' END"
    sql = f'SELECT {keys} AS "{alias}", COUNT(*) AS "</figcaption><script>alert(3)</script>" FROM visits GROUP BY 1'
    for path in ("/price", "/ask"):
        response = ada.ask(sql, "1", path)
        page = Page(response.text)
        assert response.status_code == 200 and page.open == []
        assert "<script>alert" not in response.text and HOSTILE not in response.text
        assert not any("onerror" in found for _, found in page.tags)
    assert page.text.count(HOSTILE) >= 3  # as words: the name of a column, the key of a row, the same in the drawing


def hostile_answer(key, name, entry=1):
    headings = (AnswerColumn(name, Type.TEXT, IntervalKind.NONE), AnswerColumn(name, Type.INT, IntervalKind.EXACT))
    table = pa.table({"c0": [key, key], "c1": [5, 7], "c1_low": [1, 2], "c1_high": [9, 11]})
    nothing, most_ = BudgetCharge.zero(), compute_limits(Fraction(1), Fraction(0))
    standing = BudgetStatus(nothing, most_)
    receipt = Receipt(entry, "2030-01-01T00:00:00", "ada", "k", nothing, nothing, False, standing, standing, "h")
    return Answer(table, headings, Fraction(95, 100), (), receipt)


@pytest.mark.slow
@given(st.text(max_size=30), st.text(max_size=30))
def test_a_drawing_has_the_same_tags_whatever_its_words(key, name):
    drawn = Page(draw_chart(chart_column(hostile_answer(key, name), 1)))
    plain = Page(draw_chart(chart_column(hostile_answer("A", "n"), 1)))
    assert [tag for tag, _ in drawn.tags] == [tag for tag, _ in plain.tags] and drawn.open == []
    assert [set(found) for _, found in drawn.tags] == [set(found) for _, found in plain.tags]


def points(page, kind):
    """The places of a path of a drawing, from left to right and on from there."""
    (path,) = page.of_class(kind)
    return [tuple(map(float, place.split())) for place in path["d"].strip("MZ").split("L")]


def test_days_are_a_line_through_all_estimates_in_a_band_of_their_intervals(ada):
    response = ada.ask("SELECT seen, COUNT(*) AS n FROM visits GROUP BY seen", "2")
    entry = re.search(r"/console/answers/(\d+)\.json", response.text)[1]
    rows = ada.get(f"/answers/{entry}.json").json()["rows"]
    line, band = points(Page(response.text), "trend"), points(Page(response.text), "band")
    assert len(line) == len(rows) == 365 and len(band) == 2 * 365
    assert [x for x, _ in line] == sorted(x for x, _ in line)
    # the second way: heights fall as numbers rise, by the same factor for each pair; the first and the largest fix it
    values = [row["n"]["value"] for row in sorted(rows, key=lambda row: row["seen"])]
    most, least = values.index(max(values)), values.index(min(values))
    slope = (line[most][1] - line[least][1]) / (values[most] - values[least])
    for (_, y), value in zip(line, values, strict=True):
        assert y == pytest.approx(line[least][1] + slope * (value - values[least]), abs=0.2)
    for (x, y), (above_x, above), (below_x, below) in zip(line, band[:365], reversed(band[365:]), strict=True):
        assert x == above_x == below_x and above < y < below  # down the page is smaller


def test_two_keys_are_bars_from_zero_in_groups(ada):
    page = Page(ada.ask("SELECT ward, paid, COUNT(*) AS n FROM visits GROUP BY ward, paid", "2").text)
    assert [name for name in ("A", "B", "=C") if name in page.text] and len(page.of_class("group")) == 3
    bars = page.of_class("bar")
    assert len(bars) == 6 and {bar["class"] for bar in bars} == {"bar first", "bar second"}
    assert len({bar["x"] for bar in bars if float(bar["width"][:-1]) > 1}) == 1  # all begin at zero


def test_one_value_is_a_number_with_its_interval_and_the_table_is_folded(ada):
    response = ada.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 20", "0.5")
    page = Page(response.text)
    entry = re.search(r"/console/answers/(\d+)\.json", response.text)[1]
    found = ada.get(f"/answers/{entry}.json").json()["rows"][0]["n"]
    assert len(page.of_class("single")) == 1
    assert f"95% interval: {found['low']:,} to {found['high']:,}" in page.text
    (numbers,) = page.of_class("numbers")
    assert "open" not in numbers
    (answer,) = page.of_class("answer")
    assert (
        answer["data-announce"] == f"Answered: n is {found['value']:,}, between {found['low']:,} and {found['high']:,}."
    )
    keys = Page(ada.ask("SELECT ward FROM visits GROUP BY ward").text)  # nothing to draw: the table is open
    assert "open" in keys.of_class("numbers")[0]


def test_an_accuracy_that_tells_nothing_is_said_before_it_is_paid(ada, served):
    with unchanged(served):
        # Ages are from 0 to 110. At epsilon 0.001 the count's noise has the scale 4/0.001 or more: any mean of up to
        # 10,000 rows is possible.
        page = Page(ada.ask("SELECT AVG(age) AS mean FROM visits", "0.001", "/price").text)
        assert "tells nothing about a group of 10,000 rows or fewer: the interval is all of 0 to 110" in page.text
        assert page.of_class("warn")
        # Discrete Laplace with q = e^-0.0005: 2 q^(w + 1)/(1 + q) is at most 5% from w + 1 = 5992 on.
        page = Page(ada.ask("SELECT COUNT(*) AS few FROM visits", "0.001", "/price").text)
        assert "fewer than 5,991 rows cannot be told from an empty one" in page.text and not page.of_class("warn")
        page = Page(ada.ask("SELECT AVG(age) AS mean, COUNT(*) AS n FROM visits", "10", "/price").text)
        assert "tells nothing" not in page.text and "cannot be told" not in page.text


def test_the_form_is_told_what_is_left_and_what_the_other_field_would_be(ada):
    sql = "SELECT COUNT(*) AS shared FROM visits"
    page = Page(ada.ask(sql, "0.25", "/price").text)
    (price,) = page.of_class("price")
    assert (price["data-epsilon"], price["data-within"]) == ("0.25", "shared=24")  # 8 ln 20 = 23.97
    (left,) = page.all("p", id="left")
    assert 0 < float(left["data-left"]) <= 1000 and f"{left['data-left']} of epsilon 1000 left" in page.text


def test_many_rows_are_all_in_the_download_and_the_page_says_how_many_it_leaves_out(ada):
    page = Page(ada.ask("SELECT age, COUNT(*) AS n FROM visits GROUP BY age").text)  # a row for each age from 0 to 110
    assert "the first 60 of 111 rows" in page.text
    page = Page(ada.ask("SELECT seen, COUNT(*) AS n FROM visits GROUP BY seen").text)  # a row for each day of the year
    assert "165 more rows are in the downloads" in page.text
    entry = next(found["href"] for found in page.all("a") if found["href"].endswith(".csv"))
    assert len(ada.client.get(entry).text.splitlines()) == 366


def test_logs_hold_no_question_no_password_and_no_token(ada, visitor, served, caplog):
    with caplog.at_level(logging.DEBUG, logger="tacit"):
        ada.ask("SELECT COUNT(*) AS telltale FROM visits WHERE age = 77")
        visitor().sign_in("ada", "telltale-password")
        ada.get("/answers/99999")
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "http POST /console/ask 200 ada" in text
    assert "telltale" not in text and "77" not in text and ada.token not in text and "99999" not in text


# Budgets.


@pytest.mark.slow
@given(st.fractions(Fraction(1, 50), 2), st.fractions(Fraction(1, 10), 5), st.booleans())
def test_so_many_more_questions_fit_and_not_one_more(price, cap, has_delta):
    one = compute_charge(LaplaceNoise(1 / price, 1))
    limit = compute_limits(cap, Fraction(1, 10**6) if has_delta else Fraction(0))
    spent, count = BudgetCharge.zero(), 0
    while is_admitted(spent, one, limit):
        spent, count = spent + one, count + 1
    assert estimate.count_affordable(one, BudgetStatus(BudgetCharge.zero(), limit)) == count
    assert estimate.count_affordable(one, BudgetStatus(spent, limit)) == 0
    assert fraction_used(spent, limit) <= 1 < fraction_used(spent + one, limit)


def test_the_budget_page_draws_the_past_and_counts_what_fits(ada):
    ada.ask("SELECT COUNT(*) AS drawn FROM visits")
    page = Page(ada.get("/budget").text)
    assert "All analysts together" in page.text and "more like the last one, at epsilon 0.5" in page.text
    assert (
        len(page.of_class("curve")) > 4
        and page.of_class("budget-bar")
        and "% of the budget is left" in page.of_class("budget-bar")[0]["aria-label"]
    )


# The owner's page.


def test_the_owners_page_is_for_owners_and_auditors(ada, olga, signed):
    for path in ("/owner", "/owner/registry.json"):
        assert ada.get(path).status_code == 403
        assert olga.get(path).status_code == 200
    assert ada.post("/owner/verify").status_code == 403
    assert signed("otto").get("/owner").status_code == 200


def test_the_owners_page_has_the_promise_the_remarks_and_the_ledger(olga, served):
    page = Page(olga.get("/owner").text)
    assert "by a factor of at most exp(1000)" in page.text and "privacy.epsilon" in page.text
    assert served.curator.ledger.head() in page.text and "reserve" in page.text
    assert "All in order." not in page.text
    checked = Page(olga.post("/owner/verify").text)
    assert "All in order." in checked.text and "Newest entries" in checked.text
    part = olga.post("/owner/verify", {"HX-Request": "true"})
    assert "All in order." in part.text and "<html" not in part.text


@pytest.mark.slow
def test_a_damaged_ledger_is_said_to_be_damaged_on_a_page_that_is_still_there(clinic, curator):
    curator.analyst("ada").ask(COUNT, epsilon=0.5)
    application = build_app(CuratorService(curator), Authenticator(clinic.people, curator.policy))

    async def visit():
        transport = httpx.ASGITransport(app=application)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            (form,) = Page((await client.get("/console/sign-in")).text).forms
            fields = {"csrf": form[1][0]["value"], "name": "olga", "password": clinic.secrets["olga"].password}
            assert (await client.post("/console/sign-in", data=fields)).status_code == 303
            before = Page((await client.get("/console/owner")).text)
            (form, *_) = before.forms
            with sqlite3.connect(curator.policy.books.store) as file:  # what only a thief of the file could do
                file.execute("DROP TRIGGER entries_stay")
                file.execute("UPDATE entries SET charge_epsilon = 0 WHERE kind = 'reserve'")
                file.execute("UPDATE head SET hash = previous FROM entries WHERE kind = 'commit'")
            file.close()
            after = await client.get("/console/owner")
            checked = await client.post("/console/owner/verify", data={"csrf": form[1][0]["value"]})
            return before.text, after, Page(checked.text).text

    before, after, checked = asyncio.run(visit())
    assert "reserve" in before and after.status_code == 200 and "ledger" in after.text and "Newest" not in after.text
    # what is promised is said of what is spent where the ledger can be read, and else of an empty one
    assert "at most exp(" in before and "empty ledger" not in before and "empty ledger" in after.text
    assert "The ledger is not in order" in checked and "the tables or their locks were altered" in checked


def test_two_windows_can_both_sign_in(visitor, served):
    someone = visitor()
    first, second = (Page(someone.get("/sign-in").text).forms[0][1][0]["value"] for _ in range(2))
    fields = {"name": "ben", "password": served.clinic.secrets["ben"].password}
    assert first == second
    assert someone.client.post("/console/sign-in", data={"csrf": first, **fields}).status_code == 303


def test_the_registry_entry_tells_no_question(olga, ada):
    ada.ask("SELECT COUNT(*) AS registered FROM visits")
    found = json.loads(olga.get("/owner/registry.json").text)
    assert found["relation"] == "add-remove" and found["answers"] >= 1 and "registered" not in json.dumps(found)


def test_an_owner_without_a_budget_is_told_so(olga):
    response = olga.ask(COUNT)
    assert response.status_code == 403 and "has no budget" in response.text
    assert olga.get("").headers["location"] == "/console/owner"


# Learning.


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
def test_the_best_guesser_errs_as_rarely_as_anyone_can(epsilon):
    game = DistinguishingGame(epsilon, ReplayBits(epsilon.encode()))
    rounds = 40_000
    game.play(rounds)
    # Hoeffding: off by more than sqrt(ln(2e9)/(2 * 40,000)) = 0.0164 with chance below 1e-9.
    assert abs(game.best.error - min_guessing_error(float(epsilon))) < 0.0164
    # It has power: twice the noise would be noticed.
    assert abs(game.best.error - min_guessing_error(float(epsilon) / 2)) > 0.0164


def test_a_guess_is_told_right_or_wrong_and_counted(signed):
    ben = signed("ben")
    assert "Guess where it came from." in ben.get("/learn").text
    page = Page(ben.post("/learn/game", move="with").text)
    assert re.search(r"(Right: you were in|Wrong: you were out), and it said -?\d+", page.text)
    assert re.search(r"The best guesser [\d.]+% 1,000", Page(ben.post("/learn/game", move="best").text).text)
    page = Page(ben.post("/learn/game", {"HX-Request": "true"}, move="new", epsilon="5").text)
    assert "counts at epsilon 5" in page.text and "0.7%" in page.text and not page.all("html")  # 1/(e^5 + 1)
    assert ben.post("/learn/game", move="new", epsilon="<b>").status_code == 200
    assert ben.post("/learn/game", move="nonsense").status_code == 200


@pytest.mark.slow
def test_an_attack_reads_true_and_rounded_counts_and_not_private_ones():
    raw, rounded, private = run_attacks(400, seed=1)
    assert raw.share == rounded.share == 100 and raw.blatant and not private.blatant
    # At most 73.1 of 100 on average; 95 or more has chance below 1e-7 even at that.
    assert private.share < 95
    assert max_guessed_share(1.0) == pytest.approx(0.731, abs=1e-3)


@pytest.mark.slow
def test_attacks_of_analysts_keep_no_owner_from_the_ledger(ada, olga, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(learn_pages, "run_attacks", lambda *_: ended.wait(60) and [])

    def attack(_):
        return ada.post("/learn/attack", questions="50")

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        try:
            playing = [pool.submit(attack, n) for n in range(20)]
            refused = list(itertools.islice(concurrent.futures.as_completed(playing, timeout=30), 17))
            # One of ada's runs and two wait; the others are refused, and name what can be done.
            assert {each.result().status_code for each in refused} == {503}
            assert "wait for one of them" in refused[0].result().text
            assert olga.get("/owner").status_code == 200
            assert olga.post("/owner/verify").status_code == 200
            assert olga.get("/owner/registry.json").status_code == 200
        finally:
            ended.set()
        assert sorted(each.result().status_code for each in playing) == [200] * 3 + [503] * 17


def test_of_each_person_one_long_piece_of_work_runs_and_two_wait():
    async def work():
        queue, running = LongWork(), []
        ended = asyncio.Event()

        async def run(person):
            async with queue.place(person):
                running.append(person)
                await ended.wait()

        tasks = [asyncio.create_task(run("ada")) for _ in range(4)] + [asyncio.create_task(run("olga"))]
        await asyncio.sleep(0.01)
        assert running == ["ada"] and [task.done() for task in tasks] == [False, False, False, True, False]
        with pytest.raises(Refused, match="3 of ada's"):
            await tasks[3]
        ended.set()
        await asyncio.gather(*tasks[:3], tasks[4])
        assert running == ["ada"] * 3 + ["olga"]
        await run("ada")  # and nothing is left of what was counted

    asyncio.run(work())


def test_the_attack_can_be_played(ada, served):
    with unchanged(served):
        page = Page(ada.post("/learn/attack", questions="200").text)
    assert "of 100 right" in page.text and len(page.of_class("known")) >= 200
    assert ada.post("/learn/attack", questions="1000000").status_code == 400


# The schema, and the demo.


def test_the_schema_says_bounds_and_keys_and_examples_are_answered(ada, served):
    page = Page(ada.get("/ask").text)
    assert "0 to 110" in page.text and "A, B, =C" in page.text and "2025-01-01 to 2025-12-31" in page.text
    found = view_models.example_questions(load(served.clinic.policy))
    assert len(found) == 3
    for sql in found:
        assert ada.ask(sql).status_code == 200


@pytest.mark.slow
def test_the_demo_is_served_and_says_who_may_come_in():
    command = [sys.executable, "-m", "tacit.cli.main", "demo", "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running, contextlib.ExitStack() as failing:
        failing.callback(running.kill)  # a failure does not wait for a server that nobody stops
        said = ""
        while "Stop with" not in said:
            line = running.stdout.readline()
            assert line, said
            said += line
        place = re.search(r"http://127\.0\.0\.1:\d+", said)[0]
        password = re.search(r"name ada +password (\w+)", said)[1]
        with httpx.Client(timeout=60, base_url=place) as client:
            ada = Visitor(client)
            response = ada.sign_in("ada", password)
            assert response.status_code == 303
            cookies = response.headers.get_list("set-cookie")
            assert any(cookie.startswith("tacit=") and "Secure" not in cookie for cookie in cookies)  # no TLS here
            assert "error-bar" in ada.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward").text
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
