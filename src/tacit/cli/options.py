"""The options that several commands share."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

PolicyOption = Annotated[
    Path, typer.Option("--policy", "-p", help="The policy file.", show_default=True, metavar="FILE", dir_okay=False)
]


def complete_analyst(context: typer.Context, incomplete: str) -> list[str]:
    """The analysts of the policy that is named so far, for a shell that completes; none where it cannot be read."""
    from tacit.errors import TacitError
    from tacit.policy.load import load

    try:
        policy = load(Path(context.params.get("policy") or DEFAULT_POLICY))
    except TacitError:
        return []
    return [analyst.name for analyst in policy.analysts if analyst.name.startswith(incomplete)]


def complete_from(*words: str) -> Callable[[str], list[str]]:
    """The words that a shell may complete to."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


AnalystOption = Annotated[
    str,
    typer.Option(
        "--as",
        help="The analyst who asks, as the policy names them; at a server the key says who.",
        metavar="NAME",
        autocompletion=complete_analyst,
        show_default=False,
    ),
]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        help="Ask a served curator, in place of a policy file; your key is in TACIT_KEY.",
        metavar="URL",
        show_default=False,
    ),
]
CertificateOption = Annotated[
    Path | None,
    typer.Option(
        "--cafile",
        help="The certificate to trust, such as a self-made one.",
        metavar="FILE",
        dir_okay=False,
    ),
]
EpsilonOption = Annotated[
    float | None,
    typer.Option("--epsilon", "-e", help="The privacy loss to spend, such as 0.5: less is more private and noisier."),
]
WithinOption = Annotated[
    list[str] | None,
    typer.Option("--within", help="In place of an epsilon: how close a count or sum must be.", metavar="COLUMN=WIDTH"),
]
ConfidenceOption = Annotated[float, typer.Option("--confidence", help="How often the intervals hold.")]
DialectOption = Annotated[
    str | None,
    typer.Option(
        "--dialect",
        help="Whose SQL it is where dialects differ: postgres, duckdb, bigquery, snowflake or mysql. "
        "By default the policy's.",
    ),
]
RequestOption = Annotated[
    str,
    typer.Option("--request", help="Your own name for this question, which is then charged once.", metavar="ID"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SqlArgument = Annotated[str, typer.Argument(metavar="SQL", help="The question; - reads it from standard input.")]
DEFAULT_POLICY = Path("tacit.toml")


def find_policy_or_demo(policy: Path) -> Path | dict[str, Any]:
    """The policy file, or the bundled clinic's policy where the default is not there: what reads no data can use it."""
    if policy != DEFAULT_POLICY or policy.exists():
        return policy
    from tacit.demo.clinic import POLICY_TEXT

    typer.echo(f"There is no {policy} here, so this is the bundled clinic's policy; name another with -p.", err=True)
    return tomllib.loads(POLICY_TEXT)
