"""How to finish: which released integers mean what, and what the question does with them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from tacit.aggregates.base import Estimator, Releases
from tacit.answers.argument_bounds import ArgumentBounds
from tacit.answers.clipping import Clipping
from tacit.answers.program import Node
from tacit.answers.stored import GroupKeys
from tacit.query.integer_types import PostgresType
from tacit.query.nodes import OrderItem, ReleasedKey, ReleasedValue, Scalar
from tacit.query.types import Key, Type


@dataclass(frozen=True)
class KeyColumn:
    """A column of keys: its type, and its public values; None where those shown were selected.

    They are None, too, where they are `listed`: read from public tables.
    """

    type: Type
    values: tuple[Key, ...] | None
    listed: bool = False


@dataclass(frozen=True)
class OutputColumn:
    """A column of the answer, over the released values and keys; of lists of the type where `many`.

    `postgres_type` is PostgreSQL's type of whole numbers, for what is computed with the column.
    """

    name: str
    scalar: Scalar
    type: Type
    many: bool = False
    postgres_type: PostgresType = PostgresType.INTEGER


@dataclass(frozen=True)
class PostProcessingPlan:
    """All that post-processing needs, and nothing of the data.

    `combinations` are the groups where not all combinations of public keys are listed.
    """

    keys: tuple[KeyColumn, ...]
    parts: Releases
    values: tuple[Estimator, ...]
    results: tuple[OutputColumn, ...]
    having: Scalar | None
    order: tuple[OrderItem, ...]
    limit: int | None
    offset: int
    notes: tuple[str, ...] = ()
    clipping: Clipping | None = None  # until the release says which clip was chosen
    bounds: tuple[ArgumentBounds, ...] = ()  # until the release says which bounds were chosen
    combinations: tuple[GroupKeys, ...] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether every result is a key or a released value as it is, and every row is shown in its place."""
        as_they_are = all(isinstance(result.scalar, ReleasedKey | ReleasedValue) for result in self.results)
        return as_they_are and self.having is None and not self.order and self.limit is None and not self.offset

    @property
    def groups(self) -> int | None:
        """How many public groups there are, one without keys; None where it is not known."""
        if self.combinations is not None:
            return len(self.combinations)
        sizes = [None if key.values is None else len(key.values) for key in self.keys]
        return None if None in sizes else prod(size for size in sizes if size is not None)

    def list_groups(self) -> list[GroupKeys]:
        """The public groups, in their order; none where keys are not public."""
        if self.combinations is not None:
            return list(self.combinations)
        return list(product(*(key.values or () for key in self.keys)))


@dataclass(frozen=True)
class PublicTable:
    """Rows of public tables that a program reads: the types of their columns, and the rows once they are read."""

    types: tuple[Type, ...]
    rows: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True)
class ProgramResult:
    """A column of the answer that a program computes: its name, the program's name for it, and its type."""

    name: str
    column: str
    type: Type


@dataclass(frozen=True)
class CompoundPostProcessingPlan:
    """How several releases make an answer: the plan of each, and the program over their tables.

    `places` says which release each table of the program is. `public` are the public tables that it reads too.
    `about_program` is said of what it computes.
    """

    members: tuple[PostProcessingPlan, ...]
    places: tuple[int, ...]
    program: Node
    results: tuple[ProgramResult, ...]
    public: tuple[PublicTable, ...] = ()
    about_program: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is said of the program and of the members, once."""
        if not self.members and self.public:
            return ("Only public tables were read: the answer is exact, and costs nothing.",)
        if not self.members:
            return ("The question has no rows, whatever the data holds: it was not read.",)
        about_members = (note for member in self.members for note in member.notes)
        return tuple(dict.fromkeys((*self.about_program, *about_members)))


AnyPostProcessingPlan = PostProcessingPlan | CompoundPostProcessingPlan
