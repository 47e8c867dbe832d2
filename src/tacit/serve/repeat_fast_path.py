"""The short way of a repeat over HTTP: what the full application would answer, with none of its steps in between.

It takes only what is plainly a repeat: a key that was checked before, a body that reads, an answer that is kept.
Whatever else comes, wrong or merely new, goes to the application as it came.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Response
from pydantic import ValidationError

from tacit.errors import TacitError
from tacit.plan.question import Question
from tacit.serve.authentication import Authenticator
from tacit.serve.metrics import Metrics
from tacit.serve.middleware import Application, Message, Receive, Send, hold
from tacit.serve.models import QuestionBody
from tacit.serve.responses import answer_response, error_response, negotiate_media_type
from tacit.serve.service import CuratorService

_READ = frozenset({b"authorization", b"content-type", b"accept", b"idempotency-key", b"content-encoding"})


@dataclass(frozen=True)
class _RepeatRequest:
    """Who asks what again, and in which media type."""

    analyst: str
    question: Question
    media: str


class RepeatFastPath:
    """Answers repeats at `path`, and leaves all else to the application."""

    def __init__(
        self,
        application: Application,
        service: CuratorService,
        authenticator: Authenticator,
        metrics: Metrics,
        *,
        path: str,
        route: Any,
    ) -> None:
        self._application = application
        self._service = service
        self._authenticator = authenticator
        self._metrics = metrics
        self._path = path
        self._route = route  # by which a response is counted

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] != self._path or scope["method"] != "POST":
            await self._application(scope, receive, send)
            return
        first = await receive()
        repeat = None if first["type"] != "http.request" or first.get("more_body") else self._read(scope, first["body"])
        if repeat is None:
            await self._application(scope, _replay_message(first, receive), send)
            return
        scope["route"], scope["state"]["user"] = self._route, repeat.analyst
        response = await self._answer(scope, repeat)
        await response(scope, receive, send)

    def _read(self, scope: Message, body: bytes) -> _RepeatRequest | None:
        """The repeat that a request plainly is, or None; of a body whose sender is not known, nothing is read."""
        found: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in _READ:
                if name in found:
                    return None
                found[name] = value
        scheme, _, key = found.pop(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or found.pop(b"content-type", b"") != b"application/json":
            return None
        accept = found.pop(b"accept", b"")
        if found or scope["query_string"]:
            return None
        try:
            analyst = self._authenticator.recall(key.decode("latin-1"))
            if analyst is None:
                return None
            question = QuestionBody.model_validate(json.loads(body)).question()
            if not self._service.knows(analyst.name, question):
                return None
            return _RepeatRequest(analyst.name, question, negotiate_media_type(accept.decode("latin-1")))
        except (ValidationError, ValueError, RecursionError, TacitError):
            return None

    async def _answer(self, scope: Message, repeat: _RepeatRequest) -> Response:
        try:
            hold(scope, repeat.analyst)
            answer = await self._service.ask(repeat.analyst, repeat.question)
            return await answer_response(answer, repeat.media, partial(self._service.write, repeat.analyst))
        except TacitError as error:
            self._metrics.error(str(error.code))
            return error_response(error)


def _replay_message(first: Message, receive: Receive) -> Receive:
    """What the application reads: a message that was read here, and then those that follow."""
    given = [first]

    async def next_message() -> Message:
        return given.pop() if given else await receive()

    return next_message
