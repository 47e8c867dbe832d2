"""PostgreSQL's wire protocol, so that psql, drivers and BI tools connect as if to a database.

listener = await start_listener(service, authenticator, "127.0.0.1", 5433, tls)
"""

from __future__ import annotations

from tacit.serve.pgwire.listener import ConnectionHandler as ConnectionHandler
from tacit.serve.pgwire.listener import Listener as Listener
from tacit.serve.pgwire.listener import start_listener as start_listener
