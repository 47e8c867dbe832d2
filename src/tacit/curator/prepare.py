"""Reading the data of a policy into its copy ahead of time."""

from __future__ import annotations

from pathlib import Path

from tacit.curator.copies import locate_copy
from tacit.curator.resources import open_engine
from tacit.curator.tables import check_join_columns
from tacit.engines.base import Progress
from tacit.errors import ErrorCode, PolicyError
from tacit.policy.model import Policy


def prepare(policy: Policy, progress: Progress) -> Path:
    """Make the policy's copy, whole or not at all, unless it is there already; the path it is at."""
    copy = locate_copy(policy)
    if copy is None:
        fix = 'name a file under [data]: copy = "visits.copy"'
        raise PolicyError(ErrorCode.POLICY, "the data of this policy is not read into a file", fix=fix)
    engine = open_engine(policy, progress=progress)
    try:
        check_join_columns(policy, engine)
    finally:
        engine.close()
    return copy.path
