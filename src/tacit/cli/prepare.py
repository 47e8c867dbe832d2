"""`tacit prepare`: read the data into its copy ahead of time."""

from __future__ import annotations

import typer

from tacit.cli.options import DEFAULT_POLICY, PolicyOption
from tacit.cli.output import show_progress


def prepare(policy: PolicyOption = DEFAULT_POLICY) -> None:
    """Read the data of a policy into its copy now, so that whoever asks first does not wait for it.

    A copy is made once for each epoch and policy, and all questions read it. One that is stopped half-way is not used.
    """
    from tacit.curator import prepare as preparing
    from tacit.policy.load import load

    loaded = load(policy)
    with show_progress() as tell:
        path = preparing.prepare(loaded, lambda what, share: tell(share, what))
    typer.echo(f"{path.name} holds the data of epoch {loaded.epoch}, {path.stat().st_size / 1e6:,.0f} MB.")
