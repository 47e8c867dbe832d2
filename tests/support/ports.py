"""Ports of this machine for servers that must know theirs before they listen."""

from __future__ import annotations

import random
import socket

_FIRST, _LAST = 20_000, 32_000  # below those that systems give to connections, which come and go while a server starts


def find_free_port() -> int:
    """A port that nobody listens on, and that is given to nobody who asks for any."""
    chosen = random.SystemRandom()
    for _ in range(1_000):
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", chosen.randrange(_FIRST, _LAST)))
            except OSError:  # taken
                continue
            return int(trial.getsockname()[1])
    raise OSError("no port is free")
