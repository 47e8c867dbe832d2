"""How a question is read: its rows, its private half and its post-processing, and the keys that are listed."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NamedTuple

from tacit.errors import ErrorCode, Refused
from tacit.plan.dependent_keys import combine, count_groups, list_dependent_keys
from tacit.plan.flatten import flatten_query
from tacit.plan.joined_keys import list_joined_keys
from tacit.plan.public_keys import list_keys, mark_kept
from tacit.plan.public_tables import PublicRead
from tacit.plan.relation import Relation
from tacit.plan.scope import Scope
from tacit.plan.split import MAX_GROUPS, Halves, check_groups, split
from tacit.policy.model import Policy
from tacit.query.nodes import Query


class Reading(NamedTuple):
    """A query with its rows and its halves, and the keys that are listed where public tables have them."""

    query: Query
    relation: Relation
    halves: Halves
    listed: PublicRead | None
    is_kept: bool  # whether the rows of a public table are the keys
    notes: tuple[str, ...]


def read_as_written(query: Query, policy: Policy, like: Reading) -> Reading:
    """The reading of a question as its text is written, which was its form in earlier versions, or Refused.

    `like` is the one that it has now, whose rows are mostly the same.
    """
    return read_query(flatten_query(query), policy, canonical=False, like=like)


def read_query(query: Query, policy: Policy, *, canonical: bool, like: Reading | None = None) -> Reading:
    """The reading of a query, in the form of `split`; `like` is one of the same question."""
    query = mark_kept(query, policy)
    scope = Scope(policy)
    query, relation = scope.open(query)
    if like is not None and relation == like.relation:
        relation = like.relation  # which knows the scalars that were bound
    if relation.people is None:
        raise Refused(
            ErrorCode.UNSUPPORTED,
            "a question over public tables only is not answered",
            at=query.at,
            fix="read public tables where they are; join one to a private table to use it here",
        )
    halves = split(query, relation, canonical=canonical, ascii_case=policy.has_ascii_case)
    if canonical and policy.lists_dependent_keys:
        halves = _list_casts(halves)
    listed = list_keys(query, relation, scope.kept[0], halves, policy) if scope.kept else None
    if listed is not None:
        halves = replace(halves, keys=tuple(replace(key, values=None) for key in halves.keys))
    elif canonical and policy.lists_joined_keys:
        listed = list_joined_keys(query, relation.rows, halves, policy)
    if listed is not None:
        halves = replace(halves, combinations=None)
    else:
        halves = _combine_keys(halves, relation, policy) if canonical else halves
        check_groups(query, halves)
    return Reading(query, relation, halves, listed, bool(scope.kept), tuple(scope.notes))


def _list_casts(halves: Halves) -> Halves:
    """Both halves with the values of keys that are casts, in place of all integers within their bounds."""
    pairs = zip(halves.keys, halves.cast_values, strict=True)
    keys = tuple(key if values is None else replace(key, values=values) for key, values in pairs)
    if keys == halves.keys or any(key.values is None for key in keys):
        return halves
    found = replace(halves, keys=keys)
    if found.groups is None or found.groups > MAX_GROUPS:
        return halves
    return replace(found, combinations=tuple(product(*(key.values or () for key in keys))))


def _combine_keys(halves: Halves, relation: Relation, policy: Policy) -> Halves:
    """Both halves with the groups that there are, where public keys depend on each other."""
    if halves.groups is None:
        return halves
    lists = list_dependent_keys(halves.keys, relation.rows, halves.where, policy)
    if not count_groups(lists) < halves.groups or count_groups(lists) > MAX_GROUPS:
        return halves
    return replace(halves, combinations=combine(lists, halves.keys))
