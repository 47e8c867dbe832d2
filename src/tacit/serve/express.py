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
from tacit.serve.desk import Desk
from tacit.serve.door import Door
from tacit.serve.forms import QuestionForm
from tacit.serve.guard import Application, Message, Receive, Send, hold
from tacit.serve.metrics import Metrics
from tacit.serve.replies import chosen, failure, reply

_READ = frozenset({b"authorization", b"content-type", b"accept", b"idempotency-key", b"content-encoding"})


@dataclass(frozen=True)
class _Repeat:
    """Who asks what again, and in which media type."""

    who: str
    question: Question
    media: str


class Express:
    """Answers repeats at `path`, and leaves all else to the application."""

    def __init__(
        self, application: Application, desk: Desk, door: Door, metrics: Metrics, *, path: str, route: Any
    ) -> None:
        self._application = application
        self._desk = desk
        self._door = door
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
            await self._application(scope, _after(first, receive), send)
            return
        scope["route"], scope["state"]["who"] = self._route, repeat.who
        response = await self._answer(scope, repeat)
        await response(scope, receive, send)

    def _read(self, scope: Message, body: bytes) -> _Repeat | None:
        """The repeat that a request plainly is, or None."""
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
            who = self._door.recall(key.decode("latin-1"))
            question = QuestionForm.model_validate(json.loads(body)).question()
            if who is None or not self._desk.knows(who.name, question):
                return None
            return _Repeat(who.name, question, chosen(accept.decode("latin-1")))
        except (ValidationError, ValueError, RecursionError, TacitError):
            return None

    async def _answer(self, scope: Message, repeat: _Repeat) -> Response:
        try:
            hold(scope, repeat.who)
            answer = await self._desk.ask(repeat.who, repeat.question)
            return await reply(answer, repeat.media, partial(self._desk.write, repeat.who))
        except TacitError as error:
            self._metrics.error(str(error.code))
            return failure(error)


def _after(first: Message, receive: Receive) -> Receive:
    """What the application reads: a message that was read here, and then those that follow."""
    given = [first]

    async def next_message() -> Message:
        return given.pop() if given else await receive()

    return next_message
