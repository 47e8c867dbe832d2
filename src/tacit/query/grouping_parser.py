"""GROUP BY: keys, and the grouping sets that ROLLUP, CUBE and GROUPING SETS make of them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations

from tacit.query.composition import SET_OPERATIONS
from tacit.query.from_parser import FromParser
from tacit.query.nodes import Literal, Scalar, SelectItem, is_star
from tacit.query.refusals import refuse_too_large, refuse_unsupported
from tacit.query.select_list_parser import find_output, has_aggregate

_MOST_LEVELS = 8  # keys of ROLLUP and CUBE
MAX_SETS = 32  # grouping sets of a question
_AFTER_KEYS = SET_OPERATIONS | {"HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "FETCH", "WITH"}
Sets = tuple[tuple[int, ...], ...]


def read_keys(parser: FromParser, outputs: tuple[SelectItem, ...]) -> tuple[tuple[Scalar, ...], Sets | None]:
    """GROUP BY: expressions, numbers of columns, ALL that hold no aggregate, or grouping sets of them.

    Several grouping sets in a list mean every combination of one of each.
    """
    start = parser.index
    if parser.accept("ALL"):
        if any(is_star(output.scalar) for output in outputs):
            raise refuse_unsupported("GROUP BY ALL with *", "list the columns", parser.since(start - 2))
        return tuple(output.scalar for output in outputs if not has_aggregate(output.scalar)), None
    keys: list[Scalar] = []
    sets: list[tuple[int, ...]] = [()]
    while True:
        added = _read_element(parser, keys, outputs)
        sets = [tuple(dict.fromkeys((*one, *other))) for one in sets for other in added]
        if len(sets) > MAX_SETS:
            raise refuse_too_large(f"more than {MAX_SETS} grouping sets", parser.since(start))
        if not parser.accept(","):
            break
    if parser.accept("WITH"):  # GROUP BY a, b WITH ROLLUP
        everything = tuple((place,) for place in range(len(keys)))
        if parser.accept("ROLLUP"):
            sets = _list_rollup(everything)
        elif parser.accept("CUBE"):
            sets = _list_cube(everything)
        else:
            parser.refuse_unexpected("the end of GROUP BY")
    return tuple(keys), None if sets == [tuple(range(len(keys)))] and keys else tuple(sets)


def _read_element(parser: FromParser, keys: list[Scalar], outputs: tuple[SelectItem, ...]) -> list[tuple[int, ...]]:
    """The grouping sets of one element of GROUP BY, as positions in `keys`, which it may add to."""
    if parser.accept("ROLLUP", "("):
        return _list_rollup(_read_lists(parser, keys, outputs))
    if parser.accept("CUBE", "("):
        return _list_cube(_read_lists(parser, keys, outputs))
    if parser.accept("GROUPING", "SETS", "("):
        found: list[tuple[int, ...]] = []
        while True:
            found += _read_element(parser, keys, outputs)
            if not parser.accept(","):
                break
        parser.expect(")")
        return found
    return [_read_list(parser, keys, outputs)]


def _read_lists(parser: FromParser, keys: list[Scalar], outputs: tuple[SelectItem, ...]) -> tuple[tuple[int, ...], ...]:
    found = [_read_list(parser, keys, outputs)]
    while parser.accept(","):
        found.append(_read_list(parser, keys, outputs))
    parser.expect(")")
    if len(found) > _MOST_LEVELS:
        raise refuse_too_large(f"ROLLUP or CUBE of more than {_MOST_LEVELS} keys", parser.here())
    return tuple(found)


def _read_list(parser: FromParser, keys: list[Scalar], outputs: tuple[SelectItem, ...]) -> tuple[int, ...]:
    """One key, several in brackets, or none: ()."""
    start = parser.index
    if not parser.sees("("):
        return (_place_key(_read_key(parser, outputs), keys),)
    end = parser.closing[parser.index]
    if end == start + 1:
        parser.index = end + 1
        return ()
    if parser.tokens[end + 1].key not in {",", ")", ";", ""} | _AFTER_KEYS:  # (a + b) / 2
        return (_place_key(_read_key(parser, outputs), keys),)
    parser.index += 1
    places = [_place_key(_read_key(parser, outputs), keys)]
    while parser.accept(","):
        places.append(_place_key(_read_key(parser, outputs), keys))
    parser.expect(")")
    return tuple(places)


def _read_key(parser: FromParser, outputs: tuple[SelectItem, ...]) -> Scalar:
    start = parser.index
    key = parser.count_parts(parser.scalar())
    if not isinstance(key, Literal):
        return key
    if isinstance(key.value, bool) or not isinstance(key.value, int | Fraction):
        raise refuse_unsupported("GROUP BY a constant", "leave it out, or name a column", parser.since(start))
    return find_output(parser, key.value, outputs, start).scalar


def _list_rollup(lists: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """ROLLUP (a, b): (a, b), (a), ()."""
    return [_join_lists(lists[:size]) for size in range(len(lists), -1, -1)]


def _list_cube(lists: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """CUBE (a, b): (a, b), (a), (b), ()."""
    sizes = range(len(lists), -1, -1)
    return [_join_lists(some) for size in sizes for some in combinations(lists, size)]


def _join_lists(lists: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(place for some in lists for place in some))


def _place_key(key: Scalar, keys: list[Scalar]) -> int:
    """The position of a key, which is added where it is new."""
    if key not in keys:
        keys.append(key)
    return keys.index(key)
