"""One step of PostgreSQL's JDBC driver, in a Java machine that py4j starts: STEP."""

from __future__ import annotations

import os
import sys

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError
from python_drivers import ABOVE, GROUPED, PROBE, WRONG

JAR = "/usr/share/java/postgresql.jar"


def run(jvm, step):
    """Connect and run the step."""
    place = f"{os.environ['PGHOST']}:{os.environ['PGPORT']}/{os.environ['PGDATABASE']}"
    url = f"jdbc:postgresql://{place}?sslmode=disable&options=-c%20tacit.epsilon%3D0.1"
    user, password = os.environ["PGUSER"], os.environ["PGPASSWORD"]
    connection = jvm.java.sql.DriverManager.getConnection(url, user, password)
    if step == "introspect":
        rows = connection.getMetaData().getColumns(None, "public", "%", "%")
        while rows.next():
            print(rows.getString("TABLE_NAME"), rows.getString("COLUMN_NAME"))
        return
    texts = {"connect": "SELECT 1", "refusal": WRONG, "probe": PROBE, "parameters": ABOVE.format("?", "?")}
    connection.setAutoCommit(False)  # so that rows come in portions
    statement = connection.prepareStatement(texts.get(step, GROUPED))
    statement.setFetchSize(1)
    if step == "parameters":
        statement.setInt(1, 40)
        statement.setString(2, "Surgery")
    rows = statement.executeQuery()
    columns = range(1, rows.getMetaData().getColumnCount() + 1)
    print([rows.getMetaData().getColumnName(place) for place in columns])
    while rows.next():
        print([rows.getString(place) for place in columns])


if __name__ == "__main__":
    port, token = launch_gateway(classpath=JAR, die_on_exit=True, enable_auth=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        run(gateway.jvm, sys.argv[1])
    except Py4JJavaError as error:
        print(error.java_exception.getMessage())
        sys.exit(1)
    finally:
        gateway.shutdown()
