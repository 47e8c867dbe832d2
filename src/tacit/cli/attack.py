"""`tacit attack`: what an attacker gets of made-up people, from a plain database and from the curator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import DEFAULT_POLICY, JsonOption, PolicyOption, find_policy_or_demo
from tacit.cli.output import check_plot_path, format_table, show_progress

if TYPE_CHECKING:
    from tacit.attacks.recovered import ReconstructionResult
    from tacit.trial.attack_report import AttackReport

REFUTED = 7


def attack(
    policy: PolicyOption = DEFAULT_POLICY,
    people: Annotated[int, typer.Option("--people", help="How many made-up people are attacked.")] = 100,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="What each attack may spend in all.")] = 1.0,
    seed: Annotated[
        int, typer.Option("--seed", help="The same seed makes the same people and the same noise.", min=0)
    ] = 0,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Save a picture of it: .svg, .png or .pdf.", metavar="FILE")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Attack made-up people under a policy, without it and with it, side by side; no real data is read.

    Where there is no tacit.toml, the policy is that of the bundled clinic.

    Everyone has a secret bit. The attacker knows the public columns of all, and asks for counts of any subsets. Exit
    code 7 if more is recovered than the promise allows.
    """
    from tacit.trial.attack_comparison import attack_policy as run

    if plot is not None:
        check_plot_path(plot)
    with show_progress() as tell:
        found = run(find_policy_or_demo(policy), people, epsilon, seed, lambda share: tell(share, "asking"))
    typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if as_json else _format_report(found))
    if plot is not None:
        found.plot(plot)
    if found.is_refuted:
        raise typer.Exit(REFUTED)


def _format_report(found: AttackReport) -> str:
    crowd = found.target
    rows = [
        [
            line.name,
            f"{line.protected.queries:,}",
            _format_share(line.unprotected),
            _format_share(line.protected),
            f"{line.most:.1%}",
        ]
        for line in found.lines
    ]
    fresh = found.reworded
    lines = [
        f"{crowd.people:,} made-up people in {crowd.table}. The secret is: {crowd.secret}. "
        f"The attacker knows {' and '.join(crowd.known)}, and has epsilon {found.epsilon:g} for each attack.",
        "",
        format_table(["attack", "questions", "unprotected", "with Tacit", "expected at most"], rows),
        "",
        "Shares are of secrets guessed right, with 99 % intervals; a coin gets 50 %. Under epsilon "
        f"{found.epsilon:g} ({found.neighbors}) no attack, whatever it knows, can expect more than {found.most:.1%}.",
        f"With the secret: {int(crowd.truth.sum())}. Unprotected, one question tells: {found.plain.estimate:g}. "
        f"With Tacit, the same question {found.repeated.answer_count} times is one answer: "
        f"{found.repeated.estimate:g}, with noise of deviation {found.deviation:.3g}; "
        f"{fresh.answer_count} rewordings, each at its epsilon, have a mean of {fresh.estimate:.4g}, off by about "
        f"{fresh.standard_error:.3g}.",
    ]
    if found.refusal:
        lines.append(f"Then the budget is spent. {found.refusal}")
    return "\n".join([*lines, f"So: {found.verdict}."])


def _format_share(found: ReconstructionResult) -> str:
    assert found.share is not None
    assert found.interval is not None
    low, high = found.interval
    return f"{found.share:.1%} ({low:.0%} to {high:.0%})"
