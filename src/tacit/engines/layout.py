"""How a table lies in a copy that is sorted by unit, and which questions can be read straight from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tacit.query.nodes import (
    Aggregation,
    Call,
    Case,
    Clamp,
    ColumnReference,
    EquiJoin,
    GroupKey,
    Literal,
    Projection,
    Quantize,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    ToFloat,
    column_names,
    walk,
)
from tacit.query.types import Key

UNIT_COLUMN = "#unit"
"""The column of a copy that says whose row it is, as an integer."""

ROW_COLUMN = "#row"
"""The column of a copy that numbers its rows from 0, as they lie."""

PART_COLUMN = "#part"
"""The column of a union that says which of its parts a row is of."""

LISTED = frozenset({"histogram", "distinct", "distinct_sum"})
"""The statistics that are computed from the values of a group one by one."""

Range = tuple[int, int]
"""The least and the largest that an integer can be."""

_NARROW = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31}  # bits without the sign


@dataclass(frozen=True)
class CopyLayout:
    """A table with units, as a copy of it holds them.

    `rows` are its rows with the column `unit`, as questions ask for them. `scalars` are what questions compute from
    its columns most often, in terms of the declared names: a copy holds them ready. `ranges` are those of scalars that
    are integers within bounds, by their position: a copy holds these in as few bytes as they need. `texts` are its
    columns of text: a copy holds the few texts of a column once, and each row their number.
    """

    table: str
    rows: RelationalNode
    unit: str
    scalars: tuple[Scalar, ...]
    ranges: tuple[Range | None, ...]
    texts: tuple[str, ...]

    @property
    def scan(self) -> Scan:
        """The table's own rows, without the way to its unit."""
        node = self.rows
        while isinstance(node, EquiJoin):
            node = node.left
        assert isinstance(node, Scan)
        return node


def stored_column(column: str) -> str:
    """The column of a copy that holds a declared one: of the same name, unless DuckDB has that for the row's number."""
    return f"#column {column}" if column.lower() == "rowid" else column


def scalar_column(number: int) -> str:
    """The column of a copy that holds a scalar of its layout, by its position."""
    return f"#{number}"


def narrow_column(number: int) -> str:
    """The column that holds the same in as few bytes as it needs, to be read but not to be computed with.

    It has no NULL: the least value of its type stands for one.
    """
    return f"#narrow {number}"


def narrow_type(integers: Range | None) -> tuple[str, int] | None:
    """The least type for integers within bounds whose least value is none of them, and that value."""
    bits = 64 if integers is None else max(abs(end) for end in integers).bit_length()
    return next(((kind, -(1 << size)) for kind, size in _NARROW.items() if bits <= size), None)


def text_code_column(text: str) -> str:
    """The column of a copy that holds the numbers of a column's texts."""
    return f"#text {text}"


@dataclass(frozen=True)
class CopyScan:
    """An aggregation over one copied table: `source` gives its rows in the copy's order, with the column UNIT, or with
    ROW where it reads every row; and what is used of them.

    A key that follows from one column of numbered text is read by its number; `texts` says which column, by the key's
    position. `narrow` are those arguments that can be read from a narrow column.
    """

    table: str
    source: RelationalNode
    where: Scalar | None
    keys: tuple[GroupKey, ...]
    texts: Mapping[int, str]
    arguments: Mapping[Scalar, Scalar]
    narrow: Mapping[Scalar, Scalar] = field(default_factory=dict)

    @property
    def columns(self) -> set[str]:
        """What it reads of the table."""
        node = self.source
        while isinstance(node, Projection):
            node = node.source
        assert isinstance(node, Scan)
        return {there for there, _ in node.columns}

    @property
    def is_whole(self) -> bool:
        """Whether it reads every row of the table."""
        return self.where is None and isinstance(self.source, Scan)


def plan_copy_scan(node: Aggregation, layouts: Mapping[str, CopyLayout]) -> CopyScan | None:
    """The aggregation as one pass over a copied table, its rows in the copy's order; None where it is none.

    **Theorem.** The rows of a unit then come in an order that follows from these rows alone. Proof: a copy is sorted
    by the unit, then by all columns, so rows that tie are equal; selecting and computing row by row keeps the order.
    """
    if node.unit is None:
        return None
    leaf = find_copied_table(node.source, layouts)
    if leaf is None:
        return None
    here = {there: ColumnReference(name) for there, name in leaf.columns if there != UNIT_COLUMN}
    layout = layouts[leaf.table]
    if isinstance(node.source, Projection):
        return CopyScan(
            leaf.table, _pass_unit_through(node.source, leaf), node.where, node.keys, {}, _arguments(node, {})
        )
    named: dict[Scalar, Scalar] = {ColumnReference(there): column for there, column in here.items()}
    ready: dict[Scalar, Scalar] = {}
    bare: dict[Scalar, Scalar] = {}
    ranges: dict[Scalar, Range] = {}
    for number, (scalar, integers) in enumerate(zip(layout.scalars, layout.ranges, strict=True)):
        if {part.name for part in walk(scalar) if isinstance(part, ColumnReference)} <= set(here):
            if not isinstance(scalar, ColumnReference):  # a column is there already, to be computed with
                ready[substitute(scalar, named)] = ColumnReference(scalar_column(number))
            if integers is not None and narrow_type(integers) is not None:
                bare[substitute(scalar, named)] = ColumnReference(narrow_column(number))
                ranges[substitute(scalar, named)] = integers
    texts = {}
    keys = []
    for position, key in enumerate(node.keys):
        used = {part for part in walk(key.scalar) if isinstance(part, ColumnReference)}
        column = next((there for there in layout.texts if {here.get(there)} == used), None)
        if column is not None:
            texts[position] = column
            keys.append(key)
        elif key.scalar in bare and _are_within(key.values, ranges[key.scalar]):
            keys.append(replace(key, scalar=bare[key.scalar]))
        else:
            keys.append(replace(key, scalar=substitute(key.scalar, ready)))
    extra = [(c.name, c.name) for c in [*ready.values(), *bare.values()] if isinstance(c, ColumnReference)]
    extra.append((ROW_COLUMN, ROW_COLUMN))
    extra += [(text_code_column(column), text_code_column(column)) for column in dict.fromkeys(texts.values())]
    where = None if node.where is None else substitute(node.where, ready)
    arguments, listed = _arguments(node, ready), {m.argument for m in node.measures if m.function in LISTED}
    narrow = {argument: bare[argument] for argument in arguments if argument in bare and argument not in listed}
    computed = [key.scalar for position, key in enumerate(keys) if position not in texts]
    computed += [narrow.get(argument, value) for argument, value in arguments.items()]
    computed += [] if where is None else [where]
    names = {part.name for scalar in computed for part in walk(scalar) if isinstance(part, ColumnReference)}
    names |= {ROW_COLUMN if where is None else UNIT_COLUMN, *(text_code_column(column) for column in texts.values())}
    source = Scan(leaf.table, tuple((there, name) for there, name in (*leaf.columns, *extra) if name in names))
    return CopyScan(leaf.table, source, where, tuple(keys), texts, arguments, narrow)


def _are_within(values: tuple[Key, ...] | None, integers: Range) -> bool:
    """Whether all keys are such integers, so that none is what stands for NULL in a narrow column."""
    return values is not None and all(isinstance(v, int) and integers[0] <= v <= integers[1] for v in values)


def _arguments(node: Aggregation, ready: Mapping[Scalar, Scalar]) -> dict[Scalar, Scalar]:
    return {m.argument: substitute(m.argument, ready) for m in node.measures if m.argument is not None}


def find_copied_table(node: RelationalNode, layouts: Mapping[str, CopyLayout]) -> Scan | None:
    """The copied table under a question, with the column UNIT."""
    while isinstance(node, Projection):
        node = node.source
    scan: RelationalNode = node
    while isinstance(scan, EquiJoin):
        scan = scan.left
    layout = layouts.get(scan.table) if isinstance(scan, Scan) else None
    if layout is None or not isinstance(scan, Scan) or not _is_same_unit_join(node, layout.rows):
        return None
    # Where the unit's own column lies in another table, it is only passed on: the number stands for it.
    passed = [(UNIT_COLUMN, _find_unit_column(node))] if isinstance(node, EquiJoin) else []
    return Scan(scan.table, (*scan.columns, *passed, (UNIT_COLUMN, UNIT_COLUMN)))


def number_rows(node: RelationalNode, layouts: Mapping[str, CopyLayout]) -> RelationalNode | None:
    """The same rows with ROW, the number of the row that each is made of, of one table that is sorted by unit.

    Of the tables of a join it is the one whose rows find those of the other, or else the first. None where there is
    none, or rows are made of several of it. Only the question and the policy decide which it is.
    """
    match node:
        case Scan(table, columns) if table in layouts:
            return Scan(table, (*columns, (ROW_COLUMN, ROW_COLUMN)))
        case Projection(source, columns, where):
            numbered = number_rows(source, layouts)
            passed = (*columns, (ROW_COLUMN, ColumnReference(ROW_COLUMN)))
            return None if numbered is None else Projection(numbered, passed, where)
        case EquiJoin(left, right, outer=outer):
            ours, theirs = number_rows(left, layouts), None if outer else number_rows(right, layouts)
            if theirs is not None and (node.finds_left or ours is None):
                return replace(node, right=theirs)
            return None if ours is None else replace(node, left=ours)
    return None


def is_of_right_rows(node: EquiJoin, layouts: Mapping[str, CopyLayout]) -> bool:
    """Whether the rows of a join are numbered by those of its right side."""
    numbered = number_rows(node, layouts)
    return isinstance(numbered, EquiJoin) and numbered.right is not node.right


def order_rows(node: RelationalNode, layouts: Mapping[str, CopyLayout]) -> tuple[RelationalNode, tuple[str, ...]]:
    """The same rows, and the columns by which those of a unit are put in order; none where they are not numbered.

    Those of a union are in the order of its parts, and in each part as in the copy.
    """
    match node:
        case RowUnion(parts):
            numbered = [number_rows(_project(part), layouts) for part in parts]
            named = [part for part in numbered if isinstance(part, Projection)]
            if len(named) < len(parts):
                return node, ()
            places = [(PART_COLUMN, Literal(place)) for place in range(len(parts))]
            both = (replace(part, columns=(*part.columns, place)) for part, place in zip(named, places, strict=True))
            return RowUnion(tuple(both)), (PART_COLUMN, ROW_COLUMN)
        case Projection(source, columns, where):
            ordered, order = order_rows(source, layouts)
            return Projection(ordered, (*columns, *((name, ColumnReference(name)) for name in order)), where), order
    numbered_rows = number_rows(node, layouts)
    return (node, ()) if numbered_rows is None else (numbered_rows, (ROW_COLUMN,))


def _project(node: RelationalNode) -> Projection:
    """The same rows as those of a subquery."""
    if isinstance(node, Projection):
        return node
    return Projection(node, tuple((name, ColumnReference(name)) for name in column_names(node)))


def _pass_unit_through(node: RelationalNode, leaf: Scan) -> RelationalNode:
    """The rows of a subquery, the column UNIT passed on."""
    if not isinstance(node, Projection):
        return leaf
    return Projection(
        _pass_unit_through(node.source, leaf), (*node.columns, (UNIT_COLUMN, ColumnReference(UNIT_COLUMN))), node.where
    )


def _is_same_unit_join(node: RelationalNode, known: RelationalNode, first: bool = True) -> bool:
    """Whether both are a table with the way to its unit, names aside; only the first table may have other columns."""
    match node, known:
        case Scan(one, columns), Scan(other, wanted):
            return one == other and (first or [c for c, _ in columns] == [c for c, _ in wanted])
        case EquiJoin(Scan() as left, right, on, outer), EquiJoin(
            Scan() as known_left, known_right, known_on, known_outer
        ):
            linked = [_is_declared(left, one) for one, _ in on] == [
                _is_declared(known_left, one) for one, _ in known_on
            ]
            return (
                linked
                and outer == known_outer
                and _is_same_unit_join(left, known_left, first)
                and _is_same_unit_join(right, known_right, False)
            )
    return False


def _is_declared(scan: Scan, scalar: Scalar) -> str | None:
    return next((there for there, here in scan.columns if scalar == ColumnReference(here)), None)


def _find_unit_column(node: RelationalNode) -> str:
    """The name of the unit at the end of the way."""
    while isinstance(node, EquiJoin):
        node = node.right
    assert isinstance(node, Scan)
    return node.columns[-1][1]


def substitute(scalar: Scalar, ready: Mapping[Scalar, Scalar]) -> Scalar:
    """The scalar, with what is ready in place of what would be computed."""
    if scalar in ready:
        return ready[scalar]
    match scalar:
        case Call(function, arguments):
            return Call(function, tuple(substitute(argument, ready) for argument in arguments))
        case Case(branches, otherwise):
            parts = tuple((substitute(condition, ready), substitute(value, ready)) for condition, value in branches)
            return Case(parts, substitute(otherwise, ready))
        case Clamp() | ToFloat() | Quantize():
            return replace(scalar, operand=substitute(scalar.operand, ready))
    return scalar
