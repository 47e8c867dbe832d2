"""`tacit profile`: the owner looks at the columns privately, once, and everyone may see it."""

from __future__ import annotations

from typing import Annotated

import typer

from tacit.cli.options import DEFAULT_POLICY, JsonOption, PolicyOption
from tacit.cli.output import print_json, show_progress
from tacit.cli.tables import complete_table


def profile(
    epsilon: Annotated[
        float,
        typer.Option("--epsilon", "-e", help="The privacy loss of the whole profile, out of the overall budget."),
    ],
    policy: PolicyOption = DEFAULT_POLICY,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table", help="Only this one; may be given again.", metavar="NAME", autocompletion=complete_table
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what would be released, at no cost; no data is touched.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Release noisy histograms of all columns, to choose bounds and caps by; everyone may see them.

    Charged once to the overall budget; the same profile again is free. Bounds that are "?" need not be filled in.
    """
    from tacit.curator.curator import open_policy
    from tacit.curator.profile import ChargedProfile
    from tacit.curator.profile_outlook import describe_plan
    from tacit.curator.propose_bounds import propose_lines, render_lines
    from tacit.policy.load import load

    loaded = load(policy, is_draft=True)
    if explain:
        described = describe_plan(ChargedProfile.make(loaded, epsilon, table))
        if as_json:
            print_json(described.to_dict())
        else:
            typer.echo(str(described))
        return
    with show_progress() as tell:
        opened = open_policy(loaded, progress=lambda what, share: tell(share, what))
        with opened:
            found = opened.profile(epsilon, tables=table, progress=lambda what, share: tell(share, what))
    proposals = propose_lines(loaded, found)
    if as_json:
        lines = [{"section": each.section, "line": each.line, "reason": each.reason} for each in proposals]
        receipt = {} if found.receipt is None else {"receipt": found.receipt.to_dict()}
        print_json({**found.to_dict(), "proposals": lines, **receipt})
        return
    typer.echo(str(found))
    if proposals:
        typer.echo("\nWhat this proposes for the policy, in the place of the lines that are there:\n")
        typer.echo(render_lines(proposals))
    if found.receipt is not None:
        typer.echo(f"\n{found.receipt}")
