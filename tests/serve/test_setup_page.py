"""The owner's page: who may see it, what it shows, and what it writes. Its application runs here, over ASGI."""

from __future__ import annotations

import asyncio
import random
import re
import shlex
from fractions import Fraction
from pathlib import Path

import httpx
import pytest

from tacit.curator.preview import preview_answer
from tacit.engines import duckdb
from tacit.engines.source_columns import SourceColumn
from tacit.engines.source_rows import SourceRows
from tacit.policy.load import load, load_text
from tacit.policy.model import Type
from tacit.policy.template import StarterChoices, render_template
from tacit.serve.console import setup_preview, setup_server
from tacit.serve.console.setup_pages import FEWEST_PEOPLE
from tacit.serve.console.setup_preview import SetupSource, list_next_steps, make_preview
from tacit.serve.console.setup_server import SetupServer

pytestmark = pytest.mark.slow

HOST = "127.0.0.1:4711"
ORIGIN = f"http://{HOST}"


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    """400 orders of 100 customers: 60 of them in the north, one alone at sea; amounts 0 to 99."""
    draw, folder = random.Random(5), tmp_path_factory.mktemp("shop")
    lines = ["order_id,customer_id,email,region,amount,ordered_at"]
    for number in range(400):
        customer = number % 100
        region = "at sea" if number == 7 else "north" if customer < 60 else "south"
        lines.append(
            f"{number},{customer},p{customer}@x.org,{region},{draw.randrange(100)},2025-01-{1 + number % 28:02d}"
        )
    (folder / "orders.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def orders(shop):
    """The shop's table and its rows, which keep what was found out about them: no page changes them."""
    tables = duckdb.read_columns(shop / "orders.csv")
    rows = SourceRows(shop / "orders.csv", tables)
    yield tables, rows
    rows.close()


@pytest.fixture
def made(shop, orders, tmp_path, monkeypatch):
    """A page that would write to a folder of the test, and ends at once."""
    monkeypatch.setattr(setup_server, "_LAST_PAGE", 0.0)
    source = SetupSource(str(shop / "orders.csv"), tmp_path / "tacit.toml", *orders)
    return SetupServer(source, StarterChoices(), 4711)


class Browser:
    """Requests to a page, one after the other, with the cookies of one browser."""

    def __init__(self, page: SetupServer) -> None:
        self.page, self.cookies, self.place, self.csrf = page, {}, "", ""
        self.app = page.build_app()

    def send(self, method, path, *, host=HOST, data=None, headers=None):
        async def once():
            transport = httpx.ASGITransport(self.app, client=("127.0.0.1", 50000))
            async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, cookies=self.cookies) as client:
                return await client.request(method, path, data=data, headers={"host": host, **(headers or {})})

        return asyncio.run(once())

    def open(self):
        answered = self.send("GET", self.page.address.removeprefix(ORIGIN))
        assert answered.status_code == 303, answered.text
        self.place = answered.headers["location"]
        self.cookies = dict(answered.cookies)
        shown = self.send("GET", self.place)
        self.csrf = re.search(r'name="csrf" value="([^"]+)"', shown.text)[1]
        return shown

    def post(self, path="", headers=None, **fields):
        form = {
            "csrf": self.csrf,
            "person": "customer_id",
            "epsilon": "1",
            "analyst": "ada",
            "ask": "0.25",
            "use-0-3": "1",
            "use-0-4": "1",
            "use-0-5": "1",
        }
        form = {name.replace("_", "-"): value for name, value in (form | fields).items() if value is not None}
        return self.send("POST", self.place + path, data=form, headers=headers)


@pytest.fixture
def browser(made):
    return Browser(made)


@pytest.fixture(scope="module")
def opened(shop, orders, tmp_path_factory):
    """The browser of a page that is open, in which nothing is written."""
    source = SetupSource(str(shop / "orders.csv"), tmp_path_factory.mktemp("opened") / "tacit.toml", *orders)
    browser = Browser(SetupServer(source, StarterChoices(), 4711))
    browser.open()
    yield browser
    assert browser.page.written is None and not source.policy.exists()


def test_the_address_opens_once_and_the_cookie_from_then_on(browser):
    shown = browser.open()
    assert shown.status_code == 200 and "A policy for" in shown.text
    again = browser.send("GET", browser.page.address.removeprefix(ORIGIN))
    assert again.status_code == 401 and "opens once" in again.text
    assert browser.send("GET", browser.place).status_code == 200
    browser.cookies = {}
    assert browser.send("GET", browser.place).status_code == 401


def test_the_cookie_is_for_this_page_alone(browser):
    answered = browser.send("GET", browser.page.address.removeprefix(ORIGIN))
    cookie = answered.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert f"path={answered.headers['location'].lower()}" in cookie and len(answered.headers["location"]) > 25


def test_without_the_token_nothing_opens(browser):
    for token in ("", "?token=", "?token=wrong", "?token=%F0%9F%98%80"):
        assert browser.send("GET", f"/console/open{token}").status_code == 401
    assert browser.open().status_code == 200  # and the right one still does


@pytest.mark.parametrize("host", ["evil.example", "evil.example:4711", "127.0.0.1", "127.0.0.1:80", "[::1]:4711", ""])
def test_another_host_is_refused_everywhere(opened, host):
    for path in (opened.place, "/console/open", "/console/static/console.css", "/"):
        answered = opened.send("GET", path, host=host)
        assert answered.status_code == 403 and "email" not in answered.text


def test_localhost_is_this_host(opened):
    assert opened.send("GET", opened.place, host="localhost:4711").status_code == 200


@pytest.mark.parametrize(
    ("headers", "fields"),
    [
        ({}, {"csrf": ""}),
        ({}, {"csrf": "x" * 43}),
        ({"sec-fetch-site": "cross-site"}, {}),
        ({"sec-fetch-site": "same-site"}, {}),  # another port of this machine
        ({"origin": "http://127.0.0.1:9999"}, {}),
    ],
)
def test_a_form_from_elsewhere_does_nothing(opened, headers, fields):
    for path in ("", "/preview"):
        answered = opened.post(path, headers, action="write", confirm="1", **fields)
        assert answered.status_code == 403
    assert not opened.page._source.policy.exists() and opened.page.written is None


def test_no_page_is_kept_or_framed_or_runs_what_is_not_here(browser):
    shown = browser.open()
    assert shown.headers["cache-control"] == "no-store"
    assert shown.headers["x-frame-options"] == "DENY"
    assert "default-src 'self'" in shown.headers["content-security-policy"]
    assert shown.headers["referrer-policy"] == "same-origin"
    assert "<script>" not in shown.text and "style=" not in shown.text and "onclick" not in shown.text


@pytest.mark.parametrize("name", ["../setup_server.py", "..%2Frequests.py", "%2e%2e/__init__.py", "console.css/.."])
def test_no_path_leads_to_another_file(browser, name):
    assert browser.send("GET", f"/console/static/{name}").status_code == 404


def test_what_names_somebody_is_not_shown_and_rare_values_are_not_offered(browser):
    shown = browser.open().text
    assert "@x.org" not in shown
    offered = re.findall(r'name="key-0-3" value="([^"]+)"', shown)
    assert offered == ["north", "south"]  # one order was made at sea
    assert f"fewer than {FEWEST_PEOPLE} people" in shown and "at sea" not in shown


def test_nothing_of_the_data_is_in_the_policy_until_it_is_chosen(browser):
    text = browser.open().text.partition('class="policy-text"')[2]
    assert "north" not in text and "lower = 0, upper = 99" not in text
    chosen = browser.post("/preview", **{"key-0-3": "north", "lower-0-4": "0", "upper-0-4": "50"}).text
    policy = chosen.partition('class="policy-text"')[2]
    assert "values = [&#34;north&#34;]" in policy and "lower = 0, upper = 50" in policy


def test_figures_are_those_that_tacit_check_says(browser, shop, tacit_check):
    browser.open()
    chosen = {"key-0-3": "north", "lower-0-4": "0", "upper-0-4": "50"}
    shown = browser.post("/preview", **chosen).text
    lines = (shop / "orders.csv").read_text().splitlines()[1:]
    outside = sum(int(line.split(",")[4]) > 50 for line in lines)
    other = sum(line.split(",")[3] != "north" for line in lines)
    assert other == 4 * 40 + 1
    assert f"{outside} of 400 rows" in shown and f"{other} of 400 rows" in shown
    assert browser.post(action="write", confirm="1", **chosen).status_code == 200
    told = tacit_check(browser.page._source.policy)
    assert f"{outside} of 400 values" in told and f"{other} of 400 values" in told


@pytest.fixture
def tacit_check():
    from tacit.cli.check import _check_data

    return lambda path: "\n".join(each.text for each in _check_data(load(path))[0])


def test_what_cannot_be_read_is_said_beside_its_field_and_not_written(opened):
    shown = opened.post("/preview", epsilon="lots", **{"lower-0-4": "9", "upper-0-4": "1"}).text
    assert "must be a number above 0" in shown and "write two whole numbers" in shown
    refused = opened.post(action="write", confirm="1", epsilon="lots")
    assert refused.status_code == 400 and "cannot be read" in refused.text
    assert not opened.page._source.policy.exists()


def test_the_policy_is_written_once_it_is_confirmed_and_the_page_ends(browser, made, tmp_path):
    browser.open()
    assert browser.post(action="write").status_code == 400
    assert not (tmp_path / "tacit.toml").exists()
    done = browser.post(action="write", confirm="1")
    assert done.status_code == 200 and "The policy is written" in done.text
    assert made.written is not None and made.ended.is_set()
    policy = load(tmp_path / "tacit.toml")
    assert policy.tables[0].unit == "customer_id"
    assert [column.name for column in policy.tables[0].columns] == ["region", "amount", "ordered_at"]
    ended = browser.send("GET", browser.place)
    assert ended.status_code == 404 and "ended" in ended.text


def test_a_policy_that_is_there_stays(browser, tmp_path):
    browser.open()
    (tmp_path / "tacit.toml").write_text("# mine\n")
    refused = browser.post(action="write", confirm="1")
    assert refused.status_code == 400 and "exists already" in refused.text
    assert (tmp_path / "tacit.toml").read_text() == "# mine\n"


def test_names_are_words_and_never_markup(tmp_path):
    source = tmp_path / "t.csv"
    source.write_text('"<script>alert(1)</script>",b\n' + "x<i>,1\n" * 60)
    tables = duckdb.read_columns(source)
    page = SetupServer(
        SetupSource("t.csv", tmp_path / "n.toml", tables, SourceRows(source, tables)), StarterChoices(), 4711
    )
    shown = Browser(page).open().text
    assert "<script>alert" not in shown and "x<i>" not in shown and "x&lt;i&gt;" in shown


def test_a_database_shows_names_and_types_alone(tmp_path, shop):
    tables = duckdb.read_columns(shop / "orders.csv")
    source = SetupSource("postgresql://db/shop", tmp_path / "n.toml", tables, None)
    shown = Browser(SetupServer(source, StarterChoices(), 4711)).open().text
    assert "only names and types are read here" in shown and "different" not in shown


def test_a_preview_is_the_answer_that_an_analyst_would_get(shop, orders, tmp_path):
    # epsilon 100 with public keys: noise of scale 1/100 rounds to none, of 4 * 60 - 1 and 4 * 40 orders
    tables, rows = orders
    choices = StarterChoices(person="row", epsilon=Fraction(400), keys={("orders", "region"): ("north", "south")})
    text = render_template(str(shop / "orders.csv"), tables, choices)
    sql = "SELECT region, COUNT(*) AS n FROM orders GROUP BY region"
    answer = preview_answer(load_text(text, tmp_path / "n.toml"), rows.load_frames(["orders"]), sql, 100)
    assert answer.to_pandas()["n"].tolist() == [239, 160]
    assert list(tmp_path.iterdir()) == []  # nothing is charged anywhere


def test_a_preview_leaves_the_ledger_of_the_policy_alone(shop, orders, tmp_path):
    source = SetupSource(str(shop / "orders.csv"), tmp_path / "n.toml", *orders)
    found = make_preview(source, StarterChoices(person="customer_id"), "orders.region", "0.25")
    assert found.answer is not None and found.problem is None
    assert list(tmp_path.iterdir()) == [] and not list(shop.glob("*.ledger"))


def test_a_person_whose_name_has_spaces_around_it_is_that_one(tmp_path, monkeypatch):
    monkeypatch.setattr(setup_server, "_LAST_PAGE", 0.0)
    source = tmp_path / "t.csv"
    source.write_text(" Patient No. ,size\n" + "".join(f"{n % 40},{n % 7}\n" for n in range(120)))
    tables = duckdb.read_columns(source)
    page = SetupServer(
        SetupSource("t.csv", tmp_path / "n.toml", tables, SourceRows(source, tables)), StarterChoices(), 4711
    )
    browser = Browser(page)
    assert 'value=" Patient No. " checked' in browser.open().text
    form = {"person": " Patient No. ", "another": "size", "use-0-1": "1", "action": "write", "confirm": "1"}
    assert browser.post(**form).status_code == 200
    assert load(tmp_path / "n.toml").tables[0].unit == " Patient No. "


@pytest.mark.parametrize("person", [None, "", "nobody"])
def test_without_a_person_nothing_is_written(opened, person):
    refused = opened.post(action="write", confirm="1", person=person)
    assert refused.status_code == 400
    assert not opened.page._source.policy.exists()
    if person != "nobody":
        assert (
            "choose who is protected"
            in opened.post("/preview", person=person, another="amount" if person is None else None).text
        )


def test_the_commands_of_the_last_page_are_as_a_shell_takes_them(tmp_path):
    tables = {"a$b `c`": [SourceColumn("x", Type.INT)]}
    source = SetupSource("t.csv", tmp_path / "my policy.toml", tables, None)
    _, (_, ask), _ = list_next_steps(source, StarterChoices(person="row"), None)
    assert shlex.split(ask)[-1] == 'SELECT COUNT(*) AS row_count FROM "a$b `c`"'
    assert shlex.split(ask)[3] == str(tmp_path / "my policy.toml")


def open_page(source, policy, monkeypatch):
    """A page for a file or a folder, opened."""
    monkeypatch.setattr(setup_server, "_LAST_PAGE", 0.0)
    tables = duckdb.read_columns(source)
    page = SetupServer(
        SetupSource(str(source), policy, tables, SourceRows(source, tables)), StarterChoices(epsilon=Fraction(1)), 4711
    )
    browser = Browser(page)
    return browser, browser.open().text


def list_offered(text):
    return sorted(set(re.findall(r'name="key-[^"]*" value="[^"]*"[^>]*> ([^<]*) <small>([^<]*)', text)))


@pytest.mark.parametrize("second", ["id,order_id,product", "id,Customer_ID,product"])
def test_what_one_person_holds_in_many_rows_is_not_offered(tmp_path, monkeypatch, second):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "orders.csv").write_text("id,customer_id,shop\n" + "".join(f"{n},{n % 40},a\n" for n in range(80)))
    lines = [f"{n},{n % 40},tea" for n in range(200)] + [f"{n},7,chemo" for n in range(200, 225)]
    (folder / "items.csv").write_text(second + "\n" + "\n".join(lines) + "\n")
    _, shown = open_page(folder, tmp_path / "n.toml", monkeypatch)
    assert list_offered(shown) == [("a", "40"), ("tea", "40")] and "chemo" not in shown


def test_where_people_cannot_be_counted_no_keys_are_offered(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "orders.csv").write_text("id,customer_id,shop\n" + "".join(f"{n},{n % 40},a\n" for n in range(80)))
    (folder / "visits.csv").write_text("ward\n" + "chemo\n" * 60)
    _, shown = open_page(folder, tmp_path / "n.toml", monkeypatch)
    assert list_offered(shown) == [("a", "40")] and "chemo" not in shown


def test_numbers_that_are_none_are_said_to_be(tmp_path, monkeypatch):
    source = tmp_path / "t.csv"
    values = ["nan", "inf", "1.5", "1.7e308", "-1.7e308"]
    source.write_text("id,bin,v\n" + "".join(f"{n},{values[n % 5]},a\n" for n in range(200)))
    browser, _ = open_page(source, tmp_path / "n.toml", monkeypatch)
    form = {"person": "row", "use-0-1": "1", "use-0-2": "1", "lower-0-1": "0", "upper-0-1": "10"}
    shown = browser.post("/preview", **form, **{"use-0-3": None, "use-0-4": None, "use-0-5": None})
    assert shown.status_code == 200 and "not a number" in shown.text


def test_what_fails_unforeseen_is_a_page(browser, monkeypatch):
    browser.open()

    def fail(form):
        raise RuntimeError("at sea")

    monkeypatch.setattr(browser.page._pages, "view", fail)
    answered = browser.send("GET", browser.place)
    assert answered.status_code == 500 and "tacit init FILE --guided" in answered.text
    assert "at sea" not in answered.text and answered.headers["content-security-policy"]


NOTHING_MORE = {"use-0-3": None, "use-0-4": None, "use-0-5": None}  # of the shop's form


def make_link_tables(folder, header="id,customer_id"):
    folder.mkdir()
    (folder / "orders.csv").write_text(f"{header}\n" + "".join(f"{n},{n % 40}\n" for n in range(80)))
    lines = "".join(f"{n},{n % 80},{'ab'[n % 2]}\n" for n in range(200))
    (folder / "items.csv").write_text(f"id,order_id,product\n{lines}")
    (folder / "logins.csv").write_text("customer_id\n" + "".join(f"{n % 40}\n" for n in range(80)))


def test_tables_without_columns_are_left_out_unless_others_are_reached_over_them(tmp_path, monkeypatch):
    make_link_tables(tmp_path / "data")
    browser, shown = open_page(tmp_path / "data", tmp_path / "n.toml", monkeypatch)
    assert "no column is ticked there: logins" in shown and "at least one column: orders.id" in shown
    numbers = dict.fromkeys(NOTHING_MORE) | {"use-0-2": "1"}  # items.product; tables are sorted by name
    done = browser.post(action="write", confirm="1", **numbers)
    assert done.status_code == 200, done.text
    policy = load(tmp_path / "n.toml")
    assert {table.name: [column.name for column in table.columns] for table in policy.tables} == {
        "items": ["product"],
        "orders": ["id"],
    }
    assert "The table logins is left out" in (tmp_path / "n.toml").read_text()


def test_a_preview_copies_what_its_question_reads_and_no_more(tmp_path, monkeypatch):
    make_link_tables(tmp_path / "data")
    browser, _ = open_page(tmp_path / "data", tmp_path / "n.toml", monkeypatch)
    copied = []

    def answer(policy, data, sql, epsilon):
        copied.append({table.name: [column.name for column in table.columns] for table in policy.tables})
        return preview_answer(policy, data, sql, epsilon)

    monkeypatch.setattr(setup_preview, "preview_answer", answer)
    ticked = dict.fromkeys(NOTHING_MORE) | {"use-0-0": "1", "use-0-2": "1", "use-2-0": "1", "group": "items.product"}
    shown = browser.post("/preview", **ticked)
    assert copied == [{"items": ["product"], "orders": ["id"]}]
    assert "GROUP BY &#34;product&#34;" in shown.text and 'class="refusal"' not in shown.text


@pytest.mark.parametrize(("lower", "upper"), [("1,5", ""), ("", "1,5"), ("1,5", "20"), ("1 5", ""), ("1", "")])
def test_each_bound_is_one_number(opened, lower, upper):
    bounds = {"lower-0-4": lower, "upper-0-4": upper}
    shown = opened.post("/preview", **bounds).text
    words = "one number in each field" if "," in lower + upper else "write two whole numbers"
    assert words in shown and "lower = 1" not in shown
    assert opened.post(action="write", confirm="1", **bounds).status_code == 400
    assert not opened.page._source.policy.exists()


def test_what_was_written_for_a_column_that_is_not_ticked_is_not_published(browser, tmp_path):
    browser.open()
    fields = {"use-0-3": None, "keys-0-3": "secret", "use-0-4": None, "lower-0-4": "3", "upper-0-4": "77"}
    assert (
        browser.post(action="write", confirm="1", **fields, **{"lower-0-0": "5", "upper-0-0": "88"}).status_code == 200
    )
    text = (tmp_path / "tacit.toml").read_text()
    assert "secret" not in text and "77" not in text and "88" not in text


def test_a_key_that_was_offered_for_another_person_is_not_taken(browser, tmp_path):
    browser.open()
    refused = browser.post(action="write", confirm="1", **{"key-0-3": "at sea"})
    assert refused.status_code == 400 and "not offered for this person" in refused.text
    assert browser.post(action="write", confirm="1", **{"keys-0-3": "at sea"}).status_code == 200  # typed
    assert 'values = ["at sea"]' in (tmp_path / "tacit.toml").read_text()


def test_a_key_with_a_line_break_is_the_one_of_the_data(tmp_path, monkeypatch):
    source = tmp_path / "t.csv"
    source.write_bytes(b"id,v\n" + b"".join(b'%d,"a\nb%d"\n' % (n, n % 2) for n in range(100)))
    browser, _ = open_page(source, tmp_path / "n.toml", monkeypatch)
    chosen = {"person": "row", "use-0-1": "1", "key-0-1": "a\r\nb0", **NOTHING_MORE}
    assert re.search(r'value="a\nb0" checked', browser.post(**chosen).text)
    assert browser.post(action="write", confirm="1", **chosen).status_code == 200
    assert load(tmp_path / "n.toml").tables[0].column("v").values == ("a\nb0",)


def test_a_table_whose_name_has_a_dot_is_asked_about_by_its_columns(tmp_path, monkeypatch):
    source = tmp_path / "shop.v2.csv"
    source.write_text("id,kind\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(200)))
    browser, _ = open_page(source, tmp_path / "n.toml", monkeypatch)
    (table,) = browser.page._source.tables
    assert "." in table
    form = {"person": "row", "use-0-1": "1", "key-0-1": "a", "group": f"{table}.kind", **NOTHING_MORE}
    assert "GROUP BY &#34;kind&#34;" in browser.post("/preview", **form).text
