"""PostgreSQL's wire protocol, so that psql, drivers and BI tools connect as if to a database.

listener = await start(desk, door, "127.0.0.1", 5433, tls)
"""

from __future__ import annotations

from tacit.serve.pgwire.wire import Listener as Listener
from tacit.serve.pgwire.wire import Wire as Wire
from tacit.serve.pgwire.wire import start as start
