"""One file a mechanism: its law, its loss, its release, its error."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.mechanisms.laplace import Laplace as Laplace

_HOMES = {
    "Laplace": "laplace",
}


def __getattr__(name: str) -> Any:
    """Import a mechanism when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"there is no mechanism {name!r}")
    return getattr(import_module(f"tacit.mechanisms.{_HOMES[name]}"), name)
