"""Proposals for an owner who begins a policy: whose rows a table holds, and which columns are better left out.

They come from the names of tables and columns, and from how often values repeat. The owner sees them; the policy, which
is public, says what the owner confirms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.engines.source_columns import SourceColumn
from tacit.policy.model import UnitForeignKey
from tacit.query.types import Type

Tables = Mapping[str, Sequence[SourceColumn]]

UNIQUE = 0.95  # of the values differ, at least, in a column that has each once: the number of values is an estimate
_FREE_TEXT = 40  # characters, in the mean


def name_words(name: str) -> list[str]:
    """The words of a name, in small letters.

    >>> name_words("firstName"), name_words("E-Mail_address"), name_words("customerID")
    (['first', 'name'], ['e', 'mail', 'address'], ['customer', 'id'])
    """
    return re.findall(r"[a-z]+|[0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower())


_PEOPLE = frozenset(
    name_words(
        "account applicant borrower buyer candidate child citizen claimant client consumer contact customer donor "
        "driver employee family guest holder household individual insured learner member parent participant passenger "
        "patient person player pupil reader recipient resident respondent rider seller student subject subscriber "
        "tenant tourist user viewer visitor voter worker"
    )
)
_NUMBERED = frozenset(name_words("code key no nr num number ref uuid"))  # what people are told apart by
_PARTS_OF_NAMES = frozenset(name_words("display family first full given last legal maiden middle nick preferred sur"))
_NAMES = frozenset(name_words("firstname forename fullname lastname login nickname surname username"))
# Words in the name of a column, and what such a column holds.
_HOLDS = {
    "an email address": "email emails mail",
    "a telephone number": "cellphone fax mobile phone phones tel telephone whatsapp",
    "a number that is given to one person": "iban imei nin nino passport pesel ssn",
    "an address": "addr address street",
    "a secret": "passwd password passwords secret",
    "a link that may lead to somebody": "avatar homepage photo picture url website",
}
_FREE_WORDS = frozenset(
    name_words("comment comments description feedback memo message narrative note notes remark remarks")
)


def is_identifier_name(column: str) -> bool:
    """Whether a column is called like one that says whose row it is.

    >>> [is_identifier_name(name) for name in ("id", "patient_id", "CustomerId", "Patient No.", "paid", "age")]
    [True, True, True, True, False, False]
    """
    words, column = name_words(column), column.strip()
    is_number_of_person = bool(words) and words[-1] in _NUMBERED and bool(_PEOPLE & set(words))
    is_id = column.lower() == "id" or column.lower().endswith(("_id", "-id", " id")) or column.endswith(("Id", "ID"))
    return is_id or is_number_of_person


def find_what_names_somebody(column: SourceColumn) -> str | None:
    """What a column holds that names or describes one person; None where nothing says so.

    >>> find_what_names_somebody(SourceColumn("Email", Type.TEXT))
    'an email address'
    >>> find_what_names_somebody(SourceColumn("product_name", Type.TEXT))
    """
    words = name_words(column.name)
    told = set(words)
    if "ip" in told:
        return "an address on the internet"
    if told & _NAMES or ("name" in told and (len(words) == 1 or told & (_PEOPLE | _PARTS_OF_NAMES))):
        return "the name of somebody"
    if {"card", "number"} <= told or {"tax", "id"} <= told:
        return "a number that is given to one person"
    for held, naming in _HOLDS.items():
        if told & set(name_words(naming)):
            return held
    if column.kind is Type.TEXT:
        is_long = column.length is not None and column.length > _FREE_TEXT
        if told & _FREE_WORDS or (is_long and (column.distinct or 0) > 0.5):
            return "free text"
        if column.distinct is not None and column.distinct >= UNIQUE:
            return "another value in nearly every row"
    return None


@dataclass(frozen=True)
class UnitProposal:
    """The unit of a table, as a policy has it, and the name of its people where other tables hold them too."""

    unit: str | UnitForeignKey
    people: str | None = None


def propose_person(tables: Tables) -> str | None:
    """The column that most likely says whose row it is, in all tables: customer_id, not order_id.

    It is called after people, is in several tables, or has values that repeat; a column that no other row shares is
    likely the key of its own table.
    """
    names: dict[str, list[tuple[str, SourceColumn]]] = {}
    for table, columns in tables.items():
        for column in columns:
            if is_identifier_name(column.name) and isinstance(column.kind, Type):
                names.setdefault(column.name.lower(), []).append((table, column))

    def score(places: list[tuple[str, SourceColumn]]) -> int:
        stem = _stem(places[0][1].name)
        repeats = [column.distinct < UNIQUE for _, column in places if column.distinct is not None]
        return (
            4 * bool(_PEOPLE & set(name_words(stem)))
            + 2 * (len(places) > 1 and bool(stem))
            + 3 * any(repeats)
            - 2 * (bool(repeats) and not any(repeats))
            - any(_singular(table) == stem for table, _ in places)
        )

    ranked = sorted(names.values(), key=score, reverse=True)  # of equals the first
    return ranked[0][0][1].name if ranked else None


def propose_units(tables: Tables, person: str) -> dict[str, UnitProposal]:
    """The unit of each table that the person's column, or a foreign key, leads to.

    A table of the people themselves has it as `id`. One that has neither is reached over a column that is the key of a
    table which does.
    """
    stem = _stem(person)
    found: dict[str, UnitProposal] = {}
    for table, columns in tables.items():
        named = {column.name.lower(): column.name for column in columns}
        if person.lower() in named:
            found[table] = UnitProposal(named[person.lower()])
        elif stem and _singular(table) == stem and "id" in named:
            found[table] = UnitProposal(named["id"])
    if len(found) > 1:
        people = stem or "people"
        found = {table: UnitProposal(each.unit, people) for table, each in found.items()}
    while True:
        further = {
            table: UnitProposal(way)
            for table, columns in tables.items()
            if table not in found and (way := _find_way(columns, tables, found)) is not None
        }
        if not further:
            return found
        found |= further


def _find_way(
    columns: Sequence[SourceColumn], tables: Tables, known: Mapping[str, UnitProposal]
) -> UnitForeignKey | None:
    """A foreign key to a table whose unit is known."""
    for column in columns:
        if not is_identifier_name(column.name) or column.name.lower() == "id":
            continue
        for other in known:
            for key in tables[other]:
                is_own = key.name.lower() == "id" and _singular(other) == _stem(column.name)
                is_unique = key.distinct is None or key.distinct >= UNIQUE
                is_same = key.name.lower() == column.name.lower() and _singular(other) == _stem(key.name)
                if (is_own or is_same) and is_unique:
                    return UnitForeignKey(column.name, other, key.name)
    return None


def _stem(column: str) -> str:
    """What an identifier is of: customer, of customer_id; nothing, of id."""
    words = name_words(column)
    is_last_of = bool(words) and (words[-1] == "id" or (words[-1] in _NUMBERED and len(words) > 1))
    return "_".join(words[:-1] if is_last_of else words)


def _singular(table: str) -> str:
    """The name of one of a table's rows: order, of orders."""
    name = "_".join(name_words(table))
    return name[:-3] + "y" if name.endswith("ies") else name[:-1] if name.endswith("s") else name
