"""The canonical text of values: one text for one value, from a closed table, whatever classes are called."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.canonical import canonical_text, tag
from tacit.curator.fit_key import FITS
from tacit.plan.canonical import PLANS
from tacit.plan.noise import Part, Pick, Shown
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query import nodes
from tacit.query.canonical import NODES


@dataclass(frozen=True)
class Pair:
    """Two values, which the tests write as `Both`."""

    one: object
    two: object


TABLE = {Pair: tag("Both", "first=one second=two")}
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False)
    | st.text("a'\"(), =\\", max_size=3)
    | st.fractions(-2, 2, max_denominator=3)
    | st.dates(datetime.date(2025, 1, 1), datetime.date(2025, 1, 3))
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=2) | st.lists(inner, max_size=2).map(tuple) | st.builds(Pair, inner, inner),
    max_leaves=6,
)


def _kinds(value: object) -> object:
    """A value with the type of each part, so that 1, True, 1.0 and Fraction(1), and 0.0 and -0.0, differ."""
    match value:
        case list() | tuple():
            return type(value), [_kinds(item) for item in value]
        case Pair():
            return Pair, _kinds(value.one), _kinds(value.two)
        case float():
            return float, value.hex()
        case _:
            return type(value), value


@pytest.mark.slow
@given(VALUES, VALUES)
def test_texts_are_equal_where_values_are_and_only_there(one: object, two: object) -> None:
    assert (canonical_text(one, TABLE) == canonical_text(two, TABLE)) == (_kinds(one) == _kinds(two))


def test_the_names_written_are_those_of_the_table_and_not_of_the_class() -> None:
    assert canonical_text([Pair(1, Fraction(1, 2))], TABLE) == "[Both(first=1, second=Fraction(1, 2))]"


@pytest.mark.parametrize("value", [object(), {}, {1}, b"", 1j, datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)])
def test_what_has_no_tag_has_no_text(value: object) -> None:
    with pytest.raises(TypeError, match="has no tag"):
        canonical_text((value,), TABLE)


def test_a_field_that_was_added_later_is_written_only_where_it_says_something() -> None:
    assert canonical_text(ContributionBounds(4, 5), NODES) == "Contribution(groups=4, rows=5)"
    assert canonical_text(ContributionBounds(20, 20, 20), NODES) == "Contribution(groups=20, rows=20, total=20)"


def test_every_node_an_engine_may_be_given_and_every_mechanism_of_a_plan_has_a_tag() -> None:
    parsed = {
        nodes.Aggregate,
        nodes.InSubquery,
        nodes.Exists,
        nodes.ReleasedValue,
        nodes.ReleasedKey,
        nodes.Window,
        nodes.ScalarSubquery,
    }  # of the text of a question; no engine is given them
    assert set(get_args(nodes.RelationalNode)) | (set(get_args(nodes.Scalar)) - parsed) <= set(NODES)
    for holder in (Part, Pick, Shown):
        hints = get_type_hints(holder)
        for name in {"need", "mechanism"} & set(hints):
            assert (set(get_args(hints[name])) or {hints[name]}) <= set(PLANS)


def test_every_field_that_tells_two_values_apart_is_written() -> None:
    for kind, found in FITS.items():
        if issubclass(kind, Enum):
            continue
        assert is_dataclass(kind)
        assert [attribute for _, attribute in found.fields] == [field.name for field in fields(kind) if field.compare]
