"""Authentication of HTTP requests by a key, sent as a bearer token."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tacit.errors import ErrorCode, Refused
from tacit.serve.addresses import address_group
from tacit.serve.authentication import Authenticator, User, key_id
from tacit.serve.middleware import hold
from tacit.serve.scheduler import Scheduler

_CHECKERS = 2  # threads for keys that are not yet remembered
_MOST_CHECKS = 128  # keys and passwords waiting for these threads, a quarter of them from one address
_bearer = HTTPBearer(auto_error=False, description="A key that `tacit analyst add` printed.")


class KeyCheckPool:
    """Checks keys that are not yet remembered, and passwords, in threads of their own, fairly among addresses."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._scheduler = Scheduler(_CHECKERS, _MOST_CHECKS, "door")

    async def by_key(self, key: str, address: str) -> User:
        """Whoever the key belongs to, or Refused in the same words for every wrong one."""
        if not key:
            raise _unknown_key_error()
        found = await self._check(key_id(key), address, partial(self._authenticator.by_key, key))
        if found is None:
            raise _unknown_key_error()
        return found

    async def by_password(self, name: str, password: str, address: str) -> User | None:
        """Whoever has this name and password."""
        return await self._check(name, address, partial(self._authenticator.by_password, name, password))

    async def _check(self, account: str, address: str, check: Callable[[], User | None]) -> User | None:
        async with self._authenticator.attempts.trying(account, address) as tried:
            found = await asyncio.wrap_future(self._scheduler.submit(address_group(address), check))
            if found is not None:
                tried.record_success()
            return found


def _unknown_key_error() -> Refused:
    fix = "send a key of yours: Authorization: Bearer tacit_..."
    return Refused(ErrorCode.AUTHENTICATION, "the API key is not valid", fix=fix)


async def authenticate_caller(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> User:
    """Whoever the key belongs to; Refused in the same words for every wrong one."""
    authenticator: Authenticator = request.app.state.authenticator
    address = request.client.host if request.client else "-"
    key = credentials.credentials if credentials else ""
    found = authenticator.recall(key) or await request.app.state.checkers.by_key(key, address)
    request.state.user = found.name
    hold(request.scope, found.name)
    return found


Caller = Annotated[User, Depends(authenticate_caller)]
