"""Tacit: a trusted curator that anyone can run.

import tacit
curator = tacit.open("clinic.toml")
ada = curator.analyst("ada")
print(ada.ask("SELECT COUNT(*) FROM visits", epsilon=0.5))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.errors import DataError, Failed, LedgerError, ParameterError, PolicyError, Refused, TacitError

if TYPE_CHECKING:
    from tacit.answers.answer import Answer as Answer
    from tacit.client.connect import connect as connect
    from tacit.curator.curator import Analyst as Analyst
    from tacit.curator.curator import Curator as Curator
    from tacit.curator.curator import open as open

__version__ = "0.1.0"
__all__ = [
    "Analyst",
    "Answer",
    "Curator",
    "DataError",
    "Failed",
    "LedgerError",
    "ParameterError",
    "PolicyError",
    "Refused",
    "TacitError",
    "connect",
    "open",
]

_LATER = {
    "open": "curator.curator",
    "Curator": "curator.curator",
    "Analyst": "curator.curator",
    "Answer": "answers.answer",
    "connect": "client.connect",
    "load_ipython_extension": "magic",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for: `import tacit` stays quick."""
    if name not in _LATER:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"tacit.{_LATER[name]}"), name)
