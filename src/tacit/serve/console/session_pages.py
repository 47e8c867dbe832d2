"""Sessions on the owner's page: who is signed in, since when and from where; and ending them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.responses import RedirectResponse, Response

from tacit.serve.console.budget_history import format_time
from tacit.serve.console.requests import BASE, Console, PageRequest
from tacit.serve.console.sessions import ConsoleSession


@dataclass(frozen=True)
class SessionRow:
    """One session as a line of the page."""

    identifier: str
    user: str
    role: str
    opened: str
    used: str
    address: str
    is_own: bool


def list_sessions(console: Console, own: ConsoleSession) -> list[SessionRow]:
    """The sessions of everyone who may still come in, the one used last first."""
    rows = []
    for session in console.sessions.list_open():
        person = console.find_user(session)
        if person is not None:
            rows.append(
                SessionRow(
                    session.identifier,
                    session.user,
                    str(person.role),
                    _format_moment(session.opened),
                    _format_moment(session.used),
                    _describe_addresses(session),
                    session is own,
                )
            )
    return rows


async def end_session(visit: PageRequest) -> Response:
    """End one session; one that is over already is as good."""
    return _end(visit, [visit.form.get("session", "")])


async def end_other_sessions(visit: PageRequest) -> Response:
    """End all sessions but the one that asks for it."""
    others = [session for session in visit.console.sessions.list_open() if session is not visit.session]
    return _end(visit, [session.identifier for session in others])


def _end(visit: PageRequest, identifiers: list[str]) -> Response:
    ended = visit.console.sessions.end(*identifiers)
    if not visit.part:
        return RedirectResponse(f"{BASE}/owner#sessions", 303)
    return visit.page("sessions.html", sessions=list_sessions(visit.console, visit.session), ended=ended)


def _describe_addresses(session: ConsoleSession) -> str:
    if session.last_address == session.address:
        return session.address
    return f"{session.last_address}, opened from {session.address}"


def _format_moment(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC).isoformat())
