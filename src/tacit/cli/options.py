"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PolicyOption = Annotated[
    Path, typer.Option("--policy", "-p", help="The policy file.", show_default=True, metavar="FILE", dir_okay=False)
]
WhoOption = Annotated[str, typer.Option("--as", help="The analyst who asks, as the policy names them.", metavar="NAME")]
EpsilonOption = Annotated[
    float | None, typer.Option("--epsilon", "-e", help="The price: less is more private and noisier.")
]
WithinOption = Annotated[
    list[str] | None,
    typer.Option("--within", help="In place of a price: how close a count or sum must be.", metavar="COLUMN=WIDTH"),
]
ConfidenceOption = Annotated[float, typer.Option("--confidence", help="How often the intervals hold.")]
RequestOption = Annotated[
    str,
    typer.Option("--request", help="Your own name for this question, which is then charged once.", metavar="ID"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Question = Annotated[str, typer.Argument(metavar="SQL", help="The question; - reads it from standard input.")]
DEFAULT = Path("tacit.toml")
