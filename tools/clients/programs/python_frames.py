"""One step of a client that reads frames or expressions: NAME STEP."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from python_drivers import ABOVE, GROUPED, LIBPQ, PROBE, TABLES, URL, WRONG, connect_engine

TEXTS = {
    "connect": "SELECT 1 AS one",
    "introspect": TABLES,
    "parameters": ABOVE.format(40, "'Surgery'"),
    "refusal": WRONG,
    "probe": PROBE,
}


def pandas(step):
    """By SQLAlchemy and psycopg."""
    import pandas as module

    with connect_engine("psycopg").connect() as connection:
        if step == "parameters":
            text, values = ABOVE.format("%(age)s", "%(ward)s"), {"age": 40, "ward": "Surgery"}
            print(module.read_sql(text, connection, params=values))
            return
        found = module.read_sql(TEXTS.get(step, GROUPED), connection)
        print(list(found.columns), found.to_csv())


def polars(step):
    """By connectorx, which is its default, in binary COPY; what is about the catalog by its cursor protocol."""
    import polars as module

    if step in {"connect", "introspect"}:
        print(module.read_database_uri(TEXTS[step], LIBPQ, protocol="cursor").rows())
        return
    print(module.read_database_uri(TEXTS.get(step, GROUPED), LIBPQ))


def connectorx(step):
    """By each of its protocols."""
    import connectorx as module

    protocols = ["cursor"] if step in {"connect", "introspect"} else ["binary", "csv", "cursor"]
    for protocol in protocols:
        found = module.read_sql(LIBPQ, TEXTS.get(step, GROUPED), protocol=protocol, return_type="arrow")
        print(protocol, found.column_names, found.to_pylist())


def adbc(step):
    """By Arrow's driver."""
    import adbc_driver_postgresql.dbapi as module

    with module.connect(LIBPQ) as connection, connection.cursor() as cursor:
        if step == "introspect":
            found = connection.adbc_get_objects(depth="columns", db_schema_filter="public").read_all()
            print(found.to_pylist())
            return
        if step == "parameters":
            cursor.execute(ABOVE.format("$1", "$2"), (40, "Surgery"))
        else:
            if step == "connect":
                cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
            cursor.execute(TEXTS.get(step, GROUPED))
        print(cursor.fetch_arrow_table().to_pydict())


def ibis(step):
    """By expressions, and by sql(), which makes a view."""
    import ibis as module

    connection = module.connect(f"{URL.replace('postgresql', 'postgres')}")
    connection.raw_sql("SET tacit.epsilon = 0.1").close()
    visits = connection.table("visits")
    match step:
        case "connect":
            print(connection.version)
        case "introspect":
            print(connection.list_tables(), visits.schema())
        case "parameters":
            print(visits.filter(visits.age > 40, visits.ward == "Surgery").count().execute())
        case "probe":
            print(connection.sql(GROUPED).schema())
        case "refusal":
            connection.raw_sql(WRONG)
        case _:
            print(visits.group_by("ward").agg(n=visits.count()).order_by("ward").execute())


def django(step):
    """By its models, inspectdb and iterator()."""
    import django as module
    from django.conf import settings
    from django.core.management import call_command

    options = f"{os.environ['PGOPTIONS']} -c tacit.rows=hidden"  # inspectdb reads a row of each table
    database = {"ENGINE": "django.db.backends.postgresql", "OPTIONS": {"options": options}}
    names = {"NAME": "PGDATABASE", "USER": "PGUSER", "PASSWORD": "PGPASSWORD", "HOST": "PGHOST", "PORT": "PGPORT"}
    database |= {name: os.environ[variable] for name, variable in names.items()}
    settings.configure(DATABASES={"default": database}, INSTALLED_APPS=[])
    module.setup()
    from django.db import connection, models

    class Visit(models.Model):
        ward = models.TextField(primary_key=True)
        age = models.IntegerField()

        class Meta:
            app_label = "clinic"
            db_table = "visits"
            managed = False

    counted = Visit.objects.values("ward").annotate(n=models.Count("*")).order_by("ward")
    match step:
        case "connect":
            connection.ensure_connection()
        case "introspect":
            call_command("inspectdb", "visits")
        case "parameters":
            print(Visit.objects.filter(age__gt=40, ward="Surgery").aggregate(n=models.Count("*")))
        case "question" | "refresh":
            print(list(counted.iterator(chunk_size=1)))
        case _:
            with connection.cursor() as cursor:
                cursor.execute(TEXTS[step])
                print([column.name for column in cursor.description], cursor.fetchall())


def jupysql(step):
    """By its magic."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "sql")
    shell.run_line_magic("config", "SqlMagic.autopandas = False")
    shell.run_line_magic("sql", LIBPQ.replace("postgresql", "postgresql+psycopg"))
    if step == "introspect":
        print(shell.run_line_magic("sqlcmd", "tables"), shell.run_line_magic("sqlcmd", "columns -t visits"))
        return
    print(shell.run_line_magic("sql", TEXTS.get(step, GROUPED)))


def dbt(step):
    """A model that is compiled and shown: dbt wraps it in a query without rows first."""
    from dbt.cli.main import dbtRunner

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "models").mkdir()
        (folder / "models" / "wards.sql").write_text(TEXTS.get(step, GROUPED), encoding="utf-8")
        (folder / "dbt_project.yml").write_text("name: clinic\nversion: '1.0.0'\nprofile: clinic\n", encoding="utf-8")
        target = {"type": "postgres", "threads": 1, "schema": "public", "sslmode": "disable"}
        target |= {"host": os.environ["PGHOST"], "port": int(os.environ["PGPORT"]), "user": os.environ["PGUSER"]}
        target |= {"password": os.environ["PGPASSWORD"], "dbname": os.environ["PGDATABASE"]}
        lines = "".join(f"      {name}: {value!r}\n" for name, value in target.items())
        profile = f"clinic:\n  target: dev\n  outputs:\n    dev:\n{lines}"
        (folder / "profiles.yml").write_text(profile, encoding="utf-8")
        if step in {"introspect", "parameters"}:
            sys.exit(77)  # it looks at no tables by itself, and writes values into its text
        command = ["debug"] if step == "connect" else ["show", "--inline", TEXTS.get(step, GROUPED)]
        done = dbtRunner().invoke([*command, "--project-dir", made, "--profiles-dir", made])
        print(done.result, done.exception)
        sys.exit(not done.success)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
