"""A table that is locked, as analysts and the owner see it: HTTP, the wire, the console, the metrics and the log."""

from __future__ import annotations

import logging
import ssl

import httpx
import psycopg
import pytest
from tests.serve.test_console import Visitor

import tacit

pytestmark = pytest.mark.slow

SUM = "SELECT SUM(age) AS s FROM visits"
COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age > {}"


@pytest.fixture
def locked(serving, clinic, caplog):
    """A server over which one question has failed, of a clinic whose visits count as live."""
    with serving(clinic) as served, caplog.at_level(logging.ERROR, "tacit"):
        served.curator.live_tables = frozenset({"visits"})
        served.curator.engine._connection.execute("DROP TABLE copy.main.visits")
        with tacit.connect(served.http, served.key("ada"), cafile=served.cafile) as ada, pytest.raises(tacit.Failed):
            ada.ask(SUM, epsilon=0.5)
        yield served


def test_a_locked_table_is_refused_everywhere_for_nothing_and_the_owner_sees_it(locked, caplog):
    spent = locked.curator.ledger.overall()
    with tacit.connect(locked.http, locked.key("ben"), cafile=locked.cafile) as ben:
        with pytest.raises(tacit.Refused) as refused:
            ben.ask(COUNT.format(1), epsilon=0.5)
        assert (refused.value.code, "tacit tables unlock visits" in refused.value.fix) == ("table-locked", True)
    tls = ssl.create_default_context(cafile=locked.cafile)
    with httpx.Client(timeout=60, base_url=locked.http, verify=tls) as client:
        headers = {"Authorization": f"Bearer {locked.key('ada')}"}
        told = client.post("/v1/ask", json={"sql": COUNT.format(2), "epsilon": 0.5}, headers=headers)
        assert (told.status_code, told.json()["error"]["code"]) == (423, "table-locked")
        metrics = client.get("/metrics", headers={"Authorization": f"Bearer {locked.key('olga')}"}).text
        assert "\ntacit_tables_locked 1\n" in metrics and 'tacit_errors_total{code="table-locked"} 2' in metrics
        for name, page in (("ada", "/ask"), ("olga", "/owner")):
            visitor = Visitor(client)
            client.cookies.clear()
            assert visitor.sign_in(name, locked.clinic.secrets[name].password).status_code == 303
            shown = visitor.ask(COUNT.format(3)) if page == "/ask" else visitor.get(page)
            assert shown.status_code == (423 if page == "/ask" else 200)
            assert "tacit tables unlock visits" in shown.text
    host, _, port = locked.postgres.rpartition("/")[2].rpartition(":")
    wire = psycopg.connect(
        host=host,
        port=port,
        user="ada",
        password=locked.clinic.secrets["ada"].password,
        dbname="clinic",
        sslmode="verify-full",
        sslrootcert=str(locked.cafile),
        autocommit=True,
    )
    with wire:
        wire.execute("SET tacit.epsilon = 0.5")
        with pytest.raises(psycopg.Error) as over_the_wire:
            wire.execute(COUNT.format(4))
        assert over_the_wire.value.sqlstate == "55006"
    assert locked.curator.ledger.overall() == spent
    assert any("table visits is locked by entry" in record.getMessage() for record in caplog.get_records("setup"))


def test_a_server_that_runs_notices_the_unlock(locked):
    locked.curator.ledger.unlock("visits")
    with tacit.connect(locked.http, locked.key("ada"), cafile=locked.cafile) as ada, pytest.raises(tacit.Failed):
        ada.ask(COUNT.format(1), epsilon=0.5)  # it is charged and run again
