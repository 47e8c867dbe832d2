"""The protocol by hand: who is let in, what is charged and when, transactions, errors, cancel and stop."""

from __future__ import annotations

import struct
import threading
import time

import pytest

from tacit.serve import credentials
from tacit.serve.pgwire import start_listener

COUNT = "SELECT COUNT(*) AS n FROM visits"


def fields(body: bytes) -> dict[str, str]:
    """The fields of an error or notice."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def kinds(found: list[tuple[bytes, bytes]]) -> str:
    return b"".join(kind for kind, _ in found).decode()


def errors(found: list[tuple[bytes, bytes]]) -> list[dict[str, str]]:
    return [fields(body) for kind, body in found if kind == b"E"]


def columns(body: bytes) -> list[tuple[str, int, int]]:
    """Name, type and format of each column of a RowDescription."""
    count, found, rest = int.from_bytes(body[:2], "big"), [], body[2:]
    for _ in range(count):
        name, _, rest = rest.partition(b"\0")
        _, _, oid, _, _, form = struct.unpack(">IhIhih", rest[:18])
        found.append((name.decode(), oid, form))
        rest = rest[18:]
    return found


def bind(
    portal: str, statement: str, *values: bytes, formats: tuple[int, ...] = (), wanted: tuple[int, ...] = ()
) -> bytes:
    parts = [
        portal.encode() + b"\0" + statement.encode() + b"\0",
        struct.pack(f">H{len(formats)}h", len(formats), *formats),
    ]
    parts.append(struct.pack(">H", len(values)))
    parts += [struct.pack(">i", len(value)) + value for value in values]
    return b"".join(parts) + struct.pack(f">H{len(wanted)}h", len(wanted), *wanted)


def parse(name: str, text: str) -> bytes:
    return f"{name}\0{text}\0".encode() + b"\0\0"


@pytest.fixture
def ada(raw):
    with raw() as client:
        client.login(**{"tacit.epsilon": "1"})
        yield client


def test_a_client_is_told_the_settings_and_its_key_and_is_ready(raw):
    with raw() as client:
        found = client.login()
        assert kinds(found).startswith("RRS") and kinds(found).endswith("KZ")
        assert found[-1] == (b"Z", b"I")
        assert (b"S", b"server_encoding\0UTF8\0") in found


def test_a_wrong_password_and_an_unknown_name_look_the_same(raw):
    seen = []
    for who, password in (("ada", "wrong"), ("eve", "wrong"), ("eve", "wrong")):
        with raw() as client:
            found = client.login(who, password)
            salt, rounds = client.challenge.split(",")[1:]
            seen.append((found, len(salt), rounds, salt))
            assert client.receive()[0] == b""
    assert [each[:3] for each in seen] == [seen[0][:3]] * 3
    assert errors(seen[0][0])[0]["C"] == "28P01"
    assert seen[1][3] == seen[2][3]  # a made-up salt is the same each time


def test_there_is_nothing_to_see_before_the_password(raw):
    with raw() as client:
        client.startup(user="ada")
        assert client.receive()[0] == b"R"
        client.send(b"Q", b"SELECT 1\0")
        assert errors([client.receive()])[0]["C"] == "08P01"
        assert client.receive()[0] == b""


def test_where_there_is_tls_nothing_is_said_in_the_clear(raw):
    with raw(tls=False) as client:
        client.startup(user="ada")
        assert errors([client.receive()])[0]["C"] == "28000"


def test_what_was_sent_in_the_clear_before_tls_is_not_read_after_it(served, raw):
    import socket

    connection = socket.create_connection(("127.0.0.1", served.port), timeout=20)
    injected = b"user\0eve\0\0"
    packet = struct.pack(">II", len(injected) + 8, 3 << 16) + injected
    connection.sendall(struct.pack(">II", 8, 80877103))
    assert connection.recv(1) == b"S"
    connection.sendall(packet)  # where the handshake should stand: the server takes it for a broken one
    assert connection.recv(100).startswith(b"\x15") or connection.recv(100) == b""
    connection.close()


@pytest.mark.slow
def test_without_tls_a_client_is_told_so_and_served_in_the_clear(served, raw):
    listener = served.run(start_listener(served.service, served.authenticator, "127.0.0.1", 0))
    port = listener.sockets[0].getsockname()[1]
    with raw(tls=False, port=port) as client:
        client.socket.sendall(struct.pack(">II", 8, 80877104))  # GSS, which is not there either
        assert client.socket.recv(1) == b"N"
        client.socket.sendall(struct.pack(">II", 8, 80877103))
        assert client.socket.recv(1) == b"N"
        assert client.login()[-1] == (b"Z", b"I")
        served.loop.call_soon_threadsafe(listener.close)
        found = client.until(b"")
        assert errors(found)[0]["C"] == "57P01"  # the server is stopping
    served.run(listener.wait_closed())


def test_a_later_version_is_negotiated_down(raw):
    with raw() as client:
        pairs = b"user\0ada\0_pq_.fancy\0on\0\0"
        client.socket.sendall(struct.pack(">II", len(pairs) + 8, (3 << 16) + 2) + pairs)
        kind, body = client.receive()
        assert kind == b"v" and body == struct.pack(">II", 3 << 16, 1) + b"_pq_.fancy\0"
        assert client.receive()[0] == b"R"


def test_parse_bind_and_describe_are_free_and_execute_charges_once_a_portal(ada, served):
    text = "SELECT ward, COUNT(*) AS n FROM visits WHERE age < $1 GROUP BY ward"
    entries, spent = served.entries(), served.spent()
    ada.send(b"P", parse("s", text))
    ada.send(b"D", b"Ss\0")
    ada.send(b"B", bind("p", "s", b"77"))
    ada.send(b"D", b"Pp\0")
    ada.send(b"H")
    assert kinds(ada.until(b"T") + ada.until(b"T")) == "1tT2T"
    assert (served.entries(), served.spent()) == (entries, spent)
    ada.send(b"E", b"p\0" + struct.pack(">i", 2))
    ada.send(b"H")
    assert kinds(ada.until(b"s")) == "DDNNs"  # the receipt, and what set the epsilon of this first question
    assert served.spent() == spent + 1
    charged = served.entries()
    ada.send(b"E", b"p\0" + struct.pack(">i", 0))
    ada.send(b"E", b"p\0" + struct.pack(">i", 0))
    ada.send(b"S")
    found = ada.until(b"Z")
    assert kinds(found) == "DCCZ"  # the third row, and then none
    assert [body for kind, body in found if kind == b"C"] == [b"SELECT 1\0", b"SELECT 0\0"]
    assert served.entries() == charged


@pytest.mark.slow
@pytest.mark.parametrize("intervals", ["on", "off"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
        "SELECT COUNT(*) AS n, 1 AS n_low, SUM(age) AS s, SUM(cost) AS c FROM visits",
        "SELECT AVG(cost) AS a, SUM(age) * 2 AS d, STDDEV(age) AS e, COUNT(*) > 3 AS b FROM visits",
        "SELECT MEDIAN(visited) AS m, MAX(age) AS x, MODE(ward) AS o, TOP_K(ward, 2) AS k FROM visits",
        "SELECT insured, visited, COUNT(DISTINCT patient_id) FROM visits GROUP BY insured, visited LIMIT 1",
        "SELECT SUM(age) / COUNT(*) AS r, COUNT(*) + COUNT(*) AS two FROM visits HAVING COUNT(*) > 1000000",
    ],
)
def test_columns_are_the_same_before_and_after_the_question_is_asked(ada, text, intervals):
    ada.query(f"SET tacit.intervals = {intervals}")
    ada.send(b"P", parse("", text))
    ada.send(b"D", b"S\0")
    ada.send(b"S")
    before = columns(dict(ada.until(b"Z"))[b"T"])
    found = ada.query(text)
    assert not errors(found)
    assert columns(dict(found)[b"T"]) == before
    for wanted in ((0,), (1,), (1,) * len(before)):
        ada.send(b"P", parse("", text))
        ada.send(b"B", bind("", "", wanted=wanted))
        ada.send(b"D", b"P\0")
        ada.send(b"E", b"\0\0\0\0\0")
        ada.send(b"S")
        found = ada.until(b"Z")
        assert not errors(found)
        assert [each[:2] for each in columns(dict(found)[b"T"])] == [each[:2] for each in before]
        assert {each[2] for each in columns(dict(found)[b"T"])} == {wanted[0]}


def test_a_portal_never_has_other_columns_than_its_statement_was_described_with(ada, served):
    # as drivers do that describe a statement's first portal, and none of those after it
    ada.send(b"P", parse("s", "SELECT COUNT(*) AS n, SUM(age) AS a FROM visits"))
    ada.send(b"B", bind("", "s"))
    ada.send(b"D", b"P\0")
    ada.send(b"S")
    assert not errors(ada.until(b"Z"))
    ada.query("SET tacit.intervals = on")
    entries = served.entries()
    ada.send(b"B", bind("", "s"))
    ada.send(b"E", b"\0\0\0\0\0")
    ada.send(b"S")
    (error,) = errors(ada.until(b"Z"))
    assert error["M"] == "cached plan must not change result type" and error["R"] == "RevalidateCachedQuery"
    assert served.entries() == entries
    ada.send(b"B", bind("", "s"))
    ada.send(b"D", b"P\0")
    ada.send(b"E", b"\0\0\0\0\0")
    ada.send(b"S")
    found = ada.until(b"Z")
    assert len(columns(dict(found)[b"T"])) == 6 and not errors(found)  # described anew, it is the statement's


def test_after_an_error_in_the_extended_protocol_all_is_skipped_until_sync(ada, served):
    entries = served.entries()
    ada.send(b"P", parse("", "SELECT heigth FROM visits"))
    ada.send(b"B", bind("", "nothing"))
    ada.send(b"P", parse("", COUNT))
    ada.send(b"B", bind("", ""))
    ada.send(b"E", b"\0\0\0\0\0")
    ada.send(b"S")
    assert kinds(ada.until(b"Z")) == "1EZ"
    assert served.entries() == entries


def test_portals_end_with_their_transaction(ada):
    ada.send(b"P", parse("s", "SELECT 1 AS a"))
    ada.send(b"B", bind("p", "s"))
    ada.send(b"S")
    ada.send(b"E", b"p\0\0\0\0\0")
    ada.send(b"S")
    assert errors(ada.until(b"Z") + ada.until(b"Z"))[0]["C"] == "34000"
    ada.query("BEGIN")
    ada.send(b"B", bind("p", "s"))
    ada.send(b"S")
    ada.send(b"E", b"p\0\0\0\0\0")
    ada.send(b"S")
    assert not errors(ada.until(b"Z") + ada.until(b"Z"))


def test_a_transaction_that_failed_takes_nothing_but_its_end(ada, served):
    entries = served.entries()
    assert ada.query("BEGIN")[-1][1] == b"T"
    assert ada.query("SELECT heigth FROM visits")[-1][1] == b"E"
    found = ada.query(COUNT)
    assert errors(found)[0]["C"] == "25P02" and found[-1][1] == b"E"
    assert ada.query("COMMIT") == [(b"C", b"ROLLBACK\0"), (b"Z", b"I")]
    assert served.entries() == entries
    assert kinds(ada.query("BEGIN; SAVEPOINT a; SELECT 1; ROLLBACK TO a; RELEASE a; COMMIT")).endswith("CZ")


def test_two_questions_in_one_string_are_refused_and_one_with_a_price_is_answered(ada, served):
    entries = served.entries()
    found = ada.query(f"SET tacit.epsilon = 2; {COUNT}; {COUNT}")
    assert errors(found)[0]["C"] == "0A000"
    assert served.entries() == entries
    spent = served.spent()
    found = ada.query(f"BEGIN; SET tacit.epsilon = 0.125; {COUNT} WHERE age = 30; COMMIT; SHOW tacit.epsilon")
    assert kinds(found) == "CCTDNCCTDCZ"
    assert served.spent() == spent + 0.125
    assert fields(dict(found)[b"N"])["M"].startswith("epsilon 0.125")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "state", "marked"),
    [
        ("SELECT COUNT(* FROM visits", "42601", "("),
        ("SELECT COUNT(*) FROM visit", "42P01", "visit"),
        ("SELECT ward, COUNT(*)\nFROM visits WHERE heigth > 1", "42703", "heigth"),
        ("SELECT FOO(age) FROM visits", "42883", "FOO"),
        ("SELECT age FROM visits", "42803", "age"),
        ("SELECT COUNT(*) OVER () FROM visits", "0A000", "COUNT"),
        ("SELECT SUM(age * 'a') FROM visits", "42804", ""),
        ("DROP TABLE visits", "0A000", "DROP"),
        ("COPY visits TO STDOUT", "0A000", "COPY"),
        ("LISTEN a", "0A000", "LISTEN"),
        ("SHOW nothing", "42704", ""),
        ("SET tacit.epsilon = 0", "22023", ""),
    ],
)
def test_an_error_has_its_state_its_hint_and_its_place(ada, text, state, marked):
    (error,) = errors(ada.query(text))
    assert error["C"] == state and error["H"]
    if marked:
        assert text[int(error["P"]) - 1 :].startswith(marked)


def test_a_question_beyond_the_budget_is_refused_with_what_fits(raw, served):
    with raw() as client:
        client.login("ben")
        assert errors(client.query(COUNT))[0]["H"].startswith("SET tacit.epsilon")
        (error,) = errors(client.query(f"SET tacit.epsilon = 5; {COUNT}"))
        assert error["C"] == "53400" and error["H"] == "ask for at most epsilon=1"
        assert served.spent("ben") == 0


def test_a_request_names_the_next_question_and_no_other(ada, served):
    first = ada.query(f"SET tacit.request = 'once'; {COUNT} WHERE age = 41; SHOW tacit.request")
    assert [body for kind, body in first if kind == b"D"][-1] == struct.pack(">HI", 1, 0)
    spent = served.spent()
    again = ada.query(f"SET tacit.request = 'once'; {COUNT} WHERE age = 41")
    assert served.spent() == spent
    assert dict(again)[b"D"] == next(body for kind, body in first if kind == b"D")
    (error,) = errors(ada.query(f"SET tacit.request = 'once'; {COUNT} WHERE age = 42"))
    assert error["C"] == "23505"


def test_intervals_stand_beside_the_estimates(ada):
    found = ada.query(f"SET tacit.intervals = on; SET tacit.confidence = 0.5; {COUNT}")
    assert [name for name, _, _ in columns(dict(found)[b"T"])] == ["n", "n_low", "n_high"]
    row, values = dict(found)[b"D"][2:], []
    while row:
        size = int.from_bytes(row[:4], "big")
        values.append(int(row[4 : 4 + size]))
        row = row[4 + size :]
    # Laplace noise of scale 3: within 2 at least half of the time
    assert values[2] - values[0] == values[0] - values[1] == 2


def test_a_session_may_name_its_dialect(ada):
    text = "SELECT COUNT(*) * 0 + 7 / 2 AS x FROM visits WHERE age > 34"
    found = [dict(ada.query(f"SET tacit.dialect = '{name}'; {text}"))[b"D"][6:] for name in ("postgres", "DuckDB")]
    assert [float(each) for each in found] == [3, 3.5]
    (error,) = errors(ada.query("SET tacit.dialect = 'tsql'"))
    assert error["C"] == "22023" and "snowflake" in error["H"]


def test_an_accuracy_is_a_price_too(ada):
    found = ada.query(f"SET tacit.within = 'n=20'; {COUNT} WHERE age > 33")
    # three rows each and within 20 at 95 %: epsilon is close to 3 ln(20)/20 = 0.45
    price = float(fields(dict(found)[b"N"])["M"].split()[1])
    assert 0.4 < price < 0.5


def test_the_budget_and_an_explanation_are_free(ada, served):
    entries = served.entries()
    found = ada.query("SELECT who, remaining < cap AS spent FROM tacit.budget AS b WHERE b.who = 'ada'")
    assert dict(found)[b"D"] == struct.pack(">HI3sI1s", 2, 3, b"ada", 1, b"t")
    found = ada.query(f"SELECT tacit.explain('{COUNT} WHERE ward = ''A''')")
    assert b"costs epsilon 1" in dict(found)[b"D"] and columns(dict(found)[b"T"])[0][0] == "explain"
    assert kinds(ada.query(f"EXPLAIN {COUNT}")).startswith("TDD")
    assert served.entries() == entries


def test_who_is_let_out_is_noticed_in_the_middle_of_a_session(raw, served):
    roster = credentials.credentials_path(served.folder / "clinic.toml")
    served.passwords["dora"] = credentials.add_credential(roster, "dora", credentials.Role.AUDITOR).password
    with raw() as client:
        client.login("dora", **{"tacit.epsilon": "1"})
        assert not errors(client.query("SELECT 1"))
        assert errors(client.query(COUNT))[0]["C"] == "42501"  # an auditor asks no questions
        credentials.revoke_credential(roster, "dora")
        client.send(b"Q", b"SELECT 1\0")
        assert errors(client.until(b""))[0]["C"] == "28000"


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True], ids=["in the clear, as libpq does", "under TLS"])
def test_what_runs_can_be_canceled_by_whoever_has_the_key(raw, served, tls):
    with raw() as client:
        key = next(body for kind, body in client.login() if kind == b"K")
        client.send(b"Q", b"SELECT count(*) FROM generate_series(1, 10000000000000) AS g(i) WHERE i % 7 = 3\0")
        done = threading.Event()

        def cancel() -> None:
            wrong = key[:4] + bytes([key[4] ^ 1]) + key[5:]
            for each in (wrong, key):
                time.sleep(0.1)
                with raw(tls=tls) as other:
                    other.socket.sendall(struct.pack(">II", 16, 80877102) + each)
                    assert other.receive()[0] == b""
            done.set()

        thread = threading.Thread(target=cancel)
        thread.start()
        (error,) = errors(client.until(b"Z"))
        thread.join()
        assert error["C"] == "57014" and error["M"].startswith("canceled")
        assert done.is_set()
        assert not errors(client.query("SELECT 1"))


def test_a_client_that_waits_no_longer_pays_once_and_may_ask_again(ada):
    # An answer comes at 20 ms or later.
    ada.query("SET statement_timeout = 1")
    for age in range(20):  # on a busy machine the limit may be noticed when the answer is there too
        sql = f"SELECT COUNT(*) AS hurried FROM visits WHERE age > {age}"
        found = errors(ada.query(sql))
        if found:
            break
    (error,) = found
    assert error["C"] == "57014" and error["M"].startswith("canceled at statement_timeout")
    ada.query("SET statement_timeout = '20s'")
    first, again = (ada.query(sql) for _ in range(2))
    rows = [[body for kind, body in found if kind == b"D"] for found in (first, again)]
    assert len(rows[0]) == 1 and rows[0] == rows[1]
    ada.query("RESET statement_timeout")


def test_a_reset_goes_back_to_what_the_connection_was_started_with(ada):
    ada.query("SET tacit.epsilon = 3; SET tacit.intervals = on")
    for reset in ("RESET ALL", "DISCARD ALL", "RESET tacit.epsilon", "SET tacit.epsilon TO DEFAULT"):
        ada.query("SET tacit.epsilon = 3")
        found = ada.query(f"{reset}; SHOW tacit.epsilon; SHOW session_authorization")
        assert [body[6:] for kind, body in found if kind == b"D"] == [b"1", b"ada"]


def test_deallocate_forgets_by_either_protocol(ada):
    for name in ("s", "t"):
        ada.send(b"P", parse(name, "SELECT 1"))
        ada.send(b"S")
        ada.until(b"Z")
    ada.send(b"P", parse("", "DEALLOCATE s"))
    ada.send(b"B", bind("", ""))
    ada.send(b"E", b"\0\0\0\0\0")
    ada.send(b"D", b"Ss\0")
    ada.send(b"S")
    assert errors(ada.until(b"Z"))[0]["C"] == "26000"
    ada.query("DISCARD ALL")
    ada.send(b"D", b"St\0")
    ada.send(b"S")
    assert errors(ada.until(b"Z"))[0]["C"] == "26000"


def test_a_statement_whose_columns_have_changed_since_is_not_asked(ada, served):
    ada.send(b"P", parse("s", f"{COUNT} WHERE age = 71"))
    ada.send(b"D", b"Ss\0")
    ada.send(b"S")
    ada.until(b"Z")
    ada.query("SET tacit.intervals = on")
    entries = served.entries()
    ada.send(b"B", bind("", "s"))
    ada.send(b"E", b"\0\0\0\0\0")
    ada.send(b"S")
    (error,) = errors(ada.until(b"Z"))
    assert error["C"] == "0A000" and error["R"] == "RevalidateCachedQuery"
    assert served.entries() == entries


def test_a_client_that_wants_no_notices_gets_none(ada):
    assert b"N" not in dict(ada.query(f"SET client_min_messages = warning; {COUNT}"))


@pytest.mark.slow
def test_limits_on_statements_portals_and_values(ada):
    for index in range(300):
        ada.send(b"P", parse(f"s{index}", "SELECT 1"))
        ada.send(b"S")
        found = ada.until(b"Z")
    assert errors(found)[0]["C"] == "54000"
    ada.query("DEALLOCATE ALL")
    ada.send(b"P", parse("s", "SELECT $1::text"))
    ada.send(b"S")
    assert not errors(ada.until(b"Z"))
    ada.send(b"B", bind("p", "s", b"a" * 300_000))
    ada.send(b"S")
    assert errors(ada.until(b"Z"))[0]["C"] == "54000"
    assert errors(ada.query("SELECT " + "1," * 30_000 + "1"))[0]["C"] == "54000"


def test_neither_words_of_a_question_nor_passwords_are_logged(raw, served, caplog):
    caplog.set_level("DEBUG")
    with raw() as client:
        client.login(**{"tacit.epsilon": "1"})
        client.query("SELECT COUNT(*) FROM visits WHERE ward = 'unsayable'")
        client.query("SELECT unsayable FROM visits")
        client.query("SELECT 'unsayable' FROM pg_unsayable")
    with raw() as client:
        client.login("ada", "unsayable")
    assert "unsayable" not in caplog.text and "wrong name or password" in caplog.text
    assert served.passwords["ada"] not in caplog.text
