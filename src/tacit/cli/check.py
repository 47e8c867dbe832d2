"""`tacit check`: see what a policy promises, and whether the data is as declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from tacit.cli.options import DEFAULT_POLICY, JsonOption, PolicyOption
from tacit.cli.output import describe_error, print_json, show_progress
from tacit.errors import ErrorCode, LedgerError, PolicyError
from tacit.statuses import STATUSES
from tacit.terminal import several_lines

if TYPE_CHECKING:
    from tacit.policy.check import PolicyAdvice
    from tacit.policy.model import Policy
    from tacit.policy.promise import RecordedSpending

_FEW_ALIKE = 4  # remarks with the same words; more of them are one line


def check(
    policy: PolicyOption = DEFAULT_POLICY,
    as_json: JsonOption = False,
    for_editors: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of policies, for editors, and check nothing.")
    ] = False,
) -> None:
    """Check a policy and the data it points at; say what it promises."""
    from tacit.policy.check import check_policy
    from tacit.policy.load import find_mistakes, load
    from tacit.policy.promise import describe_guarantee, find_overspent

    if for_editors:
        from tacit.policy.schema import build_json_schema

        print_json(build_json_schema())
        return
    if mistakes := find_mistakes(policy):
        _list_mistakes(mistakes, as_json=as_json)
    loaded = load(policy)
    unlike, cut = ([], []) if loaded.source is None else _check_data(loaded)
    spent, unread = _load_spent(loaded)
    found = (*unread, *(() if spent is None else find_overspent(loaded, spent)), *check_policy(loaded), *unlike, *cut)
    promised = describe_guarantee(loaded, spent)
    if as_json:
        print_json({"promise": promised, "remarks": [{"at": r.path, "text": r.text} for r in found]})
        return
    data = ". Not all data is as declared: see below" if unlike else ", and the data is as declared"
    typer.echo(f"{policy.name} is in order{'' if loaded.source is None else data}.")
    typer.echo(promised)
    for line in _gather_remarks(found):
        typer.echo(f"· {line}")


def _gather_remarks(remarks: Sequence[PolicyAdvice]) -> Iterator[str]:
    """The remarks in their order, with those that say the same of many places in one line."""
    places: dict[str, list[str]] = {}
    for remark in remarks:
        places.setdefault(remark.text, []).append(remark.path)
    for remark in remarks:
        alike = places[remark.text]
        if len(alike) <= _FEW_ALIKE:
            yield f"{remark.path}: {remark.text}"
        elif remark.path == alike[0]:
            yield f"{remark.path} and {len(alike) - 1} more, such as {alike[1]}: {remark.text}"


def _list_mistakes(mistakes: list[PolicyError], *, as_json: bool) -> NoReturn:
    """Say all that is wrong with a policy; of several the last is raised, so that the command fails as with one."""
    if as_json and len(mistakes) > 1:
        print_json({"error": describe_error(mistakes[0]), "errors": [describe_error(each) for each in mistakes]})
        raise typer.Exit(STATUSES[ErrorCode.POLICY].exit)
    for mistake in mistakes[:-1]:
        typer.echo(f"{several_lines(str(mistake))}\n", err=True)
    raise mistakes[-1]


def _load_spent(policy: Policy) -> tuple[RecordedSpending | None, list[PolicyAdvice]]:
    """What the policy's ledger has charged, None where there is none yet; and remarks: on what an edit makes cost
    again, on locked tables, or that the ledger cannot be read.
    """
    from tacit.curator.all_budgets import load_spent
    from tacit.curator.policy_edits import list_edit_remarks
    from tacit.curator.table_status import list_lock_remarks
    from tacit.ledger.reader import LedgerReader
    from tacit.policy.check import PolicyAdvice

    books = policy.books
    if books is None or (isinstance(books.store, Path) and not books.store.exists()):
        return None, []
    try:
        with LedgerReader(books.store, wait=5.0) as history:
            remarks = [*list_edit_remarks(policy, history), *list_lock_remarks(policy, history)]
            return load_spent(policy, history), remarks
    except LedgerError as error:
        return None, [PolicyAdvice("ledger.store", f"was not read, so what is spent is not known: {error.what}")]


def _check_data(policy: Policy) -> tuple[list[PolicyAdvice], list[PolicyAdvice]]:
    """The data has what the policy declares, and what is declared unique is.

    Remarks on values that are not as declared, and on what is not counted.
    """
    from tacit.curator import coverage
    from tacit.curator.resources import open_engine
    from tacit.curator.source_report import list_source_remarks
    from tacit.curator.tables import check_join_columns
    from tacit.curator.value_report import describe_values

    with show_progress() as tell:
        engine = open_engine(policy, progress=lambda what, share: tell(share, what))
    try:
        check_join_columns(policy, engine)
        values = describe_values(policy, engine)
        unlike = [*list_source_remarks(policy, engine), *values.unlike]
        return unlike, [*values.missing, *coverage.list_coverage_remarks(policy, engine)]
    finally:
        engine.close()
