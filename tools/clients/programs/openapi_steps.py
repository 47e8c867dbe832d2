"""One step of a client that openapi-python-client makes of /openapi.json, in a folder beside its environment."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

PLACE = Path(sys.prefix)
GROUPED = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward"
TEXTS = {
    "parameters": "SELECT COUNT(*) AS n FROM visits WHERE age > $1 AND ward = $2",
    "refusal": "SELECT COUNT(*) FROM visits WHERE heigth > 3",
    "probe": f"SELECT * FROM ({GROUPED}) AS q WHERE 0=1",
}


def generate():
    """Generate the client anew where a step connects; the others use it."""
    made = PLACE / "generated"
    if sys.argv[-1] == "connect" or not made.exists():
        shutil.rmtree(made, ignore_errors=True)
        command = [str(PLACE / "bin" / "openapi-python-client"), "generate", "--fail-on-warning"]
        path = f"{PLACE / 'bin'}{os.pathsep}{os.environ['PATH']}"
        command += ["--url", f"{os.environ['TACIT_URL']}/openapi.json", "--output-path", str(made)]
        subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PATH": path}, timeout=300)
    sys.path.insert(0, str(made))


def main(step):
    """Run one step, and print what it shows."""
    generate()
    package = importlib.import_module("tacit_client")
    models = importlib.import_module("tacit_client.models")
    client = package.AuthenticatedClient(os.environ["TACIT_URL"], token=os.environ["TACIT_KEY"])

    def call(name):
        return importlib.import_module(f"tacit_client.api.questions.{name}").sync

    if step == "connect":
        print(call("budget_v1_budget_get")(client=client).to_dict())
    elif step == "introspect":
        print(call("schema_v1_schema_get")(client=client).to_dict())
    else:
        values = {"parameters": [40, "Surgery"]} if step == "parameters" else {}
        body = models.QuestionBody(sql=TEXTS.get(step, GROUPED), epsilon=0.1, **values)
        found = call("ask_v1_ask_post")(client=client, body=body)
        if isinstance(found, models.ErrorResponse):
            error = found.error
            print(f"{error.kind} [{error.code}]: {error.what}; fix: {error.fix}")
            sys.exit(1)
        print(found.columns, found.to_dict())


if __name__ == "__main__":
    main(sys.argv[-1])
