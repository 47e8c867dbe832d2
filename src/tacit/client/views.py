"""What a server tells of a price, a budget or a schema: read like the local objects, held as plain values.

>>> budget = Told({"who": "ada", "remaining": 2.5, "text": "ada has spent epsilon 0.5 of 3"})
>>> budget.remaining
2.5
>>> print(budget)
ada has spent epsilon 0.5 of 3
"""

from __future__ import annotations

from typing import Any

from tacit.errors import Code, Failed, LedgerError, ParameterError, Place, Refused, TacitError


class Told:
    """Values by name, and the text in which a person reads them."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = {name: value for name, value in values.items() if name != "text"}
        self._text = str(values.get("text", ""))

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return dict(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"there is no {name!r} here")
        return self._values[name]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text or repr(self._values)


def error_of(found: Any) -> TacitError:
    """The error that a server told of, as the class that a local curator raises."""
    try:
        told = found["error"]
        code, what, fix, kind = Code(told["code"]), str(told["what"]), str(told["fix"]), str(told.get("kind", ""))
        place = None if told.get("at") is None else Place(**told["at"])
    except (KeyError, TypeError, ValueError):
        return Refused(Code.PROTOCOL, "what came back is not of Tacit's", fix="check the address")
    if kind == "parameter":
        name, _, reason = what.partition(": ")
        return ParameterError(name, reason, fix=fix)
    if kind == "failed":
        return Failed()
    return (LedgerError if kind == "ledger" else Refused)(code, what, at=place, fix=fix)
