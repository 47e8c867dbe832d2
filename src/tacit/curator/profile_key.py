"""The tags of what the key of a profile is hashed from. A written name never changes."""

from __future__ import annotations

from tacit.canonical import Table, tag
from tacit.curator.profile_plan import ProfiledColumn, ProfiledTable
from tacit.plan.canonical import PLANS

PROFILES: Table = {
    **PLANS,
    ProfiledColumn: tag("ProfiledColumn", "name type values exact"),
    ProfiledTable: tag("ProfiledTable", "name unit columns sizes"),
}
