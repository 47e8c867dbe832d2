"""One step of Superset, which runs without a browser: its own HTTP interface is called in its process.

Its metadata is in a SQLite file beside its environment, made by its own commands at the first step.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

PLACE = Path(sys.prefix)
CONFIG = """\
SECRET_KEY = "only for a server that nobody else reaches"
SQLALCHEMY_DATABASE_URI = "sqlite:///{}"
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
"""
GROUPED = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def prepare():
    """Make the metadata, once."""
    config = PLACE / "superset_config.py"
    config.write_text(CONFIG.format(PLACE / "superset.db"), encoding="utf-8")
    os.environ |= {"SUPERSET_CONFIG_PATH": str(config), "FLASK_APP": "superset", "SUPERSET_HOME": str(PLACE)}
    if (PLACE / "prepared").exists():
        return
    admin = "fab create-admin --username admin --firstname a --lastname b --email a@example.org --password admin"
    for command in ("db upgrade", admin, "init"):
        run = [str(PLACE / "bin" / "superset"), *command.split()]
        subprocess.run(run, check=True, capture_output=True, timeout=900)
    (PLACE / "prepared").touch()


class Superset:
    """Its HTTP interface, for one administrator."""

    def __init__(self):
        from superset.app import create_app

        self.client = create_app().test_client()
        login = {"username": "admin", "password": "admin", "provider": "db"}
        token = self.call("post", "security/login", login)["access_token"]
        self.client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {token}"
        for kind in ("dataset", "database"):  # those of earlier steps: its metadata holds one table of a name
            for each in self.call("get", f"{kind}/")["result"]:
                self.call("delete", f"{kind}/{each['id']}")

    def call(self, method, path, body=None):
        """What an address answers; an error ends the step with its text."""
        found = getattr(self.client, method)(f"/api/v1/{path}", json=body)
        if found.status_code >= 400:
            print(found.get_data(as_text=True))
            sys.exit(1)
        return found.get_json()

    def add_database(self):
        """Connect the served curator as a database."""
        return self.call("post", "database/", {"database_name": "clinic", "sqlalchemy_uri": address()})["id"]

    def add_dataset(self, **more):
        """Save a table, or a virtual dataset, and say which columns it has."""
        made = self.call("post", "dataset/", {"database": self.add_database(), "schema": "public", **more})
        found = self.call("get", f"dataset/{made['id']}")["result"]
        return made["id"], [each["column_name"] for each in found["columns"]]

    def chart(self, dataset, *, force=False, filters=(), where="", time_range="No filter"):
        """The data of a chart that counts rows by ward."""
        query = {
            "columns": ["ward"],
            "metrics": [{"expressionType": "SQL", "sqlExpression": "COUNT(*)", "label": "n"}],
            "filters": list(filters),
            "extras": {"where": where},
            "granularity": "visited",
            "time_range": time_range,
            "orderby": [["n", False]],
            "row_limit": 10_000,
        }
        source = {"id": dataset, "type": "table"}
        body = {"datasource": source, "queries": [query], "force": force, "result_type": "full"}
        return self.call("post", "chart/data", body)["result"][0]


def address():
    """The URI of the database, with the epsilon of each question in its options."""
    person = f"{quote(os.environ['PGUSER'])}:{quote(os.environ['PGPASSWORD'])}"
    place = f"{os.environ['PGHOST']}:{os.environ['PGPORT']}/{os.environ['PGDATABASE']}"
    return f"postgresql+psycopg2://{person}@{place}?sslmode=disable&options={quote(os.environ['PGOPTIONS'])}"


def main(step):
    """Run one step, and print what it shows."""
    prepare()
    superset = Superset()
    if step == "connect":
        print(superset.call("post", "database/test_connection/", {"sqlalchemy_uri": address()}))
        return
    if step == "probe":
        print(superset.add_dataset(table_name="wards", sql=GROUPED))
        return
    dataset, columns = superset.add_dataset(table_name="visits")
    match step:
        case "introspect":
            print(columns)
        case "parameters":
            filters = [{"col": "age", "op": ">", "val": 40}, {"col": "ward", "op": "IN", "val": ["Surgery"]}]
            print(superset.chart(dataset, filters=filters, time_range="2025-01-01 : 2025-06-01"))
        case "refusal":
            print(superset.chart(dataset, where="heigth > 3"))
        case _:
            print(json.dumps(superset.chart(dataset, force=True)["data"]))


if __name__ == "__main__":
    main(sys.argv[-1])
