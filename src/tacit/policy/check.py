"""The rules for names, numbers and keys; advice about a valid policy; what it promises. Nothing here looks at data."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from urllib.parse import urlsplit

from tacit.policy.locate import dotted, quoted
from tacit.policy.model import ROW, Analyst, Column, Key, Policy, Table, Through, Type
from tacit.privacy.unit import Neighbors

MAX_NAME = 128
MAX_DIGITS = 1000
INT64 = range(-(2**63), 2**63)
LARGE = 5
MEANINGLESS = 10
LARGE_DELTA = Fraction(1, 100_000)
LARGE_CONTRIBUTION = 100


@dataclass(frozen=True)
class Remark:
    """Advice about what stands at `path`. The policy is valid without heeding it."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def remarks(policy: Policy) -> tuple[Remark, ...]:
    """Advice about a valid policy, in the order of its sections."""
    tables = (remark for table in policy.tables for remark in _about_table(table, policy.delta_per_question > 0))
    return (*_about_ledger(policy), *_about_privacy(policy), *tables, *_about_analysts(policy))


def promise(policy: Policy) -> str:
    """What the policy promises to each unit, in plain sentences."""
    units = "; ".join(_unit(table) for table in policy.tables if not table.public)
    delta = f", plus {decimal_text(policy.budget.delta)}" if policy.budget.delta else ""
    return (
        f"Protected is each unit: {units}. {_together(policy)}"
        f"{_change(policy.neighbors)} changes the probability of any outcome, over the answers to all analysts "
        f"together, by a factor of at most exp({decimal_text(policy.budget.epsilon)}){delta}. "
        f"The caps of single analysts ({_caps(policy)}) hold for what each of them is told alone: "
        f"analysts who pool their answers are bound by the overall cap only.{_refreshing(policy)}"
    )


def _together(policy: Policy) -> str:
    """Which tables hold the same people, and which hold nobody."""
    people: dict[str, list[str]] = {}
    for table in policy.tables:
        if not table.public and table.unit != ROW:
            people.setdefault(table.people, []).append(quoted(table.name))
    said = [
        f"The units of {_listed(names)} are the same people: all that these hold of one is protected together. "
        for names in people.values()
        if len(names) > 1
    ]
    nobody = [quoted(table.name) for table in policy.tables if table.public]
    if nobody:
        said.append(f"Public, so that nobody is protected in them, are the rows of {_listed(nobody)}. ")
    return "".join(said)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _unit(table: Table) -> str:
    if table.unit == ROW:
        return f"in {quoted(table.name)} each row on its own, even where one person has several"
    if isinstance(table.unit, Through):
        way = f"{quoted(table.unit.column)} leads to the unit's rows in {quoted(table.unit.table)}"
        return f"in {quoted(table.name)} all rows whose {way}"
    return f"in {quoted(table.name)} all rows with the same {quoted(str(table.unit))}"


def _change(neighbors: Neighbors) -> str:
    if neighbors is Neighbors.REPLACE:
        return "Replacing all rows of one unit by rows of another"
    return "Adding or removing all rows of one unit"


def _caps(policy: Policy) -> str:
    shown = [_cap(analyst) for analyst in policy.analysts[:5]]
    more = len(policy.analysts) - len(shown)
    return "epsilon: " + "; ".join(shown) + (f" and {more} more" if more else "")


def _cap(analyst: Analyst) -> str:
    """A cap that refreshes is a promise about each month, and over several months these add up."""
    epsilon = analyst.budget.epsilon
    if not analyst.monthly:
        return f"{analyst.name} {decimal_text(epsilon)}"
    return f"{analyst.name} {decimal_text(epsilon)} in each calendar month, so {decimal_text(12 * epsilon)} over a year"


def _refreshing(policy: Policy) -> str:
    if not any(analyst.monthly for analyst in policy.analysts):
        return ""
    epsilon = decimal_text(policy.budget.epsilon)
    return f" Caps of single analysts may refresh; the overall cap of {epsilon} never does, and binds."


def _about_ledger(policy: Policy) -> Iterator[Remark]:
    books = policy.books
    if books is None:
        return
    if isinstance(books.store, str):
        if urlsplit(books.store).password:
            yield Remark("ledger.store", "holds a password, and a policy is public; keep it in ~/.pgpass or PGPASSWORD")
    elif books.witness.parent == books.store.parent:
        text = "lies beside the ledger, so an older copy of the whole folder goes unnoticed"
        yield Remark("ledger.witness", f"{text}; name a file on another disk")


def _about_privacy(policy: Policy) -> Iterator[Remark]:
    epsilon, delta = policy.budget.epsilon, policy.budget.delta
    scale = "below 0.1 is high privacy, 0.1 to 1 is good"
    if epsilon > MEANINGLESS:
        yield Remark("privacy.epsilon", f"{decimal_text(epsilon)} is close to meaningless as a promise; {scale}")
    elif epsilon > LARGE:
        yield Remark("privacy.epsilon", f"{decimal_text(epsilon)} is large; {scale}")
    if delta > LARGE_DELTA:
        text = "is the chance that the promise fails altogether; keep it far below one over the number of units"
        yield Remark("privacy.delta", f"{decimal_text(delta)} {text}")
    elif delta == 0:
        text = "0 means that epsilons add up one by one; a small delta, far below one over the number of units"
        more = "admits many more small questions, and GROUP BY keys that are not declared"
        yield Remark("privacy.delta", f"{text} (1e-9, say), {more}")
    elif policy.delta_per_question == 0:
        text = "0 means that no question may use the delta: keys that are not declared are refused"
        yield Remark("privacy.delta_per_question", text)


def _about_analysts(policy: Policy) -> Iterator[Remark]:
    overall = policy.budget
    for analyst in policy.analysts:
        for name in ("epsilon", "delta"):
            own, cap = getattr(analyst.budget, name), getattr(overall, name)
            if own > cap:
                text = f"{decimal_text(own)} is more than the overall {decimal_text(cap)}, which binds"
                yield Remark(dotted(("analysts", analyst.name, name)), text)
    plain = [analyst.name for analyst in policy.analysts if analyst.budget.delta == 0]
    if overall.delta and plain:
        names = ", ".join(plain[:5]) + (" and others" if len(plain) > 5 else "")
        text = "without a delta of one's own, epsilons add up one by one"
        yield Remark("analysts", f"{text} ({names}); a small delta admits many more small questions")
    total = sum((a.budget.epsilon for a in policy.analysts), Fraction(0))
    if len(policy.analysts) > 1 and total > overall.epsilon:
        text = f"their epsilons add up to {decimal_text(total)}, more than the overall {decimal_text(overall.epsilon)}"
        yield Remark("analysts", f"{text}: who asks first may leave less than their own cap to the others")


def _about_table(table: Table, selects: bool) -> Iterator[Remark]:
    """`selects` says that a question has a delta, so that private keys can be shown."""
    path = ("tables", table.name)
    if table.public and not any(column.unique for column in table.columns):
        text = "has no unique column, so no question can join it; write unique = true where no two rows share a value"
        yield Remark(dotted(path), text)
    rows = table.max_groups * table.max_rows_per_group
    called = "max_groups times max_rows_per_group"
    if table.max_rows is not None and table.max_rows >= rows:
        text = f"leaves nothing out, because {called} is {rows}; raise these up to it, or leave it out"
        yield Remark(dotted((*path, "max_rows")), text)
    elif table.max_rows is not None:
        rows, called = table.max_rows, "max_rows"
    if rows > LARGE_CONTRIBUTION:
        text = f"{called} is {rows}, and the noise of every count grows with it"
        yield Remark(dotted(path), f"{text}; smaller caps leave out rows of the busiest units but answer more sharply")
    if table.unit == ROW and table.column(ROW) is not None:
        yield Remark(dotted((*path, "unit")), f'"{ROW}" means each row, and not the column of that name')
    for column in table.columns:
        text = _about_column(column) or ("" if table.public else _about_keys(column, selects))
        if text:
            yield Remark(dotted((*path, "columns", column.name)), text)


def _about_column(column: Column) -> str:
    if column.type in (Type.INT, Type.FLOAT) and column.lower is None and column.values is None:
        return "a number without lower and upper can only be compared and counted, not summed or averaged"
    if column.type is Type.FLOAT and column.step is None:
        return "a float without step is rounded to a default grid over its bounds; give step to choose the grid"
    return ""


def _about_keys(column: Column, selects: bool) -> str:
    if column.type not in (Type.TEXT, Type.DATE) or column.values is not None or column.lower is not None:
        return ""
    public = "values make its keys public" if column.type is Type.TEXT else "lower and upper make its days public"
    if not selects:
        return f"no GROUP BY key, because which values occur is private and delta is 0; {public}"
    return f"in GROUP BY a value is shown only where enough units hold it; {public}"


def decimal_text(number: Fraction) -> str:
    """The number as a person would write it: as a decimal wherever it has one, and exact unless absurdly long.

    >>> decimal_text(Fraction(1, 10)), decimal_text(Fraction(-5, 4)), decimal_text(Fraction(1, 3))
    ('0.1', '-1.25', '1/3')
    >>> decimal_text(Fraction(1, 10**9)), decimal_text(Fraction(10**15))
    ('1e-9', '1000000000000000')
    """
    places = _places(number.denominator)
    if places is None:
        return str(number) if number.denominator < 10**20 else f"about {float(number):g}"
    digits = str(abs(number.numerator) * 10**places // number.denominator)
    sign = "-" if number < 0 else ""
    if places == 0:
        return sign + digits
    if places - len(digits) >= 4:
        return f"{sign}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e-{places - len(digits) + 1}"
    digits = digits.zfill(places + 1)
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def _places(denominator: int) -> int | None:
    """How many decimals a fraction in lowest terms with this denominator has; None if they do not end."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


KEYS = {
    Type.TEXT: "text",
    Type.INT: "a whole number that fits 64 bits",
    Type.DATE: "a date such as 2024-12-31",
}


def key_of(value: object, kind: Type) -> Key | None:
    """The value as a key of the type, or None if it is not one."""
    if kind is Type.INT and isinstance(value, int) and not isinstance(value, bool) and value in INT64:
        return int(value)
    if kind is Type.TEXT and isinstance(value, str) and "\0" not in value and is_unicode(value):
        return str.__str__(value)
    if kind is Type.DATE and isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.date(value.year, value.month, value.day)
    if kind is Type.DATE and isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            return None
    return None


def name_flaw(name: str) -> str:
    """What is wrong with a name, or nothing."""
    if not name:
        return "a name cannot be empty"
    if len(name) > MAX_NAME:
        return f"a name has at most {MAX_NAME} characters"
    return "" if is_clean(name) else "a name has no control characters"


def is_clean(text: str) -> bool:
    """Whether the text has no control characters, no line breaks and no halves of characters."""
    return not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in text)


def is_unicode(text: str) -> bool:
    """Whether the text has no halves of characters, which no file or database could hold."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def exact(value: object) -> Fraction | None:
    """The number that the decimal text says; None for what is not a number, not finite or absurdly long."""
    if isinstance(value, float):
        value = Decimal(float.__repr__(value))
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        if not isinstance(exponent, int) or abs(exponent) + len(value.as_tuple().digits) > MAX_DIGITS:
            return None
        return Fraction(value)
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return None
    number = Fraction(value)
    return number if max(abs(number.numerator), number.denominator) < 10**MAX_DIGITS else None


def shown(value: object) -> str:
    """The value as its owner would know it again, briefly."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal | Fraction):
        return _shown_number(value)
    if isinstance(value, str):
        return quoted(value if len(value) <= 40 else value[:37] + "...")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a table"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def _shown_number(value: float | Decimal | Fraction) -> str:
    number = exact(value)
    if number is None:
        finite = isinstance(value, int | Fraction) or Decimal(value).is_finite()
        return "a number of too many digits" if finite else str(value).lower()[:3]
    point = ".0" if isinstance(value, float | Decimal) and number.denominator == 1 else ""
    text = decimal_text(number) + point
    return text if len(text) <= 40 else text[:37] + "..."
