"""One step of a Python client, in an environment where only that client is installed: NAME STEP."""

from __future__ import annotations

import asyncio
import os
import sys

GROUPED = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward"
ABOVE = "SELECT COUNT(*) AS n FROM visits WHERE age > {} AND ward = {}"
WRONG = "SELECT COUNT(*) FROM visits WHERE heigth > 3"
PROBE = f"SELECT * FROM ({GROUPED}) AS q WHERE 0=1"
TABLES = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
HOST, PORT, USER, PASSWORD, DATABASE = (
    os.environ[f"PG{each}"] for each in ("HOST", "PORT", "USER", "PASSWORD", "DATABASE")
)
URL = f"postgresql://{USER}:{PASSWORD}@{HOST}:{PORT}/{DATABASE}"
LIBPQ = f"{URL}?sslmode=disable&options=-c%20tacit.epsilon%3D0.1"


def run_driver(module, connect, step, mark="%s"):
    """A driver with the interface of PEP 249."""
    connection = connect()
    cursor = connection.cursor()
    if step == "connect":
        cursor.execute("SELECT 1")
    elif step == "introspect":
        cursor.execute(TABLES)
    elif step == "parameters":
        cursor.execute(ABOVE.format(mark, mark), (40, "Surgery"))
    elif step == "probe":
        cursor.execute(PROBE)
        print([column[0] for column in cursor.description])
    elif step == "refusal":
        cursor.execute(WRONG)
    else:
        cursor.execute(GROUPED)
    print(cursor.fetchall())


def psycopg2(step):
    """By libpq, with values written into the text."""
    import psycopg2 as module

    run_driver(module, lambda: module.connect(LIBPQ), step)


def psycopg(step):
    """By libpq, with parameters."""
    import psycopg as module

    run_driver(module, lambda: module.connect(LIBPQ), step)


def pg8000(step):
    """In pure Python."""
    import pg8000.dbapi as module

    def connect():
        connection = module.connect(USER, HOST, DATABASE, int(PORT), PASSWORD)
        connection.cursor().execute("SET tacit.epsilon = 0.1")
        return connection

    run_driver(module, connect, step)


def asyncpg(step):
    """By prepared statements and in binary."""
    import asyncpg as module

    async def work():
        connection = await module.connect(LIBPQ.partition("?")[0], server_settings={"tacit.epsilon": "0.1"})
        texts = {"connect": "SELECT 1", "introspect": TABLES, "refusal": WRONG}
        if step == "parameters":
            print(await connection.fetch(ABOVE.format("$1", "$2"), 40, "Surgery"))
        elif step == "probe":
            prepared = await connection.prepare(PROBE)
            print([each.name for each in prepared.get_attributes()], await prepared.fetch())
        else:
            print(await connection.fetch(texts.get(step, GROUPED)))

    try:
        asyncio.run(work())
    except module.PostgresError as error:
        print(error, error.hint)
        sys.exit(1)


def pyodbc(step):
    """By psqlODBC, with rows by DECLARE and FETCH."""
    import pyodbc as module

    options = "UseDeclareFetch=1;Fetch=1;ConnSettings=SET tacit.epsilon=0.1"
    place = f"Server={HOST};Port={PORT};Uid={USER};Pwd={PASSWORD};Database={DATABASE}"
    connection = module.connect(f"Driver=PostgreSQL Unicode;{place};{options}")
    if step == "introspect":
        print([row.table_name for row in connection.cursor().tables()])
        print([row.column_name for row in connection.cursor().columns(table="visits")])
        return
    run_driver(module, lambda: connection, step, mark="?")


def connect_engine(driver):
    """An engine of SQLAlchemy."""
    import sqlalchemy

    options = {"options": "-c tacit.epsilon=0.1"}
    if driver == "asyncpg":
        options = {"server_settings": {"tacit.epsilon": "0.1"}}
    engine = sqlalchemy.create_engine(
        URL.replace("postgresql", f"postgresql+{driver}"), connect_args={} if driver == "pg8000" else options
    )
    if driver == "pg8000":
        listen = sqlalchemy.event.listens_for(engine, "connect")
        listen(lambda connection, _: connection.cursor().execute("SET tacit.epsilon = 0.1"))
    return engine


def sqlalchemy(step, driver):
    """By an inspector, expressions and streamed results."""
    import sqlalchemy as module

    if driver == "asyncpg":
        asyncio.run(sqlalchemy_async(step))
        return
    with connect_engine(driver).connect() as connection:
        sqlalchemy_step(module, connection, step)


def sqlalchemy_step(module, connection, step):
    """A step by a connection of SQLAlchemy."""
    if step == "introspect":
        found = module.inspect(connection)
        print(found.get_table_names(), found.get_columns("visits"), found.get_pk_constraint("visits"))
    elif step == "parameters":
        values = {"age": 40, "ward": "Surgery"}
        print(connection.execute(module.text(ABOVE.format(":age", ":ward")), values).all())
        visits = module.table("visits", module.column("ward"), module.column("age"))
        listed = module.select(module.func.count()).where(visits.c.ward == module.any_(["Surgery"]))
        print(connection.execute(listed).all())
    else:
        texts = {"connect": "SELECT 1", "refusal": WRONG, "probe": PROBE}
        streamed = connection.execution_options(stream_results=True)
        found = streamed.execute(module.text(texts.get(step, GROUPED)))
        print(list(found.keys()), found.all())


async def sqlalchemy_async(step):
    """A step by asyncpg."""
    import sqlalchemy as module
    from sqlalchemy.ext.asyncio import create_async_engine

    options = {"server_settings": {"tacit.epsilon": "0.1"}}
    engine = create_async_engine(URL.replace("postgresql", "postgresql+asyncpg"), connect_args=options)
    async with engine.connect() as connection:
        if step == "introspect":
            print(await connection.run_sync(lambda each: module.inspect(each).get_columns("visits")))
        elif step == "parameters":
            text = module.text(ABOVE.format(":age", ":ward"))
            print((await connection.execute(text, {"age": 40, "ward": "Surgery"})).all())
        else:
            texts = {"connect": "SELECT 1", "refusal": WRONG, "probe": PROBE}
            found = await connection.execute(module.text(texts.get(step, GROUPED)))
            print(list(found.keys()), found.all())
    await engine.dispose()


def main():
    """Run the step of the client, both by their names."""
    name, step = sys.argv[1:3]
    kind, _, driver = name.partition("+")
    work = globals()[kind]
    work(step, driver) if driver else work(step)


if __name__ == "__main__":
    main()
