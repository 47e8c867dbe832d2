"""What a statement does, for the simple and the extended protocol alike: its columns before, and its outcome.

Only `outcome` of a question charges. Columns come from a plan, whose types hold at any epsilon: one at the epsilon that
is set serves the question too, and where there is none, one at epsilon 1 does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tacit.answers.answer import Answer
from tacit.answers.columns import AnswerColumn
from tacit.answers.post_process import answer_columns
from tacit.errors import ErrorCode, TacitError
from tacit.plan.compound_plan import AnyPlan, CompoundPlan
from tacit.plan.question import Question
from tacit.policy.model import Policy
from tacit.query.lexer import Token
from tacit.serve.pgwire import parameters, results
from tacit.serve.pgwire.catalog import Catalog
from tacit.serve.pgwire.catalog_backend import BoundParameters, CatalogResult, CatalogStatement
from tacit.serve.pgwire.catalog_schema import BUDGET, EXPLAINED, quote_name
from tacit.serve.pgwire.credential import WireCredential
from tacit.serve.pgwire.cursors import Cursors, OpenCursor, count_characters
from tacit.serve.pgwire.edits import Edit, EditedText
from tacit.serve.pgwire.protocol import WireColumn
from tacit.serve.pgwire.results import StatementResult
from tacit.serve.pgwire.session_views import SessionView, SessionViews, make_heading
from tacit.serve.pgwire.settings import WATCHED, SessionSettings
from tacit.serve.pgwire.sqlstate import CANCELED, UNKNOWN_SETTING, WireError, to_wire_error
from tacit.serve.pgwire.statements import (
    Statement,
    StatementKind,
    adapt_to_parser,
    classify_statement,
    may_have_no_rows,
)
from tacit.serve.pgwire.tacit_schema import find_explained_questions, has_budget_view
from tacit.serve.pgwire.throttle import Throttle
from tacit.serve.pgwire.transaction import IDLE, SET, Transaction
from tacit.serve.pgwire.types import TEXT
from tacit.serve.responses import is_short
from tacit.serve.service import CuratorService

T = TypeVar("T")

_UNBOUND = BoundParameters()

BYTES_PER_MESSAGE = 32  # of a message count as one message more: so many take about as long to read
_CHARACTERS_PER_MESSAGE = 128  # of a kept statement that is edited again: its tokens are there

_DEFAULT_EPSILON = 1
_CHARGE_STAYS = "a question that was charged stays charged, and asking it again costs nothing more"
_ROWS_HIDDEN = ("rows are not shown, and none were read: tacit.rows is hidden", "")
_TRANSACTION_ENDS = frozenset({StatementKind.COMMIT, StatementKind.ROLLBACK, StatementKind.ROLLBACK_TO})


@dataclass(frozen=True)
class WireServices:
    """What all sessions share: the service, what answers catalog queries, and how many messages an analyst may send.

    `held` is about how many bytes the sessions of each analyst hold for later: rows, statements, values and views.
    """

    service: CuratorService
    catalog: Catalog
    messages: Throttle
    held: dict[str, int] = field(default_factory=dict)


class StatementExecutor:
    """Performs the statements of one person."""

    def __init__(
        self, services: WireServices, credential: WireCredential, transaction: Transaction, database: str
    ) -> None:
        self._services = services
        self.held = services.held
        self.credential = credential
        self._database = database
        self._running: asyncio.Task[Any] | None = None
        self._canceled = False
        self._has_told_source = False  # of the epsilon that the connection started with
        self.transaction = transaction
        self.cursors = Cursors()
        self.views = SessionViews()

    @property
    def policy(self) -> Policy:
        """The policy as this person may name its tables and columns."""
        return self._services.service.policy.asked_by(self._who)

    def classify(self, text: str, found: Sequence[Token]) -> Statement:
        """The statement that these tokens of a text are, or an error for what is not taken."""
        return classify_statement(text, found, self.policy, has_catalog=self._services.catalog.is_installed)

    def cancel(self) -> None:
        """Stop waiting for what runs. A question that is charged stays charged, and its answer is kept."""
        if self._running is not None:
            self._canceled = True
            self._running.cancel()

    async def fields(self, statement: Statement, values: Sequence[Any]) -> tuple[WireColumn, ...] | None:
        """The columns that a statement will have; None where it has none. Free."""
        match statement.kind:
            case StatementKind.QUESTION if statement.copy is None:
                edited, settings = self._question(statement, values), self.transaction.settings
                plan: AnyPlan | None = await self._plan_hidden_rows(edited, settings)
                if plan is None:
                    plan = await self._await_service(edited, self._plan(edited.text, settings))
                return results.answer_columns(_list_columns(plan), settings.intervals)
            case StatementKind.EXPLAIN:
                return (results.make_column("QUERY PLAN", TEXT),)
            case StatementKind.SHOW:
                return self._show(statement).fields
            case StatementKind.FETCH if statement.tag == "FETCH":
                assert statement.fetch is not None
                return self.cursors.find(statement.fetch.name).fields
        return None

    async def outcome(
        self, statement: Statement, values: Sequence[Any] = (), bound: BoundParameters = _UNBOUND
    ) -> StatementResult:
        """What a statement gives. A question is charged here.

        The parameters of a question are `values`; those of a catalog statement are `bound`, as the client sent them.
        """
        self.credential.check()
        if statement.kind not in _TRANSACTION_ENDS:
            self.transaction.check()
        match statement.kind:
            case StatementKind.QUESTION:
                return await self._ask(statement, values, self._question(statement, values), self.transaction.settings)
            case StatementKind.CATALOG:
                return await self._look(statement, bound, self.views.catalog_views)
            case StatementKind.EXPLAIN:
                edited = self._question(statement, values)
                return results.text_result("QUERY PLAN", (await self._explain(edited)).splitlines(), statement.tag)
            case StatementKind.SHOW:
                return self._show(statement)
            case StatementKind.SET:
                for each in statement.assignments:
                    self.transaction.assign(each.name, each.value, local=each.local)
                if statement.tag == "DISCARD ALL":
                    self.cursors.close("")
                    self.views.clear()
            case StatementKind.BEGIN:
                if self.transaction.status == IDLE:
                    self.views.begin()
                self.transaction.begin()
            case StatementKind.COMMIT:
                tag = self.transaction.commit()
                self.cursors.end_transaction(is_committed=tag == "COMMIT")
                if tag != "COMMIT":
                    self.views.roll_back()
                return StatementResult(tag)
            case StatementKind.ROLLBACK:
                if self.transaction.status != IDLE:
                    self.views.roll_back()
                self.transaction.roll_back()
                self.cursors.end_transaction(is_committed=False)
            case StatementKind.ROLLBACK_TO:
                self.transaction.roll_back_to()
            case StatementKind.DECLARE:
                await self._declare(statement, values, bound)
            case StatementKind.FETCH:
                assert statement.fetch is not None
                return await self.cursors.find(statement.fetch.name).fetch(statement.fetch, self._ask_for_cursor)
            case StatementKind.CLOSE:
                self.cursors.close(statement.name)
            case StatementKind.CREATE_VIEW:
                await self._create_view(statement)
            case StatementKind.DROP_VIEW:
                assert statement.dropped is not None
                self.views.drop(statement.dropped)
        return StatementResult(statement.tag)

    async def _declare(self, statement: Statement, values: Sequence[Any], bound: BoundParameters) -> None:
        """Declare a cursor. Its question is planned, so that a refusal comes here, and not asked. Free."""
        assert statement.declaration is not None
        subject, settings = statement.subject, self.transaction.settings
        in_transaction = self.transaction.status != IDLE
        is_catalog = subject.kind is StatementKind.CATALOG
        edited = _keep_text(subject) if is_catalog else self._question(subject, values)
        views = self.views.catalog_views if is_catalog else ()
        size = count_characters(edited, views)
        self.cursors.check(statement.declaration, size, in_transaction=in_transaction)
        if is_catalog:
            types, found = await self.describe_catalog(subject, bound.types)
            bound = replace(bound, types=types, wanted=())
        else:
            free = await self._plan_hidden_rows(edited, settings)
            if free is None and await self._plan_if_free(subject, values, edited, settings) is None:
                _ = subject.is_constant or settings.epsilon_or_within
            found = await self.fields(subject, values)
        self.cursors.opened[statement.declaration.name] = OpenCursor(
            statement.declaration, subject, edited, views, values, bound, settings, found or (), in_transaction
        )

    async def _create_view(self, statement: Statement) -> None:
        """Keep a view. Its columns are found by its plan, so that a refusal comes here. Free."""
        assert statement.view is not None
        self.views.check(statement.view, self.policy)
        edited = self._question(statement.subject, ())
        heading = make_heading(statement.view)
        shown = f"WITH {heading} AS ({edited.text}) SELECT * FROM {quote_name(statement.view.name)} LIMIT 0"
        whole = EditedText(
            statement.text, statement.start, statement.end, [Edit(statement.start, statement.end, shown)]
        )
        plan = await self._await_service(whole, self._plan(shown, self.transaction.settings))
        fields = results.answer_columns(_list_columns(plan), intervals=False)
        view = SessionView(statement.view.name, edited.text, fields, heading)
        if self._services.catalog.is_installed:
            await self._try_in_catalog(view)
        self.views.define(view)

    async def _try_in_catalog(self, view: SessionView) -> None:
        """Make a view in the catalog, so that a name or columns that PostgreSQL does not take are refused here."""
        views = SessionViews(self.views.defined | {view.name: view}).catalog_views
        work = self._services.catalog.describe(self._who, self._database, CatalogStatement("SELECT", views=views))
        try:
            await self._await_service(EditedText("", 0, 0, ()), work)
        except WireError as error:
            error.position = 0  # it is a place in a text of ours
            error.hint = error.hint or "choose another name for the view, or for its columns"
            raise

    async def _ask_for_cursor(self, cursor: OpenCursor) -> StatementResult:
        """The answer of the question that a cursor was declared for, at the settings of its DECLARE."""
        if cursor.statement.kind is StatementKind.CATALOG:
            return await self._look(cursor.statement, cursor.bound, cursor.views)
        return await self._ask(cursor.statement, cursor.values, cursor.edited, cursor.settings)

    async def _plan(self, text: str, settings: SessionSettings) -> AnyPlan:
        """A plan of a question, at the epsilon that is set if it can be."""
        service = self._services.service
        try:
            epsilon, within = settings.epsilon_or_within
            question = Question(text, epsilon, within, settings.confidence, dialect=settings.dialect)
            return await service.plan(self._who, question)
        except WireError:
            pass  # there is no epsilon yet
        except TacitError as error:
            if error.code in {ErrorCode.RATE, ErrorCode.BUSY}:
                raise
        return await service.plan(self._who, Question(text, epsilon=_DEFAULT_EPSILON, dialect=settings.dialect))

    @property
    def _who(self) -> str:
        return self.credential.name

    def _question(self, statement: Statement, values: Sequence[Any]) -> EditedText:
        """A statement as the parser reads it, kept where it depends on the policy alone."""
        is_kept = not values and not self.views.defined
        if is_kept and statement.kept.edited is not None and statement.kept.policy is self.policy:
            return statement.kept.edited
        found = statement.tokens
        edits = [*parameters.substitute_values(found, values), *adapt_to_parser(found, self.policy)]
        edits += self.views.expand(found)
        edited = EditedText(statement.text, statement.start, statement.end, edits)
        if is_kept:
            statement.kept.policy, statement.kept.edited = self.policy, edited
        return edited

    def estimate_rereading(self, statement: Statement, bound: BoundParameters) -> float:
        """How many messages it counts as to read a kept statement and its values again."""
        subject = statement.subject
        is_kept = not bound.types and not self.views.defined and subject.kept.policy is self.policy
        characters = 0 if is_kept else subject.end - subject.start
        return (
            characters / _CHARACTERS_PER_MESSAGE
            + bound.byte_size / BYTES_PER_MESSAGE
            + self.estimate_fetching(statement)
        )

    def estimate_fetching(self, statement: Statement) -> float:
        """How many messages it counts as to read the question of a cursor that is fetched from for the first time."""
        cursor = None if statement.fetch is None else self.cursors.opened.get(statement.fetch.name)
        if cursor is None or cursor.outcome is not None:
            return 0.0
        return self.estimate_rereading(cursor.statement, cursor.bound)

    async def _ask(
        self, statement: Statement, values: Sequence[Any], edited: EditedText, settings: SessionSettings
    ) -> StatementResult:
        """Ask a question. One that has no rows whatever the data holds is answered by its plan, and asked of nobody."""
        hidden = await self._plan_hidden_rows(edited, settings)
        if hidden is not None:
            fields = results.answer_columns(_list_columns(hidden), settings.intervals)
            return StatementResult("SELECT", fields, notices=() if is_quiet(settings) else (_ROWS_HIDDEN,))
        free = await self._plan_if_free(statement, values, edited, settings)
        if free is not None and free.empty is not None:
            return StatementResult("SELECT", results.answer_columns(free.empty, settings.intervals))
        # constants cost nothing at any epsilon, so none need be set for them
        is_free = free is not None or statement.is_constant
        epsilon, within = (_DEFAULT_EPSILON, None) if is_free else settings.epsilon_or_within
        question = Question(edited.text, epsilon, within, settings.confidence, settings.request, settings.dialect)
        answer = await self._await_service(edited, self._services.service.ask(self._who, question))
        if settings.request:
            self.transaction.assign("tacit.request", None, local=False)
        fields = results.answer_columns(answer.headings, settings.intervals)
        rows = await self._await_service(edited, self._rows(answer, settings.intervals))
        return StatementResult("SELECT", fields, rows, self._collect_notices(answer, settings, is_free=is_free))

    def _collect_notices(
        self, answer: Answer, settings: SessionSettings, *, is_free: bool
    ) -> tuple[tuple[str, str], ...]:
        """The receipt; and with the first question what each spends, where that was not SET but by the connection."""
        if is_quiet(settings):
            return ()
        receipt, source = results.receipt_notice(answer), self.transaction.find_privacy_source(settings)
        if self._has_told_source or is_free or source in {"", SET}:
            return (receipt,)
        self._has_told_source = True
        told = f"each question has {settings.privacy}, set by {source}; another one: SET tacit.epsilon = 0.5"
        return (receipt, (told, ""))

    async def _plan_hidden_rows(self, edited: EditedText, settings: SessionSettings) -> CompoundPlan | None:
        """The plan of a question for single rows as one for none of them, where the session hides rows; else None.

        **Theorem.** It shows what the policy says, and nothing of the data. Proof: the plan is that of the question
        with LIMIT 0, which has no rows whatever the data holds, and nobody is asked.
        """
        if not settings.hides_rows:
            return None
        try:
            await self._await_service(edited, self._plan(edited.text, settings))
        except WireError as error:
            if error.code is not ErrorCode.RAW_COLUMN:
                return None  # it is refused where it is asked
        else:
            return None
        plan = await self._await_service(edited, self._plan(edited.without_rows, settings))
        return plan if isinstance(plan, CompoundPlan) and plan.empty is not None else None

    async def _plan_if_free(
        self, statement: Statement, values: Sequence[Any], edited: EditedText, settings: SessionSettings
    ) -> CompoundPlan | None:
        """The plan of a question that releases nothing; None where it may, or where that need not be known.

        It need be known of a question that may have no rows, and where no epsilon is set.
        """
        is_priced = bool(settings.get("tacit.epsilon") or settings.get("tacit.within"))
        if statement.is_constant or (is_priced and not may_have_no_rows(statement, values)):
            return None
        try:
            plan = await self._await_service(edited, self._plan(edited.text, settings))
        except WireError as error:
            if error.sqlstate == CANCELED or is_priced:
                raise
            return None  # what is said first is that there is no epsilon
        return plan if isinstance(plan, CompoundPlan) and not plan.members else None

    async def _rows(self, answer: Answer, intervals: bool) -> results.Rows:
        """The rows of an answer; those of a long one are made in a thread, not on the event loop."""
        if is_short(answer):
            return results.answer_rows(answer, intervals)
        return await self._services.service.write(self._who, results.answer_rows, answer, intervals)

    async def _explain(self, edited: EditedText) -> str:
        settings = self.transaction.settings
        epsilon, within = settings.epsilon_or_within
        question = Question(edited.text, epsilon, within, settings.confidence, dialect=settings.dialect)
        return str(await self._await_service(edited, self._services.service.explain(self._who, question)))

    async def describe_catalog(
        self, statement: Statement, types: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[WireColumn, ...] | None]:
        """The types of the parameters of a catalog statement, of which some may be given, and its columns. Free."""
        self.credential.check()
        edited = _keep_text(statement)
        self._admit(edited)
        request = CatalogStatement(
            edited.text,
            self.transaction.settings.shared_settings,
            parameters=BoundParameters(types),
            views=self.views.catalog_views,
        )
        return await self._await_catalog(
            statement, edited, self._services.catalog.describe(self._who, self._database, request)
        )

    async def _look(
        self, statement: Statement, bound: BoundParameters, views: tuple[tuple[str, str], ...]
    ) -> StatementResult:
        """Run a catalog statement. What it sets is kept by the session."""
        edited = _keep_text(statement)
        self._admit(edited)
        settings = self.transaction.settings.shared_settings
        questions = find_explained_questions(statement.tokens, bound.values)
        if questions:
            told = {each: await self._explain(EditedText(each, 0, len(each), ())) for each in questions}
            settings[EXPLAINED] = json.dumps(told)
        if has_budget_view(statement.tokens):
            budget = await self._await_service(edited, self._services.service.budget(self._who))
            privacy = self.transaction.settings
            source = self.transaction.find_privacy_source(privacy)
            settings[BUDGET] = json.dumps(results.budget_row(budget, privacy.privacy, source))
        sets = any(token.text.lower() == "set_config" for token in statement.tokens)
        request = CatalogStatement(edited.text, settings, WATCHED if sets else (), bound, views)
        work = self._services.catalog.run(self._who, self._database, request)
        found: CatalogResult = await self._await_catalog(statement, edited, work)
        for name, value, local in found.changed_settings():
            self.transaction.assign(name, value, local=local)
        return StatementResult(statement.tag, found.fields, found.rows)

    def _admit(self, edited: EditedText) -> None:
        """Count a catalog statement as a request of this analyst."""
        try:
            self._services.service.admit(self._who)
        except TacitError as error:
            raise to_wire_error(error, edited.text, edited.original_offset) from None

    async def _await_catalog(self, statement: Statement, edited: EditedText, work: Awaitable[T]) -> T:
        """What the catalog gives; its errors are about the client's text."""
        try:
            return await self._await_service(edited, work)
        except WireError as error:
            if error.position:
                error.position += statement.start
            if error.sqlstate == UNKNOWN_SETTING and not error.hint:
                error.hint = "SHOW ALL"
            raise

    def _show(self, statement: Statement) -> StatementResult:
        settings = self.transaction.settings
        if not statement.name:
            columns = (results.make_column("name", TEXT), results.make_column("setting", TEXT))
            return StatementResult("SHOW", columns, settings.list_settings())
        return results.text_result(statement.name, [settings.get(statement.name)], "SHOW")

    async def _await_service(self, edited: EditedText, work: Awaitable[T]) -> T:
        """What the service gives, in a task that a cancel can stop; its errors are about the client's text."""
        self._canceled = False
        self._running = asyncio.ensure_future(work)
        seconds = self.transaction.settings.timeout
        try:
            found: T = await (self._running if seconds is None else asyncio.wait_for(self._running, seconds))
            return found
        except TimeoutError:
            raise WireError(CANCELED, f"canceled at statement_timeout; {_CHARGE_STAYS}", "ask again") from None
        except TacitError as error:
            raise to_wire_error(error, edited.text, edited.original_offset) from None
        except asyncio.CancelledError:
            if not self._canceled:
                raise
            raise WireError(CANCELED, f"canceled; {_CHARGE_STAYS}", "ask again") from None
        finally:
            self._running = None


def is_quiet(settings: SessionSettings) -> bool:
    """Whether the client wants no notices."""
    return settings.get("client_min_messages") in {"warning", "error", "fatal", "panic"}


def _keep_text(statement: Statement) -> EditedText:
    """The text of a statement as it is."""
    return EditedText(statement.text, statement.start, statement.end, ())


def _list_columns(plan: AnyPlan) -> tuple[AnswerColumn, ...]:
    """The columns that a plan's answer has; those of an empty one are as they would be with rows."""
    empty = plan.empty if isinstance(plan, CompoundPlan) else None
    return answer_columns(plan.recipe) if empty is None else empty
