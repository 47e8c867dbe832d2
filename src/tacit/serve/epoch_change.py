"""Going over to a new epoch while questions are answered: its data is opened first, and then it is served."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import partial
from pathlib import Path

from tacit.curator.curator import Curator, load_current, open_policy
from tacit.errors import ErrorCode, ParameterError, PolicyError, TacitError
from tacit.policy.model import Policy
from tacit.serve.scheduler import Scheduler
from tacit.serve.service import CuratorService

_log = logging.getLogger("tacit.serve")


class EpochChange:
    """Opens the epoch that a policy's file has now, one at a time, and hands it to a service.

    Only the epoch and where the data lies may differ from what is served: all else that was told to people who are
    connected, tables, caps and who may ask, holds until the server is started again. Whatever goes wrong is said in the
    owner's log, and what is served stays as it was.
    """

    def __init__(self, service: CuratorService, file: Path | None) -> None:
        self._service = service
        self._file = file
        self._opening = Scheduler(1, 1, "epoch")
        self._running: asyncio.Task[None] | None = None
        self._is_asked = False

    @property
    def is_opening(self) -> bool:
        """Whether an epoch is being opened."""
        return self._opening.in_use > 0

    def begin(self) -> None:
        """Begin to open the new epoch; after the one that is being opened, where one is. Wait for nothing."""
        self._is_asked = True
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._change_while_asked())

    async def wait(self) -> None:
        """Wait for what was begun."""
        if self._running is not None:
            await self._running

    async def close(self, patience: float) -> None:
        """Serve no other epoch from now on, and wait for the one that is being opened, no longer than `patience`."""
        self._opening.close()
        if self._running is not None:
            await asyncio.wait([self._running], timeout=patience)

    async def _change_while_asked(self) -> None:
        """Open the epoch of the file until nobody has asked since it was read.

        What is asked for while an epoch is being opened may be a later one, which was not in the file yet.
        """
        while self._is_asked and not self._opening.closed:
            self._is_asked = False
            await self._change()

    async def _change(self) -> None:
        served = self._service.policy
        try:
            curator = await asyncio.wrap_future(self._opening.submit("", partial(_open, self._file, served)))
        except TacitError as error:
            _log.error("epoch %d is served as before: %s", served.epoch, error)
            return
        except Exception:  # noqa: BLE001 - whatever it was, the server goes on
            _log.exception("epoch %d is served as before", served.epoch)
            return
        if self._opening.closed:
            curator.close()
            return
        self._service.replace(curator)
        _log.warning("epoch %d is served from now on", curator.policy.epoch)


def _open(file: Path | None, served: Policy) -> Curator:
    """The curator of the epoch that the file has now. The file is read once: what is checked is what is opened."""
    if file is None:
        raise ParameterError("policy", "is no file, so it cannot be read again", fix="start the server again")
    policy, known = load_current(file)
    if policy.epoch <= served.epoch:
        what = f"the policy has epoch {policy.epoch}, and {served.epoch} is served"
        raise PolicyError(ErrorCode.POLICY, what, fix=f"epoch = {served.epoch + 1}")
    if replace(policy, epoch=served.epoch, source=served.source, copy=served.copy) != served:
        what = "more of the policy has changed than its epoch and where its data lies"
        raise PolicyError(ErrorCode.POLICY, what, fix="stop the server and start it again")
    return open_policy(policy, known=known)
