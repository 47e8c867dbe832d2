"""Who calls over HTTP: a key as a bearer token."""

from __future__ import annotations

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tacit.errors import Code, Refused
from tacit.serve.door import Door, Person

_CHECKERS = 2  # threads for keys that are not yet remembered
_MOST_CHECKS = 32  # keys waiting for these threads
_bearer = HTTPBearer(auto_error=False, description="A key that `tacit analyst add` printed.")


class Checkers:
    """Keys that are not yet remembered, checked in threads of their own; so many at a time, and so many waiting."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._pool = ThreadPoolExecutor(_CHECKERS, "tacit-door")
        self._waiting = 0

    async def check(self, key: str, address: str) -> Person:
        """Whoever the key belongs to, or Refused; also where this address sent too many wrong ones."""
        seconds = self._door.attempts.wait(address)
        if seconds > 0:
            fix = f"wait {math.ceil(seconds)} seconds"
            raise Refused(Code.RATE, "too many wrong keys came from this address", fix=fix)
        if not key:
            raise _unknown()
        if self._waiting >= _MOST_CHECKS:
            raise Refused(Code.BUSY, "too many keys are being checked", fix="ask again in a moment")
        self._waiting += 1
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._pool, self._door.by_key, key)
        finally:
            self._waiting -= 1
        if found is None:
            self._door.attempts.failed(address)
            raise _unknown()
        return found


def _unknown() -> Refused:
    fix = "send a key of yours: Authorization: Bearer tacit_..."
    return Refused(Code.AUTHENTICATION, "this key lets nobody in", fix=fix)


async def person_of(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Person:
    """Whoever the key belongs to; Refused in the same words for every wrong one."""
    door: Door = request.app.state.door
    address = request.client.host if request.client else "-"
    key = credentials.credentials if credentials else ""
    found = door.recall(key) or await request.app.state.checkers.check(key, address)
    request.state.who = found.name
    return found


Caller = Annotated[Person, Depends(person_of)]
