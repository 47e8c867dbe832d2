"""How much to run: the counts of every day, or the full ones."""

from __future__ import annotations

import os

FULL = os.environ.get("TACIT_FULL") == "1"
"""Whether to run the full counts: TACIT_FULL=1."""
