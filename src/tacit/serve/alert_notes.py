"""The file that holds which alerts were logged, which a webhook has taken, and which it has still to take.

>>> read_notes(None)
AlertNotes(logged=frozenset(), posted=frozenset(), waiting=())
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.durable_files import replace_file

_log = logging.getLogger("tacit.alerts")


@dataclass(frozen=True)
class AlertNotes:
    """The ids of alerts in the log and of those that the webhook has taken, and the alerts that wait for it."""

    logged: frozenset[str] = frozenset()
    posted: frozenset[str] = frozenset()
    waiting: tuple[Mapping[str, Any], ...] = ()


def read_notes(file: Path | None) -> AlertNotes:
    """What was noted before; nothing where that is not known, so that alerts are sent again."""
    if file is None:
        return AlertNotes()
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        logged, posted = (frozenset(str(each) for each in found[name]) for name in ("logged", "posted"))
        return AlertNotes(logged, posted, tuple(dict(each) for each in found["waiting"]))
    except FileNotFoundError:
        return AlertNotes()
    except (OSError, ValueError, TypeError, KeyError):
        _log.error("%s cannot be read, so alerts may come again", file.name)
        return AlertNotes()


def write_notes(file: Path | None, notes: AlertNotes) -> None:
    """Replace the file as a whole; where that fails, alerts come again after a restart."""
    if file is None:
        return
    written = {"logged": sorted(notes.logged), "posted": sorted(notes.posted), "waiting": list(notes.waiting)}
    try:
        replace_file(file, json.dumps(written).encode(), 0o600)
    except OSError as error:
        _log.error("%s cannot be written, so alerts may come again: %s", file.name, error.strerror)
