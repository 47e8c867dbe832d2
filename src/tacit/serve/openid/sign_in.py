"""Signing in with an identity provider, for pages: what waits for the provider does so in threads of its own."""

from __future__ import annotations

import asyncio
from functools import partial

from tacit.serve.addresses import address_group
from tacit.serve.openid.configuration import OpenIdConfiguration
from tacit.serve.openid.id_token import TokenIdentity
from tacit.serve.openid.provider import OpenIdProvider
from tacit.serve.openid.sign_in_flow import SignInFlow, SignInFlows
from tacit.serve.scheduler import Scheduler

_WORKERS = 4  # threads that may wait for the provider
_MOST_WAITING = 64  # sign-ins that wait for these threads, a quarter of them from one address


class OpenIdSignIn:
    """One provider, the sign-ins that were begun with it, and threads that are used for nothing else.

    A provider that is slow or down holds these threads only: questions, keys and passwords have others.
    """

    def __init__(self, configuration: OpenIdConfiguration) -> None:
        self.configuration = configuration
        self.provider = OpenIdProvider(configuration)
        self.flows = SignInFlows()
        self._scheduler = Scheduler(_WORKERS, _MOST_WAITING, "openid")

    async def begin(self, return_path: str, address: str, *, again: bool = False) -> tuple[str, SignInFlow]:
        """Where to send a browser, and the flow whose cookie it gets."""
        flow = self.flows.begin(return_path)
        work = partial(self.provider.build_authorization_url, flow, again=again)
        return await asyncio.wrap_future(self._scheduler.submit(address_group(address), work)), flow

    async def redeem(self, code: str, flow: SignInFlow, issuer: str | None, address: str) -> TokenIdentity:
        """Who signed in, by a code that came back; Refused where the provider does not say so."""
        work = partial(self.provider.redeem, code, flow, issuer)
        return await asyncio.wrap_future(self._scheduler.submit(address_group(address), work))
