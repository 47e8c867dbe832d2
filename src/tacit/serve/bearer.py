"""Who calls over HTTP: a key as a bearer token."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tacit.errors import Code, Refused
from tacit.serve.addresses import address_group
from tacit.serve.door import Door, Person, key_id
from tacit.serve.guard import hold
from tacit.serve.scheduler import Scheduler

_CHECKERS = 2  # threads for keys that are not yet remembered
_MOST_CHECKS = 128  # keys and passwords waiting for these threads, a quarter of them from one address
_bearer = HTTPBearer(auto_error=False, description="A key that `tacit analyst add` printed.")


class Checkers:
    """Checks keys that are not yet remembered, and passwords, in threads of their own, fairly among addresses."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._scheduler = Scheduler(_CHECKERS, _MOST_CHECKS, "door")

    async def by_key(self, key: str, address: str) -> Person:
        """Whoever the key belongs to, or Refused in the same words for every wrong one."""
        if not key:
            raise _unknown()
        found = await self._checked(key_id(key), address, partial(self._door.by_key, key))
        if found is None:
            raise _unknown()
        return found

    async def by_password(self, name: str, password: str, address: str) -> Person | None:
        """Whoever has this name and password."""
        return await self._checked(name, address, partial(self._door.by_password, name, password))

    async def _checked(self, account: str, address: str, check: Callable[[], Person | None]) -> Person | None:
        async with self._door.attempts.trying(account, address) as tried:
            found = await asyncio.wrap_future(self._scheduler.submit(address_group(address), check))
            if found is not None:
                tried.succeeded()
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
    found = door.recall(key) or await request.app.state.checkers.by_key(key, address)
    request.state.who = found.name
    hold(request.scope, found.name)
    return found


Caller = Annotated[Person, Depends(person_of)]
