"""The bundled clinic, served: for whoever wants to look around before there is data of their own."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from tacit.demo.clinic import build_clinic
from tacit.serve import credentials
from tacit.serve.credentials import Role
from tacit.serve.server import ListenAddresses, ServerConfig, run_server

DEMO_USERS = {"ada": Role.ANALYST, "ben": Role.ANALYST, "owner": Role.OWNER}
_PORTS = (8080, 5433)  # of HTTP and of PostgreSQL, where nobody else has them


def serve_clinic(folder: Path, say: Callable[[str], None], port: int | None = None) -> None:
    """Build the clinic with its analysts, and serve it until a signal. `say` receives the address and the credentials.

    `port` is that of HTTP; without it 8080, or a free one where that is taken. Passwords are made anew each time, so a
    clinic that is kept opens with those that are said last.
    """
    policy = build_clinic(folder)
    place = credentials.credentials_path(policy)
    known = credentials.read_credentials(place)
    passwords = {}
    for name, role in DEMO_USERS.items():
        made = (
            credentials.add_credential(place, name, role)
            if known.find(name) is None
            else credentials.rotate_credential(place, name)
        )
        passwords[name] = made.password

    def ready(listening: ListenAddresses) -> None:
        say(f"The clinic is open: {listening.http}")
        for name, role in DEMO_USERS.items():
            say(f"  name {name:<6} password {passwords[name]}   {role}")
        say(f"As a database: psql {listening.postgres.replace('://', '://ada@')}/clinic")
        say("Stop with Ctrl-C.")

    http, postgres = (usual if _is_free(usual) else 0 for usual in _PORTS)
    http = http if port is None else port
    run_server(policy, ServerConfig(http=http, postgres=postgres), ready)


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
