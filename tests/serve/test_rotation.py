"""`tacit analyst rotate` while a server runs: nothing that was opened with the old key or password goes on."""

from __future__ import annotations

import ssl

import httpx
import psycopg
import pytest
from typer.testing import CliRunner

from tacit.cli.main import app

pytestmark = pytest.mark.slow

COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.mark.parametrize("command", ["rotate", "revoke"])
def test_the_command_ends_open_sessions_of_every_kind(serving, clinic, command):
    secrets = clinic.secrets["ada"]
    with serving(clinic) as served:
        port = served.postgres.rpartition(":")[2]
        dsn = f"host=127.0.0.1 port={port} user=ada dbname=clinic sslmode=verify-full sslrootcert={served.cafile}"
        with (
            psycopg.connect(
                f"{dsn} password={secrets.password}", autocommit=True, options="-c tacit.epsilon=0.5"
            ) as wire,
            httpx.Client(
                timeout=60, base_url=served.http, verify=ssl.create_default_context(cafile=served.cafile)
            ) as web,
        ):
            key = {"Authorization": f"Bearer {secrets.key}"}
            assert wire.execute(COUNT).fetchone() is not None
            asked = {"sql": COUNT, "epsilon": 0.5}
            assert web.post("/v1/ask", json=asked, headers=key).status_code == 200
            done = CliRunner().invoke(app, ["analyst", command, "ada", "-p", str(clinic.policy)])
            assert done.exit_code == 0, done.output
            with pytest.raises(psycopg.OperationalError) as error:
                wire.execute(COUNT)  # which would be a free repeat
            assert error.value.sqlstate == "28000" and wire.closed
            assert web.post("/v1/ask", json=asked, headers=key).status_code == 401
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(f"{dsn} password={secrets.password}")
