"""`tacit ledger`: what the owner asks of the ledger. Reading never changes it, and works on a damaged one too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import DEFAULT_POLICY, JsonOption, PolicyOption, complete_from
from tacit.terminal import escaped_json, one_line

if TYPE_CHECKING:
    from tacit.ledger.reader import LedgerReader
    from tacit.ledger.witness import Witness
    from tacit.policy.model import LedgerLocation, Policy

app = typer.Typer(help="Verify the ledger, read what it says, or go on from a loss.", no_args_is_help=True)
_DAMAGED = 6


@app.command()
def verify(
    policy: PolicyOption = DEFAULT_POLICY,
    as_json: JsonOption = False,
    receipt: Annotated[
        Path | None,
        typer.Option("--receipt", help="Also check a receipt: an answer printed with --json.", metavar="FILE"),
    ] = None,
) -> None:
    """Check every entry from the first one: hashes, sums, caps, answers, witness. Exit code 6 if anything is wrong."""
    from tacit.errors import LedgerError
    from tacit.ledger.verify import check_receipt
    from tacit.ledger.verify import verify as check
    from tacit.ledger.witness import Witness

    _, books = _load_policy(policy)
    witness = Witness(books.witness)
    with _open_reader(books) as history, _show_progress(witness) as progress:
        report = check(history, witness, progress)
        problems = list(report.problems)
        if receipt is not None:
            try:
                problems += check_receipt(history, _read_receipt(receipt))
            except LedgerError as error:  # a ledger that contradicts itself confirms nothing
                problems.append(f"the receipt cannot be checked: {error.what}")
    if as_json:
        _print_json({"ok": not problems, "entries": report.entries, "head": report.head, "problems": problems})
    else:
        order = "NOT in order" if problems else "all in order"
        typer.echo(f"{report.entries:,} entries, {order}, head {report.head}")
        for problem in problems:
            typer.echo(f"· {problem}")
        if receipt is not None and not problems:
            typer.echo("The receipt is this ledger's, and the ledger still holds what it says.")
    if problems:
        raise typer.Exit(_DAMAGED)


@app.command()
def history(
    policy: PolicyOption = DEFAULT_POLICY,
    as_json: JsonOption = False,
    last: Annotated[int, typer.Option("--last", "-n", help="Show so many of the newest entries.", min=1)] = 20,
) -> None:
    """Show what was charged to whom, newest last. Of a question the ledger keeps a hash, and not its text."""
    from collections import deque

    with _open_reader(_load_policy(policy)[1]) as ledger:
        entries = deque(ledger.entries(), maxlen=last)
    rows: list[dict[str, Any]] = [
        {
            "entry": entry.sequence,
            "time": entry.time,
            "kind": str(entry.kind),
            "who": entry.analyst,
            "epsilon": entry.charge.text,
            "question": entry.key[:12],
            "request": entry.request,
        }
        for entry in entries
    ]
    if as_json:
        _print_json(rows)
        return
    heads = {"entry": "entry", "time": "time (UTC)", "kind": "kind", "who": "who"}
    heads |= {"epsilon": "epsilon", "question": "question", "request": "request"}
    for row in (heads, *({**row, "time": row["time"][:19], "who": row["who"] or "-"} for row in rows)):
        typer.echo(
            f"{row['entry']:>6}  {row['time']:<19}  {row['kind']:<8}  {row['who']:<12}  "
            f"{row['epsilon']:>8}  {row['question']:<12}  {one_line(row['request'])}".rstrip()
        )


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="The file to write, which is not there yet.", metavar="FILE")],
    policy: PolicyOption = DEFAULT_POLICY,
    as_json: JsonOption = False,
) -> None:
    """Copy the ledger to a file while it is in use, and check the copy. Exit code 6 if anything is wrong."""
    from tacit.ledger.backup import back_up_ledger

    _, books = _load_policy(policy)
    report = back_up_ledger(books.store, target)
    if as_json:
        _print_json(
            {"ok": report.is_whole, "entries": report.entries, "head": report.head, "problems": list(report.problems)}
        )
    elif report.is_whole:
        how = "all in order" if report.ok else "all there, some charged by the rules of an earlier version"
        typer.echo(f"{report.entries:,} entries, {how}, head {report.head}")
        typer.echo(f"Copied to {target}. Keep the key with it ({books.key}), and the witness elsewhere.")
    else:
        typer.echo("The ledger is NOT in order; nothing was copied.")
    for problem in report.problems if not as_json else ():
        typer.echo(f"· {problem}")
    if not report.is_whole:
        raise typer.Exit(_DAMAGED)


@app.command()
def export(policy: PolicyOption = DEFAULT_POLICY) -> None:
    """Print the deployment as JSON for a public registry: unit, relation, epsilon, delta, mechanisms, dates."""
    from tacit.curator.all_budgets import load_spent
    from tacit.ledger.export import describe_deployment
    from tacit.policy.promise import promised_budget

    loaded, books = _load_policy(policy)
    with _open_reader(books) as history:
        promised = promised_budget(loaded, load_spent(loaded, history))
        _print_json(describe_deployment(history, promised.epsilon, promised.delta))


@app.command("price")
def recompute_cost(
    policy: PolicyOption = DEFAULT_POLICY,
    by: Annotated[
        str,
        typer.Option(
            help="The accountant: basic, advanced, optimal, zcdp, renyi or pld.",
            autocompletion=complete_from("basic", "advanced", "optimal", "zcdp", "renyi", "pld"),
        ),
    ] = "pld",
    delta: Annotated[float | None, typer.Option(help="Where to read epsilon off; by default the policy's.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what the history would cost had its questions been fixed beforehand. It decides nothing."""
    from tacit.accounting.filters import format_epsilon
    from tacit.ledger.export import compose_nonadaptively as as_if

    loaded, books = _load_policy(policy)
    with _open_reader(books) as history:
        found = as_if(history, float(loaded.budget.delta) if delta is None else delta, by)
    if as_json:
        standing = {
            "spent": format_epsilon(found.standing.spent.epsilon),
            "cap": format_epsilon(found.standing.cap.epsilon),
        }
        plain = {"charges": found.charges, "epsilon": found.epsilon, "delta": found.delta, "by": found.by}
        _print_json({"as_if": "the questions had been fixed beforehand", **plain, "by_the_filters": standing})
    else:
        typer.echo(str(found))


@app.command("accept-loss")
def accept_loss(
    because: Annotated[str, typer.Option("--because", help="What happened; it is written down for good.")],
    policy: PolicyOption = DEFAULT_POLICY,
    witnesses: Annotated[
        list[Path] | None,
        typer.Option(
            "--witness", help="Another host's witness, where hosts have their own; several times.", metavar="FILE"
        ),
    ] = None,
    as_json: JsonOption = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
) -> None:
    """Go on with a ledger that lost entries: charge all that may be missing, to everyone."""
    from tacit.accounting.filters import format_epsilon
    from tacit.curator.resources import budget_limits
    from tacit.ledger.entries import ALL_ANALYSTS
    from tacit.ledger.open_store import open_store
    from tacit.ledger.recovery import accept_loss as accept
    from tacit.ledger.signing import SigningKey
    from tacit.ledger.witness import Witness

    loaded, books = _load_policy(policy)
    if not yes:
        name = open_store(books.store).name  # without a password
        typer.confirm(f"Charge all that may be missing from {name}, to everyone and for good?", abort=True, err=True)
    key = SigningKey.at(books.key, create=True)
    done = accept(
        books.store,
        budget_limits(loaded),
        key=key,
        witness=Witness(books.witness),
        because=because,
        live=loaded.live_tables,
        others=[Witness(path) for path in witnesses or []],
    )
    if as_json:
        charged = {analyst or "all": format_epsilon(cost.epsilon) for analyst, cost in done.charged.items()}
        locked = {"locked": sorted(loaded.live_tables)} if loaded.live_tables else {}
        _print_json(
            {"charged_epsilon": charged, "failed": done.failed, "old_witness": done.kept and str(done.kept), **locked}
        )
        return
    for analyst, cost in done.charged.items():
        typer.echo(f"charged to {'all together' if analyst == ALL_ANALYSTS else analyst}: epsilon {cost.text}")
    if done.failed:
        typer.echo(f"{done.failed} charges without an answer failed: their answers may be among what was lost")
    if loaded.live_tables:
        typer.echo(f"locked, because a lock may be among what was lost: {', '.join(sorted(loaded.live_tables))}")
    if done.kept is not None:
        typer.echo(f"the old witness is kept as {done.kept}")


@contextmanager
def _show_progress(witness: Witness) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal, for as long as the work lasts; the witness knows how much of it there is."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from tacit.errors import LedgerError

    total = None
    with suppress(LedgerError):
        last = witness.last()
        total = last.sequence if last is not None else None
    columns = (TextColumn("entries"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("entries", total=total)
        yield lambda count: bar.update(task, completed=count)


def _load_policy(policy: Path) -> tuple[Policy, LedgerLocation]:
    from tacit.curator.resources import ledger_files
    from tacit.policy.load import load

    loaded = load(policy)
    return loaded, ledger_files(loaded)


def _open_reader(books: LedgerLocation) -> LedgerReader:
    from tacit.ledger.reader import LedgerReader

    return LedgerReader(books.store)


def _read_receipt(path: Path) -> dict[str, Any]:
    """The receipt in a file that holds one, or an answer with one."""
    from tacit.errors import ParameterError

    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ParameterError(
            "receipt", f"{path} cannot be read as JSON", fix="save what tacit ask --json printed"
        ) from error
    found = found.get("receipt", found) if isinstance(found, dict) else found
    if not isinstance(found, dict):
        raise ParameterError("receipt", f"{path} holds no receipt", fix="save what tacit ask --json printed")
    return found


def _print_json(value: Any) -> None:
    typer.echo(escaped_json(json.dumps(value, indent=2, ensure_ascii=False)))
