"""`tacit prepare`: a copy of the data in which each unit's rows lie together, for speed."""

from __future__ import annotations

import typer

from tacit.cli.options import DEFAULT_POLICY, PolicyOption
from tacit.cli.output import show_progress


def prepare(policy: PolicyOption = DEFAULT_POLICY) -> None:
    """Make the prepared copy that a policy names, so that bounding what each unit adds takes no longer than a scan.

    Run it again when the data, its epoch or the policy has changed. A copy that is stopped half-way is never used.
    """
    from tacit.curator import prepare as preparing
    from tacit.policy.load import load

    with show_progress() as tell:
        path = preparing.prepare(load(policy), lambda what, share: tell(share, what))
    typer.echo(f"Wrote {path.name}, {path.stat().st_size / 1e6:,.0f} MB.")
