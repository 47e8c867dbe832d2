"""The clients that are tried: where each is installed, and how one step of it is run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
_FRAMES = "pandas sqlalchemy psycopg[binary] polars connectorx adbc-driver-postgresql pyarrow"
_ALCHEMY = "sqlalchemy greenlet psycopg2-binary psycopg[binary] asyncpg pg8000"
_NODE = "pg postgres knex kysely sequelize pg-hstore typeorm reflect-metadata"
_DRIZZLE = "drizzle-kit drizzle-orm pg"
# What Superset 6.1 needs beside what it declares, and not above what it runs with.
_SUPERSET = "apache-superset psycopg2-binary rich cachetools flask-caching<2.4"


@dataclass(frozen=True)
class Client:
    """A client: its name, the environment that it is installed into, what that needs, and its program and arguments.

    An environment is shared by the clients that name it. `needs` are programs of the machine.
    """

    name: str
    place: str
    packages: str
    program: str
    arguments: tuple[str, ...]
    needs: tuple[str, ...] = ()

    def missing(self) -> str:
        """What the machine lacks for it, or nothing."""
        lacking = [each for each in self.needs if not Path(each).exists() and shutil.which(each) is None]
        return f"there is no {lacking[0]}" if lacking else ""

    def install(self, folder: Path) -> None:
        """Install it into its own environment, once."""
        place = folder / self.place
        if not self.packages or (place / "installed").exists():
            return
        if self.program.endswith(".js"):
            place.mkdir(parents=True, exist_ok=True)
            command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(place)]
        else:
            if not (place / "bin").exists():
                subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
            command = [str(place / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, *self.packages.split()], check=True, timeout=900, capture_output=True)
        (place / "installed").touch()

    def command(self, folder: Path, step: str) -> tuple[list[str], dict[str, str]]:
        """The command of a step, and what it adds to the environment."""
        place, program = folder / self.place, str(PROGRAMS / self.program)
        if self.program.endswith(".js"):
            return ["node", program, *self.arguments, step], {"NODE_PATH": str(place / "node_modules")}
        if self.program.endswith(".go"):
            debian = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode"}  # the packages of Debian
            return ["go", "run", program, *self.arguments, step], debian
        if self.program.endswith(".R"):
            return ["Rscript", program, step], {}
        if self.program.endswith(".sh"):
            return [program, *self.arguments, step], {"PGCLI": str(place / "bin" / "pgcli")}
        return [str(place / "bin" / "python"), program, *self.arguments, step], {}


def _python(name: str, place: str, packages: str, program: str = "python_drivers.py", *needs: str) -> Client:
    return Client(name, place, packages, program, () if program == "jdbc.py" else (name,), needs)


CLIENTS = [
    Client("psql", "", "", "psql.sh", ("psql",), ("psql",)),
    Client("pgcli", "pgcli", "pgcli", "psql.sh", ("pgcli",)),
    _python("psycopg2", "psycopg2", "psycopg2-binary"),
    _python("psycopg", "psycopg", "psycopg[binary]"),
    _python("asyncpg", "asyncpg", "asyncpg"),
    _python("pg8000", "pg8000", "pg8000"),
    *(_python(f"sqlalchemy+{each}", "sqlalchemy", _ALCHEMY) for each in ("psycopg2", "psycopg", "asyncpg", "pg8000")),
    *(_python(each, "frames", _FRAMES, "python_frames.py") for each in ("pandas", "polars", "connectorx", "adbc")),
    _python("ibis", "ibis", "ibis-framework[postgres] packaging sqlglot<28", "python_frames.py"),
    _python("django", "django", "django psycopg[binary]", "python_frames.py"),
    _python("jupysql", "jupysql", "jupysql ipython sqlalchemy psycopg[binary]", "python_frames.py"),
    _python("dbt", "dbt", "dbt-core<1.11 dbt-postgres<1.11", "python_frames.py"),
    _python("pgAdmin 4", "pgadmin", "pgadmin4", "pgadmin_steps.py"),
    _python("superset", "superset", _SUPERSET, "superset_steps.py"),
    _python("jdbc", "py4j", "py4j", "jdbc.py", "java", "/usr/share/java/postgresql.jar"),
    _python("pyodbc", "pyodbc", "pyodbc", "python_drivers.py", "odbcinst"),
    *(
        Client(each, "node", _NODE, "steps.js", (each,), ("node", "npm"))
        for each in ("pg", "postgres", "knex", "kysely", "sequelize", "typeorm")
    ),
    *(
        Client(each, "", "", "steps.go", (each,), ("go", f"/usr/share/gocode/src/github.com/{folder}"))
        for each, folder in (("lib/pq", "lib/pq"), ("pgx", "jackc/pgx"))
    ),
    Client("drizzle", "drizzle", _DRIZZLE, "steps.js", ("drizzle",), ("node", "npm")),
    _python("generated from OpenAPI", "openapi", "openapi-python-client", "openapi_steps.py"),
    Client("R, dbplyr", "", "", "steps.R", (), ("Rscript", "/usr/lib/R/site-library/dbplyr")),
]
