"""What a profile of the data measures: one histogram of each column, and one of how many rows units have.

**Theorem.** In each histogram a unit is counted once: adding or removing a unit moves its cells by at most 1 in L1, and
replacing one by at most 2. Proof. The rows of a unit follow from its own rows (`plan/scope.py`). The engine keeps one
of them, by a rule that looks at these rows alone (`engines/sql_statements.py`), and where each row is a unit, that row.
A row has one value in each column, so it is in one bin or has one key. A unit has one number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tacit.aggregates.registry import read_question
from tacit.curator.copies import quote_name
from tacit.errors import ParameterError
from tacit.plan.relation import Field, Relation
from tacit.plan.scope import Scope
from tacit.policy.model import ROW_UNIT, Policy, Table
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.nodes import Aggregation, ColumnReference, ExactStatistic, PerUnitAggregation
from tacit.query.types import Key, Type
from tacit.query.value_bins import ValueBins

_ONE = ContributionBounds(groups=1, rows=1)
_ROWS = "rows"


@dataclass(frozen=True)
class ProfiledColumn:
    """A column that is profiled: by bins, or a text by its declared `values` or, without these, by private keys.

    The last measure of `exact` is the histogram; of texts, where it leaves NULL out, the first is how many rows are
    kept. Columns are measured one by one: then a statement holds the bins of one column only.
    """

    name: str
    type: Type
    values: tuple[Key, ...] | None
    exact: Aggregation

    @property
    def has_private_keys(self) -> bool:
        """Whether the keys that it shows must be selected."""
        return self.type is Type.TEXT and self.values is None


@dataclass(frozen=True)
class ProfiledTable:
    """A table that is profiled. `sizes` has the histogram of how many rows units have; None where a row is a unit."""

    name: str
    unit: str
    columns: tuple[ProfiledColumn, ...]
    sizes: Aggregation | None

    @property
    def histograms(self) -> int:
        """The number of histograms that are released."""
        return len(self.columns) + (self.sizes is not None)

    def with_salt(self, salt: str) -> ProfiledTable:
        """The same with the salt by which rows are chosen."""
        columns = tuple(replace(column, exact=replace(column.exact, salt=salt)) for column in self.columns)
        return replace(self, columns=columns, sizes=None if self.sizes is None else replace(self.sizes, salt=salt))


def plan_tables(policy: Policy, names: Iterable[str] | None = None) -> tuple[ProfiledTable, ...]:
    """Plan the profile of the private tables, or of those that are named."""
    tables = list(_private_tables(policy)) if names is None else [_find_table(policy, name) for name in names]
    return tuple(_plan_table(policy, table) for table in dict.fromkeys(tables))


def _private_tables(policy: Policy) -> Iterator[Table]:
    return (table for table in policy.tables if not table.public)


def _find_table(policy: Policy, name: str) -> Table:
    found = policy.table(name)
    if found is None or found.public:
        known = ", ".join(table.name for table in _private_tables(policy))
        what = f"there is no table {name}" if found is None else f"{found.name} is public: it needs no profile"
        raise ParameterError("table", what, fix=f"name one of {known}")
    return found


def _plan_table(policy: Policy, table: Table) -> ProfiledTable:
    """All columns that may be named, but the unit."""
    relation = Scope(policy).subquery(read_question(f"SELECT * FROM {quote_name(table.name)}", None, policy.dialect))
    columns = tuple(
        _plan_column(field, relation) for field in relation.fields if not field.is_unit and field.bound.type is not None
    )
    sizes = None
    if relation.unit is not None:
        unit = ColumnReference(relation.unit)
        counted = PerUnitAggregation(relation.rows, ((relation.unit, unit),), ((_ROWS, ExactStatistic("count", None)),))
        code = ValueBins(Type.INT).write_code(ColumnReference(_ROWS))
        sizes = Aggregation(counted, None, relation.unit, (), _ONE, (ExactStatistic("histogram", code),))
    called = ROW_UNIT if relation.unit is None else relation.called
    return ProfiledTable(table.name, called, columns, sizes)


def _plan_column(field: Field, relation: Relation) -> ProfiledColumn:
    """The histogram of a column: of the codes of its bins, or of texts as they are."""
    kind = field.bound.type
    assert kind is not None
    is_text = kind is Type.TEXT
    argument = field.bound.scalar if is_text else ValueBins(kind).write_code(field.bound.scalar)
    rows = (ExactStatistic("count", None),) if is_text else ()
    exact = Aggregation(relation.rows, None, relation.unit, (), _ONE, (*rows, ExactStatistic("histogram", argument)))
    return ProfiledColumn(field.name, kind, field.values if is_text else None, exact)
