"""What a statement does, for the simple and the extended protocol alike: its columns before, and its outcome.

Only `outcome` of a question charges. Columns come from a plan, whose types hold at any price: one at the price that is
set serves the question too, and where there is none, one at the price 1 does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tacit.answers.answer import Answer
from tacit.answers.finish import headings_of
from tacit.errors import Code, TacitError
from tacit.plan.plan import Plan
from tacit.plan.question import Question
from tacit.policy.model import Policy
from tacit.serve.desk import Desk
from tacit.serve.pgwire import looks, parameters, results
from tacit.serve.pgwire.catalog import CatalogRunner
from tacit.serve.pgwire.codec import Field
from tacit.serve.pgwire.credential import Credential
from tacit.serve.pgwire.lexer import Edited
from tacit.serve.pgwire.results import Outcome
from tacit.serve.pgwire.statements import Kind, Statement, for_parser
from tacit.serve.pgwire.throttle import Throttle
from tacit.serve.pgwire.transaction import Transaction
from tacit.serve.pgwire.types import TEXT
from tacit.serve.pgwire.words import CANCELED, Complaint, complaint
from tacit.serve.replies import is_short

T = TypeVar("T")

_ANY_PRICE = 1
_STAYS = "a question that was charged stays charged, and asking it again costs nothing more"
_ENDS = frozenset({Kind.COMMIT, Kind.ROLLBACK, Kind.ROLLBACK_TO})


@dataclass(frozen=True)
class House:
    """What all sessions share: the desk, what answers catalog queries, and how many messages an analyst may send."""

    desk: Desk
    catalog: CatalogRunner
    messages: Throttle

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self.desk.policy


class Performer:
    """Performs the statements of one person."""

    def __init__(self, house: House, credential: Credential, transaction: Transaction, database: str) -> None:
        self._house = house
        self.credential = credential
        self._database = database
        self._running: asyncio.Task[Any] | None = None
        self._canceled = False
        self.transaction = transaction

    def cancel(self) -> None:
        """Stop waiting for what runs. A question that is charged stays charged, and its answer is kept."""
        if self._running is not None:
            self._canceled = True
            self._running.cancel()

    async def fields(self, statement: Statement, values: Sequence[Any]) -> tuple[Field, ...] | None:
        """The columns that a statement will have; None where it has none. Free."""
        match statement.kind:
            case Kind.QUESTION:
                edited = self._question(statement, values)
                plan = await self._asked(edited, self._plan(edited.text))
                return results.fields_of(headings_of(plan.recipe), self.transaction.settings.intervals)
            case Kind.CATALOG:
                return (await self._look(statement, values, types_only=True)).fields
            case Kind.EXPLAIN:
                return (results.field("QUERY PLAN", TEXT),)
            case Kind.SHOW:
                return self._show(statement).fields
        return None

    async def outcome(self, statement: Statement, values: Sequence[Any]) -> Outcome:
        """What a statement gives. A question is charged here."""
        self.credential.check()
        if statement.kind not in _ENDS:
            self.transaction.check()
        match statement.kind:
            case Kind.QUESTION:
                return await self._ask(statement, values)
            case Kind.CATALOG:
                return await self._look(statement, values)
            case Kind.EXPLAIN:
                edited = self._question(statement, values)
                return results.texts("QUERY PLAN", (await self._explain(edited)).splitlines(), statement.tag)
            case Kind.SHOW:
                return self._show(statement)
            case Kind.SET:
                for each in statement.assignments:
                    self.transaction.assign(each.name, each.value, local=each.local)
            case Kind.BEGIN:
                self.transaction.begin()
            case Kind.COMMIT:
                return Outcome(self.transaction.commit())
            case Kind.ROLLBACK:
                self.transaction.roll_back()
            case Kind.ROLLBACK_TO:
                self.transaction.roll_back_to()
        return Outcome(statement.tag)

    async def _plan(self, text: str) -> Plan:
        """A plan of a question, at the price that is set if it can be."""
        desk, settings = self._house.desk, self.transaction.settings
        try:
            epsilon, within = settings.price
            return await desk.plan(self._who, Question(text, epsilon, within, settings.confidence))
        except Complaint:
            pass  # there is no price yet
        except TacitError as error:
            if error.code in {Code.RATE, Code.BUSY}:
                raise
        return await desk.plan(self._who, Question(text, epsilon=_ANY_PRICE))

    @property
    def _who(self) -> str:
        return self.credential.name

    def _question(self, statement: Statement, values: Sequence[Any]) -> Edited:
        found = statement.tokens
        edits = [*parameters.edits(found, values), *for_parser(found, self._house.policy)]
        return Edited(statement.text, statement.start, statement.end, edits)

    async def _ask(self, statement: Statement, values: Sequence[Any]) -> Outcome:
        settings = self.transaction.settings
        epsilon, within = settings.price
        edited = self._question(statement, values)
        question = Question(edited.text, epsilon, within, settings.confidence, settings.request)
        answer = await self._asked(edited, self._house.desk.ask(self._who, question))
        if settings.request:
            self.transaction.assign("tacit.request", None, local=False)
        fields = results.fields_of(answer.headings, settings.intervals)
        rows = await self._asked(edited, self._rows(answer, settings.intervals))
        quiet = settings.get("client_min_messages") in {"warning", "error", "fatal", "panic"}
        return Outcome("SELECT", fields, rows, None if quiet else results.notice_of(answer))

    async def _rows(self, answer: Answer, intervals: bool) -> results.Rows:
        """The rows of an answer; those of a long one are made in a thread, not on the event loop."""
        if is_short(answer):
            return results.rows_of(answer, intervals)
        return await self._house.desk.write(self._who, results.rows_of, answer, intervals)

    async def _explain(self, edited: Edited) -> str:
        settings = self.transaction.settings
        epsilon, within = settings.price
        question = Question(edited.text, epsilon, within, settings.confidence)
        return str(await self._asked(edited, self._house.desk.explain(self._who, question)))

    async def _look(self, statement: Statement, values: Sequence[Any], *, types_only: bool = False) -> Outcome:
        found = statement.tokens
        edited = Edited(statement.text, statement.start, statement.end, parameters.edits(found, values, casts=True))
        explained = {}
        for question in looks.explains(edited.text):
            whole = Edited(question, 0, len(question), ())
            explained[question] = "" if types_only else await self._explain(whole)
        budget = None
        if looks.names_budget(edited.text) and not types_only:
            budget = await self._asked(edited, self._house.desk.budget(self._who))
        columns = ", ".join(f"{sql} AS {name}" for name, sql in results.budget_columns(budget).items())
        settings = dict(self.transaction.settings.listed())
        catalog, desk = self._house.catalog, self._house.desk

        async def run() -> tuple[tuple[Field, ...], results.Rows]:
            names = replace(
                await catalog.names(),
                user=self._who,
                database=self._database,
                budget=f"SELECT {columns}",
                explained=explained,
                settings=settings,
            )
            prepared = await desk.look(self._who, lambda: catalog.prepare(edited.text, names))
            return await catalog.run(prepared, names)

        try:
            fields, rows = await self._asked(edited, run())
        except Complaint as error:
            if error.position:
                error.position = edited.written(error.position - 1) + 1
            raise
        return Outcome("SELECT", fields, rows)

    def _show(self, statement: Statement) -> Outcome:
        settings = self.transaction.settings
        if not statement.name:
            columns = (results.field("name", TEXT), results.field("setting", TEXT))
            return Outcome("SHOW", columns, settings.listed())
        return results.texts(statement.name, [settings.get(statement.name)], "SHOW")

    async def _asked(self, edited: Edited, work: Awaitable[T]) -> T:
        """What the desk gives, in a task that a cancel can stop; its errors as complaints about the client's text."""
        self._canceled = False
        self._running = asyncio.ensure_future(work)
        seconds = self.transaction.settings.timeout
        try:
            found: T = await (self._running if seconds is None else asyncio.wait_for(self._running, seconds))
            return found
        except TimeoutError:
            raise Complaint(CANCELED, f"canceled at statement_timeout; {_STAYS}", "ask again") from None
        except TacitError as error:
            raise complaint(error, edited.text, edited.written) from None
        except asyncio.CancelledError:
            if not self._canceled:
                raise
            raise Complaint(CANCELED, f"canceled; {_STAYS}", "ask again") from None
        finally:
            self._running = None
