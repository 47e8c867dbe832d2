"""Questions as Ibis expressions. Needs ibis: pip install 'tacit-dp[ibis]'.

t = ada.table("visits")
ada.ask(t.group_by("ward").agg(n=t.count()), epsilon=0.5)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from tacit.errors import ErrorCode, Refused
from tacit.extras import missing_extra

if TYPE_CHECKING:
    import ibis


class IbisExpression(Protocol):
    """What every `ibis.Expr` has: Ibis ships no types, and need not be installed."""

    def op(self) -> object:
        """Return the root of the expression's graph."""

    def unbind(self) -> object:
        """Return the expression without a database."""


_TYPES = {"int": "int64", "float": "float64", "text": "string", "bool": "boolean", "date": "date"}
_TYPES |= {"timestamp": "timestamp(6)"}  # without a zone: what the clock of the column's own shows


def make_table(name: str, types: Mapping[str, str]) -> ibis.Table:
    """A table for Ibis: its name and the types of its columns, and no data."""
    ibis = _import_ibis()
    return ibis.table({column: _TYPES[kind] for column, kind in types.items()}, name=name)


def to_sql(question: str | IbisExpression, dialect: str | None = None) -> tuple[str, str | None]:
    """Return the SQL of an Ibis expression, which is DuckDB's; anything else as it is, to be refused where it is read.

    The second is the dialect that it is read in; None for the policy's.
    """
    if isinstance(question, str) or not type(question).__module__.startswith("ibis."):
        return cast(str, question), dialect
    ibis = _import_ibis()
    try:
        return str(ibis.to_sql(question, dialect="duckdb")), "duckdb"
    except ibis.common.exceptions.IbisError as error:
        raise Refused(ErrorCode.SYNTAX, "the expression cannot be written as SQL", fix="ask in SQL instead") from error


def _import_ibis() -> Any:
    try:
        import ibis
    except ImportError:
        raise missing_extra("ibis", "an Ibis expression", "ibis") from None
    return ibis
