"""What is hidden from an analyst is nowhere at a server: HTTP, the client, the console, psql and its catalog.

ben may name some columns of visits; ada may name everything. The names of what is hidden begin with zq, and stand in
nothing that ben is sent unless ben has just sent them.
"""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from pathlib import Path

import httpx
import psycopg
import pytest
from tests.serve.conftest import Clinic
from tests.serve.test_console import Visitor

import tacit
from tacit.serve import credentials

pytestmark = pytest.mark.slow

POLICY = """
[data]
source = "data"

[privacy]
epsilon = 1000
delta = 1e-6

[tables.visits]
unit = "patient"
people = "patients"
max_groups = 2
max_rows_per_group = 2
columns.age = { type = "int", lower = 0, upper = 110 }
columns.zqcost = { type = "float", lower = 0, upper = 100, step = 0.01 }
columns.ward = { type = "text", values = ["A", "B"] }
columns.zqpaid = { type = "bool" }

[tables.zqorders]
unit = "patient"
people = "patients"
max_groups = 2
max_rows_per_group = 2
columns.nr = { type = "int" }
columns.zqtotal = { type = "int", lower = 0, upper = 9 }

[tables.lines]
unit = { through = "order_nr", to = "zqorders.nr" }
max_groups = 2
max_rows_per_group = 2
columns.order_nr = { type = "int" }
columns.price = { type = "int", lower = 0, upper = 9 }

[tables.zqwards]
public = true
columns.ward = { type = "text", unique = true }
columns.beds = { type = "int", lower = 0, upper = 50 }

[analysts.ada]
epsilon = 1000
delta = 1e-6

[analysts.ben]
epsilon = 1000
delta = 1e-6
tables = ["visits", "lines"]
columns = ["visits.age", "visits.ward"]
"""
SUM = "SELECT SUM(zqcost) AS s FROM visits"
HIDDEN = [SUM, "SELECT COUNT(*) AS n FROM zqorders", "SELECT COUNT(*) AS n FROM zqwards"]


def write_clinic(folder: Path, known) -> Clinic:
    (folder / "data").mkdir()
    files = {
        "visits": ["patient,age,zqcost,ward,zqpaid", *(f"{n},{n % 90},{n}.5,{'AB'[n % 2]},true" for n in range(60))],
        "zqorders": ["patient,nr,zqtotal", *(f"{n},{n},{n % 9}" for n in range(60))],
        "lines": ["order_nr,price", *(f"{n},{n % 9}" for n in range(60))],
        "zqwards": ["ward,beds", "A,3", "B,4"],
    }
    for name, lines in files.items():
        (folder / "data" / f"{name}.csv").write_text("\n".join(lines) + "\n")
    policy = folder / "clinic.toml"
    policy.write_text(POLICY)
    shutil.copy(known[0], credentials.credentials_path(policy))
    return Clinic(policy, known[1])


@pytest.fixture(scope="module")
def restricted(tmp_path_factory, known, serving):
    with serving(write_clinic(tmp_path_factory.mktemp("restricted"), known)) as served:
        served.curator.profile(epsilon=5)
        yield served


@pytest.fixture
def client(restricted):
    tls = ssl.create_default_context(cafile=restricted.cafile)
    with httpx.Client(timeout=60, base_url=restricted.http, verify=tls) as made:
        yield made


@pytest.fixture
def wire(restricted):
    def connect(name="ben", **options):
        host, _, port = restricted.postgres.rpartition("/")[2].rpartition(":")
        return psycopg.connect(
            host=host,
            port=port,
            user=name,
            password=restricted.clinic.secrets[name].password,
            dbname="clinic",
            sslmode="verify-full",
            sslrootcert=str(restricted.cafile),
            options="-c tacit.epsilon=1",
            autocommit=True,
            **options,
        )

    return connect


def headers(restricted, name):
    return {"Authorization": f"Bearer {restricted.key(name)}"}


def test_over_http_it_is_unknown(restricted, client):
    found = client.get("/v1/schema", headers=headers(restricted, "ben"))
    assert "zq" not in found.text and "released_profile" in found.json()
    assert set(found.json()["tables"]) == {"visits", "lines"}
    assert set(found.json()["released_profile"]["tables"][0]) >= {"columns"}
    for name in ("ada", "olga"):
        assert "zqorders" in client.get("/v1/schema", headers=headers(restricted, name)).text
    for text in HIDDEN:
        body = {"sql": text, "epsilon": 1}
        assert client.post("/v1/ask", json=body, headers=headers(restricted, "ada")).status_code == 200
        for path in ("/v1/ask", "/v1/explain"):
            refused = client.post(path, json=body, headers=headers(restricted, "ben"))
            assert refused.status_code == 422
            error = refused.json()["error"]
            assert error["code"] in {"unknown-table", "unknown-column"}
            assert "zq" not in error["fix"] and error["fix"].endswith(
                ("visits, lines", "age, ward; its unit is patient")
            )
    absent = {"sql": "SELECT COUNT(*) AS n FROM zqothers", "epsilon": 1}
    one, other = (
        client.post("/v1/ask", json=body, headers=headers(restricted, "ben")).json()["error"]
        for body in (absent, {"sql": "SELECT COUNT(*) AS n FROM zqorders", "epsilon": 1})
    )
    assert json.dumps(one).replace("zqothers", "zqorders") == json.dumps(other)


def test_a_fit_over_http_is_refused(restricted):
    learn = pytest.importorskip("tacit.learn", reason="an extra")
    with tacit.connect(restricted.http, restricted.key("ben"), cafile=restricted.cafile) as ben:
        with pytest.raises(tacit.Refused) as refused:
            ben.fit(learn.Ridge(rows=60), "SELECT age, zqcost FROM visits", target="zqcost", epsilon=1)
        assert refused.value.code == "unknown-column" and "zq" not in refused.value.fix
        assert set(ben.schema.tables) == {"visits", "lines"}


def test_receipts_and_metrics_tell_nothing_of_others(restricted, client):
    body = {"sql": SUM, "epsilon": 1}
    entry = client.post("/v1/ask", json=body, headers=headers(restricted, "ada")).json()["receipt"]["entry"]
    found = client.get(f"/v1/receipts/{entry}", headers=headers(restricted, "ben"))
    absent = client.get("/v1/receipts/999999", headers=headers(restricted, "ben"))
    assert (found.status_code, found.text.replace(str(entry), "999999")) == (404, absent.text)
    assert client.get("/metrics", headers=headers(restricted, "ben")).status_code == 403


def test_the_console_shows_and_completes_what_may_be_named(restricted, client):
    visitor = Visitor(client)
    assert visitor.sign_in("ben", restricted.clinic.secrets["ben"].password).status_code == 303
    for page in ("/ask", "/budget", "/learn"):
        assert "zq" not in visitor.get(page).text
    assert "visits" in visitor.get("/ask").text
    for path in ("/ask", "/price"):
        shown = visitor.ask(SUM, path=path)
        assert "has no column zqcost" in shown.text
        assert "zqpaid" not in shown.text and "zqorders" not in shown.text
    client.cookies.clear()
    assert visitor.sign_in("ada", restricted.clinic.secrets["ada"].password).status_code == 303
    assert "zqorders" in visitor.get("/ask").text


def test_the_catalog_has_none_of_it(wire):
    everything = (
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2",
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1",
        "SELECT attname FROM pg_attribute WHERE attnum > 0",
        "SELECT description FROM pg_description JOIN pg_class ON objoid = pg_class.oid",
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint",
        "SELECT indexdef FROM pg_indexes",
        "SELECT policyname, tablename FROM pg_policies",
    )
    with wire() as ben, wire("ada") as ada:
        assert ben.execute(everything[0]).fetchall() == [
            *(("lines", name) for name in ("order_nr", "price")),
            *(("visits", name) for name in ("age", "ward")),
        ]
        for text in everything:
            assert "zq" not in str(ben.execute(text).fetchall())
        assert "zq" in str(ada.execute(everything[0]).fetchall())  # each has their own
        assert ada.execute("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'").fetchall()
        assert ben.execute("SELECT to_regclass('zqorders')::text").fetchall() == [(None,)]
        with pytest.raises(psycopg.errors.UndefinedTable, match='relation "zqorders" does not exist'):
            ben.execute("SELECT 'zqorders'::regclass")


def test_over_the_wire_it_is_unknown_in_every_kind_of_statement(wire):
    with wire() as ben:
        for text in (
            *HIDDEN,
            f"EXPLAIN {SUM}",
            f"COPY ({SUM}) TO STDOUT",
            f"DECLARE c CURSOR FOR {SUM}",
            f"CREATE TEMP VIEW v AS {SUM}",
            "SELECT SUM(zqcost) AS s FROM visits LIMIT 0",
            "SELECT zqcost FROM visits WHERE 1 = 0",
        ):
            with pytest.raises(psycopg.Error) as error:
                ben.execute(text)
            assert error.value.sqlstate in {"42P01", "42703", "34000", "25P01"}, text
            assert "zq" not in (error.value.diag.message_hint or "")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            ben.execute("SELECT COUNT(*) FROM visits WHERE zqcost > %s", (3,), prepare=True)
        with pytest.raises(psycopg.Error) as error:
            ben.execute("SELECT pg_class.relname FROM pg_class, visits")
        assert "zq" not in str(error.value.diag.message_hint)
        ben.execute("CREATE TEMP VIEW zqorders AS SELECT age FROM visits")  # a name like any other
        assert len(ben.execute("SELECT COUNT(*) FROM zqorders").fetchall()) == 1
        answered = ben.execute("SELECT SUM(price) AS s FROM lines").fetchall()
    with wire("ada") as ada:
        assert ada.execute("SELECT SUM(price) AS s FROM lines").fetchall() == answered  # one question, one answer


def test_psql_describes_what_may_be_named(restricted):
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("psql is not installed")
    host, _, port = restricted.postgres.rpartition("/")[2].rpartition(":")
    dsn = f"host={host} port={port} user=ben dbname=clinic sslmode=verify-full sslrootcert={restricted.cafile}"
    shown = subprocess.run(
        [psql, dsn, "-X", "-c", r"\d", "-c", r"\d visits", "-c", r"\d+ lines", "-c", r"\dt *.*"],
        env={"PGPASSWORD": restricted.clinic.secrets["ben"].password},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "zq" not in shown.stdout + shown.stderr
    assert "ward" in shown.stdout and "price" in shown.stdout
