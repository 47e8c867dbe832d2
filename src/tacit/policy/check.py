"""The rules for names, numbers and keys; advice about a valid policy. Nothing here looks at data."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from urllib.parse import urlsplit

from tacit.accounting.filters import DeltaSplit
from tacit.arithmetic import format_decimal
from tacit.policy.locate import format_path, quote_string
from tacit.policy.model import ROW_UNIT, Column, DeclaredAnalyst, Key, Policy, Table, Type

MAX_NAME = 128
MAX_DIGITS = 1000
INT64 = range(-(2**63), 2**63)
LARGE = 5
MEANINGLESS = 10
LARGE_DELTA = Fraction(1, 100_000)
LARGE_CONTRIBUTION = 100
DELTA_RULE = "far below one over the number of units: 1e-6 for ten thousand, less for more"
_NEEDED = "counting units, grouping by them in a subquery and joining on them need no listing"


@dataclass(frozen=True)
class PolicyAdvice:
    """Advice about what stands at `path`. The policy is valid without heeding it."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def check_policy(policy: Policy) -> tuple[PolicyAdvice, ...]:
    """Advice about a valid policy, in the order of its sections."""
    hidden = _private_keys_problem(policy)
    tables = (remark for table in policy.tables for remark in _about_table(table, hidden))
    return (*_about_ledger(policy), *_about_privacy(policy), *tables, *_about_analysts(policy))


def _about_ledger(policy: Policy) -> Iterator[PolicyAdvice]:
    books = policy.books
    if books is None:
        return
    if isinstance(books.store, str):
        if urlsplit(books.store).password:
            yield PolicyAdvice(
                "ledger.store", "holds a password, and a policy is public; keep it in ~/.pgpass or PGPASSWORD"
            )
    elif books.witness.parent == books.store.parent:
        text = "lies beside the ledger, so an older copy of the whole folder goes unnoticed"
        yield PolicyAdvice("ledger.witness", f"{text}; name a file on another disk")


def _about_privacy(policy: Policy) -> Iterator[PolicyAdvice]:
    epsilon, delta = policy.budget.epsilon, policy.budget.delta
    scale = "below 0.1 is high privacy, 0.1 to 1 is good"
    if epsilon > MEANINGLESS:
        yield PolicyAdvice(
            "privacy.epsilon", f"{format_decimal(epsilon)} is close to meaningless as a promise; {scale}"
        )
    elif epsilon > LARGE:
        yield PolicyAdvice("privacy.epsilon", f"{format_decimal(epsilon)} is large; {scale}")
    if delta > LARGE_DELTA:
        text = f"is the chance that the promise fails altogether; keep it {DELTA_RULE}"
        yield PolicyAdvice("privacy.delta", f"{format_decimal(delta)} {text}")
    elif delta == 0:
        text = "0 means that epsilons add up one by one; a small delta admits many more small questions"
        yield PolicyAdvice("privacy.delta", f"{text}, and GROUP BY keys that are not declared; keep it {DELTA_RULE}")
    elif policy.delta_per_question == 0:
        text = "0 means that no question may use the delta: keys that are not declared are refused"
        yield PolicyAdvice("privacy.delta_per_question", text)


def _about_analysts(policy: Policy) -> Iterator[PolicyAdvice]:
    overall = policy.budget
    for analyst in policy.analysts:
        for name in ("epsilon", "delta"):
            own, cap = getattr(analyst.budget, name), getattr(overall, name)
            if own > cap:
                text = f"{format_decimal(own)} is more than the overall {format_decimal(cap)}, which binds"
                yield PolicyAdvice(format_path(("analysts", analyst.name, name)), text)
        yield from _about_access(policy, analyst)
    plain = [analyst.name for analyst in policy.analysts if analyst.budget.delta == 0]
    if overall.delta and plain:
        names = ", ".join(plain[:5]) + (" and others" if len(plain) > 5 else "")
        text = "without a delta of one's own, epsilons add up one by one"
        yield PolicyAdvice("analysts", f"{text} ({names}); a small delta admits many more small questions")
    total = sum((a.budget.epsilon for a in policy.analysts), Fraction(0))
    if len(policy.analysts) > 1 and total > overall.epsilon:
        text = (
            f"their epsilons add up to {format_decimal(total)}, more than the overall {format_decimal(overall.epsilon)}"
        )
        yield PolicyAdvice("analysts", f"{text}: who asks first may leave less than their own cap to the others")


def _about_access(policy: Policy, analyst: DeclaredAnalyst) -> Iterator[PolicyAdvice]:
    """Units that are listed columns and are hidden from an analyst, who can then not even count them."""
    if analyst.access is None:
        return
    for table in policy.tables:
        shown, unit = analyst.access.columns_of(table), policy.unit_name(table)
        listed = table.column(unit)
        if shown is None or table.unit == ROW_UNIT or listed is None or listed in shown:
            continue
        text = f"hides {unit}, the unit of {table.name}: {analyst.name} can neither count units by it nor join on it"
        path = format_path(("analysts", analyst.name, "columns"))
        yield PolicyAdvice(path, f'{text}; add "{table.name}.{listed.name}" to allow that')


def _private_keys_problem(policy: Policy) -> str:
    """Why private keys can never be shown; nothing where some analyst can pay for them."""
    price = policy.delta_per_question
    if price == 0:
        return "delta is 0"
    most = max((min(a.budget.delta, policy.budget.delta) for a in policy.analysts), default=Fraction(0))
    if most == 0:
        return "showing them costs a delta, and no analyst has one"
    if price > most * DeltaSplit().basic:
        return f"showing them costs delta {format_decimal(price)}, and half of no analyst's delta is so much"
    return ""


def _about_table(table: Table, hidden: str) -> Iterator[PolicyAdvice]:
    """`hidden` says why private keys cannot be shown, if so."""
    path = ("tables", table.name)
    if table.public and not table.unique and not any(column.unique for column in table.columns):
        text = "has no unique column, so no question can join it; write unique = true where no two rows share a value"
        yield PolicyAdvice(format_path(path), text)
    if not table.auto:
        yield from _about_caps(table, path)
    if table.unit == ROW_UNIT and table.column(ROW_UNIT) is not None:
        yield PolicyAdvice(
            format_path((*path, "unit")), f'"{ROW_UNIT}" means each row, and not the column of that name'
        )
    unit = table.column(table.unit) if isinstance(table.unit, str) else None
    if unit is not None and table.unit != ROW_UNIT:
        text = f"is the unit, and listed it may be named in WHERE, to ask about one alone; leave it out: {_NEEDED}"
        yield PolicyAdvice(format_path((*path, "columns", unit.name)), text)
    for column in table.columns:
        if column is unit and table.unit != ROW_UNIT:
            continue
        text = _about_column(column) or ("" if table.public else _about_keys(column, hidden))
        if text:
            yield PolicyAdvice(format_path((*path, "columns", column.name)), text)


def _about_caps(table: Table, path: tuple[str, ...]) -> Iterator[PolicyAdvice]:
    """Fixed caps that leave nothing out, or that make the noise of every count large."""
    rows = table.max_groups * table.max_rows_per_group
    called = "max_groups times max_rows_per_group"
    if table.max_rows is not None and table.max_rows >= rows:
        text = f"leaves nothing out, because {called} is {rows}; raise these up to it, or leave it out"
        yield PolicyAdvice(format_path((*path, "max_rows")), text)
    elif table.max_rows is not None:
        rows, called = table.max_rows, "max_rows"
    if rows > LARGE_CONTRIBUTION:
        text = f"{called} is {rows}, and the noise of every count grows with it"
        yield PolicyAdvice(
            format_path(path), f"{text}; smaller caps leave out rows of the busiest units but answer more sharply"
        )


def _about_column(column: Column) -> str:
    if column.type in (Type.INT, Type.FLOAT) and column.lower is None and column.values is None:
        return "sums and averages of a number without lower and upper have bounds chosen for each question, at a cost"
    if column.type is Type.FLOAT and column.step is None:
        return "a float without step is rounded to a default grid over its bounds; give step to choose the grid"
    return ""


def _about_keys(column: Column, hidden: str) -> str:
    if (
        column.type not in (Type.TEXT, Type.DATE, Type.TIMESTAMP)
        or column.values is not None
        or column.lower is not None
    ):
        return ""
    public = "values make its keys public" if column.type is Type.TEXT else "lower and upper make its days public"
    if column.type is Type.TIMESTAMP:
        public = "lower and upper make its hours, days and months public: GROUP BY DATE_TRUNC('day', x)"
    if hidden:
        return f"no GROUP BY key, because which values occur is private and {hidden}; {public}"
    return f"in GROUP BY a value is shown only where enough units hold it; {public}"


KEY_DESCRIPTIONS = {
    Type.TEXT: "text",
    Type.INT: "a whole number that fits 64 bits",
    Type.DATE: "a date such as 2024-12-31",
}


def parse_key(value: object, kind: Type) -> Key | None:
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


def find_name_problem(name: str) -> str:
    """What is wrong with a name, or nothing."""
    if not name:
        return "a name cannot be empty"
    if len(name) > MAX_NAME:
        return f"a name has at most {MAX_NAME} characters"
    if name == "*":
        return "* stands for all columns, and is not a name"
    return "" if is_one_clean_line(name) else "a name has no control characters"


def find_analyst_problem(name: str) -> str:
    """What is wrong with the name of an analyst, or nothing."""
    if name.startswith("("):
        return "a name that begins with ( is one of Tacit's own, such as that of the owner's account"
    return "an analyst's name has no spaces" if any(map(str.isspace, name)) else find_name_problem(name)


def is_one_clean_line(text: str) -> bool:
    """Whether the text has no control characters, no line breaks and no halves of characters."""
    return not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in text)


def is_unicode(text: str) -> bool:
    """Whether the text has no halves of characters, which no file or database could hold."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def parse_number(value: object) -> Fraction | None:
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


def describe_value(value: object) -> str:
    """The value as its owner would know it again, briefly."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal | Fraction):
        return _shown_number(value)
    if isinstance(value, str):
        return quote_string(value if len(value) <= 40 else value[:37] + "...")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a table"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def _shown_number(value: float | Decimal | Fraction) -> str:
    number = parse_number(value)
    if number is None:
        finite = isinstance(value, int | Fraction) or Decimal(value).is_finite()
        return "a number of too many digits" if finite else str(value).lower()[:3]
    point = ".0" if isinstance(value, float | Decimal) and number.denominator == 1 else ""
    text = format_decimal(number) + point
    return text if len(text) <= 40 else text[:37] + "..."
