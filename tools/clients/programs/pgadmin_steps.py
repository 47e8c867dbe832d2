"""One step of pgAdmin 4, which runs without a browser: the addresses that its pages call are called in its process.

It runs as on a desktop, for one user, with its own database in a folder beside its environment.
"""

from __future__ import annotations

import builtins
import json
import os
import random
import sys
import time
from pathlib import Path

PLACE = Path(sys.prefix)
GROUPED = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward"
TEXTS = {
    "connect": "SELECT 1",
    "refusal": "SELECT COUNT(*) FROM visits WHERE heigth > 3",
    "probe": f"SELECT * FROM ({GROUPED}) AS q WHERE 0=1",
}
CHARTS = "session_stats,tps_stats,ti_stats,to_stats,bio_stats"


def start():
    """The application, as its own program makes it."""
    (PLACE / "home").mkdir(exist_ok=True)
    os.environ["HOME"] = str(PLACE / "home")
    builtins.SERVER_MODE = False
    sys.path.insert(0, str(next(PLACE.glob("lib/*/site-packages/pgadmin4"))))
    import config

    config.MASTER_PASSWORD_REQUIRED = config.UPGRADE_CHECK_ENABLED = config.USE_OS_SECRET_STORAGE = False
    from pgadmin import create_app

    application = create_app()
    application.PGADMIN_RUNTIME, application.PGADMIN_INT_KEY = True, ""
    application.config |= {"WTF_CSRF_ENABLED": False, "WTF_CSRF_CHECK_DEFAULT": False}
    application.run_before_app_start()
    return application.test_client()


class PgAdmin:
    """Its addresses, for a server that is registered anew."""

    def __init__(self):
        self.client = start()
        self.client.get("/browser/")
        given = {"sslmode": "disable", "options": os.environ["PGOPTIONS"]}
        server = {
            "name": f"clinic {random.random()}",
            "host": os.environ["PGHOST"],
            "port": int(os.environ["PGPORT"]),
            "db": os.environ["PGDATABASE"],
            "username": os.environ["PGUSER"],
            "password": os.environ["PGPASSWORD"],
            "connect_now": True,
            "connection_params": [{"name": name, "keyword": name, "value": value} for name, value in given.items()],
        }
        self.server = self.call("post", "browser/server/obj/1/", server)["node"]["_id"]
        self.database = self.find("database", os.environ["PGDATABASE"])

    def call(self, method, path, body=None):
        """What an address answers; an error ends the step with its text."""
        sent = None if body is None else json.dumps(body)
        found = getattr(self.client, method)(f"/{path}", data=sent, content_type="application/json")
        if found.status_code >= 400:
            print(found.get_data(as_text=True))
            sys.exit(1)
        return found.get_json()

    def nodes(self, kind, *inside):
        """The nodes of its tree of one kind."""
        path = "/".join(map(str, (self.server, *inside)))
        return {node["label"]: node["_id"] for node in self.call("get", f"browser/{kind}/nodes/1/{path}/")["data"]}

    def find(self, kind, name, *inside):
        """The number of a node by its name."""
        return self.nodes(kind, *inside)[name]

    def introspect(self):
        """Open the tree down to the columns, and the tabs of a table: its properties, its SQL, the dashboard."""
        schema = self.find("schema", "public", self.database)
        table = self.find("table", "visits", self.database, schema)
        path = f"1/{self.server}/{self.database}/{schema}/{table}"
        self.call("get", f"browser/table/obj/{path}")
        self.call("get", f"dashboard/dashboard_stats/{self.server}/{self.database}?chart_names={CHARTS}")
        print(self.nodes("column", self.database, schema, table), self.call("get", f"browser/table/sql/{path}"))

    def ask(self, text):
        """Run a statement in its query tool."""
        number = random.randint(1, 9_999_999)
        place = f"{number}/1/{self.server}/{self.database}"
        self.call("post", f"sqleditor/initialize/sqleditor/{place}", {"dbname": os.environ["PGDATABASE"]})
        self.call("post", f"sqleditor/query_tool/start/{number}", {"sql": text, "explain_plan": None})
        found = {"status": "Busy"}
        while found["status"] == "Busy":
            time.sleep(0.2)
            found = self.call("get", f"sqleditor/poll/{number}")["data"]
        if found["status"] != "Success":
            print(found["result"])
            sys.exit(1)
        print([column["name"] for column in found["colinfo"] or ()], found["result"], found["additional_messages"])


def main(step):
    """Run one step, and print what it shows."""
    if step == "parameters":
        sys.exit(77)  # its query tool has none
    tool = PgAdmin()
    if step == "introspect":
        tool.introspect()
    else:
        tool.ask(TEXTS.get(step, GROUPED))


if __name__ == "__main__":
    main(sys.argv[-1])
