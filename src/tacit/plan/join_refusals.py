"""Refusals of joins, with the condition that would make them answerable."""

from __future__ import annotations

import re

from tacit.errors import ErrorCode, Refused
from tacit.plan.join_pairs import JoinPair
from tacit.plan.relation import Field, Relation
from tacit.query.functions import COMPARISONS, Function
from tacit.query.nodes import Call, ColumnReference, Join, Scan, find_location, walk
from tacit.query.suggest import quote_scalar


def quote_as_inner(node: Join) -> str | None:
    """An outer join as the question has it, less the word that makes it one."""
    if node.at is None:
        return None
    return re.sub(r"\b(LEFT|RIGHT)\s+(OUTER\s+)?JOIN\b", "JOIN", node.at.written, count=1, flags=re.IGNORECASE)


def suggest_units(left: Relation, right: Relation, node: Join) -> tuple[str, str | None]:
    """The fix that matches the units of both sides, and the join with it where there is one."""
    match = suggest_match(left, right, node)
    if match is None:
        return "select the unit on both sides, and add it to the condition", None
    return f"add the unit to the condition: {match}", _add_match(node, match)


def _add_match(node: Join, match: str) -> str | None:
    """A join as the question has it, with one more equality, or with that alone where its columns are compared."""
    at, on = node.at, None if node.on is None else find_location(node.on)
    if at is None:
        return None
    if node.on is None and not node.using and not node.natural:
        return None
    if node.using:
        names = {side.rpartition(".")[2] for side in match.split(" = ")}
        return f"{at.written[:-1]}, {names.pop()})" if len(names) == 1 and at.written.endswith(")") else None
    if on is None or not at.start < on.start <= on.end <= at.end:
        return None
    assert node.on is not None
    if _compares_otherwise(node, match):
        return None  # as in a.id <> b.id, which it would contradict
    compared = {quote_scalar(part) for part in walk(node.on) if isinstance(part, ColumnReference)}
    if compared <= set(match.split(" = ")):
        return at.text[at.start : on.start] + match + at.text[on.end : at.end]
    both = f"({on.written}) AND {match}"
    return at.text[at.start : on.start] + both + at.text[on.end : at.end]


def _compares_otherwise(node: Join, match: str) -> bool:
    """Whether a join compares the two columns of a match by something else than an equality."""
    calls = [] if node.on is None else [part for part in walk(node.on) if isinstance(part, Call)]
    compared = (part for part in calls if part.function in COMPARISONS - {Function.EQUAL})
    return any(set(map(quote_scalar, part.arguments)) == set(match.split(" = ")) for part in compared)


def _connect_match(node: Join, match: str) -> tuple[str, str | None]:
    """How to match the rows of a comma or a CROSS JOIN, and the question that does."""
    at = node.at
    words = [] if at is None else at.text[: at.start].rsplit(maxsplit=2)
    if at is not None and words and words[-1].endswith(","):
        before = at.text[: at.start].rstrip().removesuffix(",")
    elif at is not None and [word.upper() for word in words[1:]] == ["CROSS", "JOIN"]:
        before = words[0]
    else:
        return f"say which of their rows match: {match}", None
    joined = f"JOIN {at.written} ON {match}"
    return f"say which of their rows match: {joined}", f"{before} {joined}{at.text[at.end :]}"


def suggest_match(left: Relation, right: Relation, node: Join) -> str | None:
    """An equality by which rows may be matched, from what the policy declares: None where there is none.

    Along a foreign key, on the unit, or on a unique column of a public table and one of the same name. The unit comes
    first where the join itself names that of one side, as after a LEFT JOIN, whose right side has its unit or NULL.
    """
    ours, theirs = (tuple(f for f in (*r.fields, *r.implied) if not f.hidden) for r in (left, right))
    keys = [(one, other) for one in ours if _is_key(one) for other in theirs]
    keys += [(one, other) for other in theirs if _is_key(other) for one in ours if not _is_key(one)]
    written = [] if node.on is None else [part for part in walk(node.on) if isinstance(part, ColumnReference)]
    by_unit = any(f.is_unit and _is_named(f, part) for f in (*ours, *theirs) for part in written)
    private = left.people is not None and left.people == right.people
    public = left.people is None or right.people is None

    def rank(one: Field, other: Field) -> int | None:
        if private and JoinPair(one, other, one.bound, other.bound).links is not None:
            return 1
        if private and one.is_unit and other.is_unit:
            return 0 if by_unit else 2
        alike = one.bound.type is other.bound.type and one.name.lower() == other.name.lower()
        return 3 if public and alike and (one.unique or other.unique) else None

    ranked = [(found, pair) for pair in keys if (found := rank(*pair)) is not None]
    if not ranked:
        return None
    best = min(ranked, key=lambda item: item[0])[1]
    return " = ".join(f"{quote(f.source)}.{quote(f.name)}" for f in best)


def _is_named(found: Field, written: ColumnReference) -> bool:
    return (found.name.lower(), found.source.lower()) == (written.name.lower(), (written.table or "").lower())


def _is_key(found: Field) -> bool:
    return found.is_unit or found.unique or found.link is not None


def quote(name: str) -> str:
    """A name as a question writes it."""
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def refuse_without_equality(left: Relation, right: Relation, node: Join) -> Refused:
    """A refusal of a join whose condition has no equality between its sides."""
    one, other = left.sources[0], right.sources[0]
    match = suggest_match(left, right, node)
    if node.is_cross:
        what = f"{one} with {other} without an equality of their columns"
        if match is None:
            return refuse_join(node, what, "say which of their rows match, by an equality of columns")
        fix, suggestion = _connect_match(node, match)
        return Refused(ErrorCode.UNSUPPORTED, f"{what} is not answered", at=node.at, fix=fix, suggestion=suggestion)
    what = "a join without an equality of columns"
    if match is None:
        return refuse_join(node, what, "match a column of each with =")
    if (left.people is None or right.people is None) and _compares_otherwise(node, match):
        return refuse_join(node, what, "match each row with one range at most: ranges may not overlap")
    return refuse_join(node, what, f"match a column of each: {match}", _add_match(node, match))


def refuse_not_unique(public: Relation, on: list[Field | None], node: Join) -> Refused:
    """Which column of the public side it is that rows may share, and the one that they do not."""
    named = next((f"{f.source}.{f.name}" for f in on if f is not None), f"an expression of {public.sources[0]}")
    unique = next((f"{f.source}.{f.name}" for f in public.fields if f.unique), None)
    fix = "join the public table itself, on a column that is unique there"
    if unique is not None:
        fix = f"join on {unique}"
    elif isinstance(public.rows, Scan):
        fix = f"ask the owner to declare a unique column of {public.rows.table}"
    return refuse_join(
        node,
        f"a join on {named}, which several rows may share,",
        fix,
    )


def refuse_join(node: Join, what: str, fix: str, instead: str | None = None) -> Refused:
    """A refusal of a join, at its place."""
    return Refused(ErrorCode.UNSUPPORTED, f"{what} is not answered", at=node.at, fix=fix, instead=instead)
