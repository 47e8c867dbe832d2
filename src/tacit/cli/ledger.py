"""`tacit ledger`: what the owner asks of the ledger. Reading never changes it, and works on a damaged one too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.options import DEFAULT, JsonOption, PolicyOption

app = typer.Typer(help="Verify the ledger, or read what it says.", no_args_is_help=True)
_DAMAGED = 6


@app.command()
def verify(policy: PolicyOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Check every entry from the first one: hashes, sums, caps and stored answers. Exit code 6 if anything is wrong."""
    from tacit.ledger.history import History
    from tacit.ledger.verify import verify as check

    with History(_store(policy)) as history:
        report = check(history)
    if as_json:
        _print({"ok": report.ok, "entries": report.entries, "head": report.head, "problems": list(report.problems)})
    else:
        typer.echo(f"{report.entries:,} entries, {'all in order' if report.ok else 'NOT in order'}, head {report.head}")
        for problem in report.problems:
            typer.echo(f"· {problem}")
    if not report.ok:
        raise typer.Exit(_DAMAGED)


@app.command()
def history(
    policy: PolicyOption = DEFAULT,
    as_json: JsonOption = False,
    last: Annotated[int, typer.Option("--last", "-n", help="Show so many of the newest entries.", min=1)] = 20,
) -> None:
    """Show what was charged to whom, newest last."""
    from collections import deque

    from tacit.accounting.filter import Amount
    from tacit.ledger.history import History

    with History(_store(policy)) as ledger:
        entries = deque(ledger.entries(), maxlen=last)
    rows: list[dict[str, Any]] = [
        {
            "entry": entry.sequence,
            "time": entry.time,
            "kind": str(entry.kind),
            "who": entry.who,
            "epsilon": Amount(entry.epsilon, 0).shown,
            "question": entry.key[:12],
        }
        for entry in entries
    ]
    if as_json:
        _print(rows)
        return
    for row in rows:
        typer.echo(
            f"{row['entry']:>6}  {row['time'][:19]}  {row['kind']:<8}  {row['who'] or '-':<12}  "
            f"{row['epsilon']:>8}  {row['question']}".rstrip()
        )


def _store(policy: Path) -> Path:
    from tacit.curator.curator import store_of
    from tacit.policy.load import load

    return store_of(load(policy))


def _print(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
