"""The windows that a query names in WINDOW, and what stands for their names."""

from __future__ import annotations

from dataclasses import replace

from tacit.errors import ErrorCode, Refused
from tacit.query.from_parser import FromParser
from tacit.query.nodes import Query, Scalar, Window, rebuild
from tacit.query.refusals import to_printable
from tacit.query.window_parser import read_window_definition


def read_named_windows(parser: FromParser) -> dict[str, Window]:
    """WINDOW w AS (PARTITION BY ward ORDER BY n), ...: by name in small letters."""
    found: dict[str, Window] = {}
    while True:
        name = parser.name("a name").lower()
        parser.expect("AS")
        found[name] = read_window_definition(parser)
        if not parser.accept(","):
            return found


def replace_named_windows(query: Query, windows: dict[str, Window]) -> Query:
    """The query with each name of a window replaced by what WINDOW says it is."""
    outputs = tuple(replace(output, scalar=resolve_windows(output.scalar, windows)) for output in query.outputs)
    qualify = None if query.qualify is None else resolve_windows(query.qualify, windows)
    return replace(query, outputs=outputs, qualify=qualify)


def resolve_windows(scalar: Scalar, windows: dict[str, Window]) -> Scalar:
    """The scalar with each name of a window replaced by what that name is defined as."""

    def change(node: Scalar) -> Scalar | None:
        if not isinstance(node, Window) or not node.name:
            return None
        known = windows.get(node.name.lower())
        if known is None:
            what, fix = (
                f"there is no window {to_printable(node.name)}",
                "define it after the groups, or write it in brackets",
            )
            raise Refused(ErrorCode.SYNTAX, what, at=node.at, fix=fix)
        return replace(node, partition=known.partition, order=known.order, frame=known.frame, name="")

    return rebuild(scalar, change)
