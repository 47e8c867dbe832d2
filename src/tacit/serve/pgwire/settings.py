"""What a session may set and show: the epsilon of its questions, and what PostgreSQL clients expect to be there.

>>> settings = SessionSettings().with_value("tacit.epsilon", "0.5")
>>> settings.epsilon_or_within
(Fraction(1, 2), None)
>>> settings.with_value("tacit.within", "n=50").epsilon_or_within
(None, {'n': Fraction(50, 1)})
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property

from tacit.arithmetic import to_rational, to_rational_between
from tacit.errors import ParameterError
from tacit.plan.plan import MAX_EPSILON, MIN_EPSILON
from tacit.plan.question import DIALECTS
from tacit.query.parameters import quote_text
from tacit.serve.pgwire.sqlstate import BAD_VALUE, UNKNOWN_SETTING, WireError

_VERSION = (16, 0)  # of PostgreSQL, where none is there to be shown
TACIT_SETTINGS = {"tacit.epsilon": "", "tacit.within": "", "tacit.confidence": "0.95", "tacit.intervals": "off"}
PRIVACY_SETTINGS = ("tacit.epsilon", "tacit.within")  # of which one is set at most
TACIT_SETTINGS |= {"tacit.request": "", "tacit.dialect": "", "tacit.rows": "refused"}
_FIXED = {
    "server_version": "{}.{}".format(*_VERSION),
    "server_version_num": str(10_000 * _VERSION[0] + _VERSION[1]),
    "server_encoding": "UTF8",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
    "in_hot_standby": "off",
    "default_transaction_read_only": "on",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "default_table_access_method": "heap",
    "lc_collate": "C",
    "lc_ctype": "C",
}
_CHANGEABLE = {
    "client_encoding": "UTF8",
    "application_name": "",
    "datestyle": "ISO, MDY",
    "timezone": "UTC",
    "intervalstyle": "postgres",
    "search_path": "public",
    "extra_float_digits": "1",
    "client_min_messages": "notice",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "transaction_isolation": "serializable",
    "default_transaction_isolation": "serializable",
    "transaction_read_only": "on",
    "transaction_deferrable": "off",
    "bytea_output": "hex",
    "escape_string_warning": "on",
    "synchronize_seqscans": "on",
    "row_security": "on",
    "work_mem": "4MB",
    "jit": "off",
    "geqo": "on",
    "enable_seqscan": "on",
    "session_authorization": "",
    "role": "none",
    "xmloption": "content",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
}
REPORTED = {  # what a client is told at the start, under the names it knows, and whenever it changes
    "server_version": "server_version",
    "server_encoding": "server_encoding",
    "client_encoding": "client_encoding",
    "application_name": "application_name",
    "is_superuser": "is_superuser",
    "session_authorization": "session_authorization",
    "datestyle": "DateStyle",
    "intervalstyle": "IntervalStyle",
    "timezone": "TimeZone",
    "integer_datetimes": "integer_datetimes",
    "standard_conforming_strings": "standard_conforming_strings",
    "in_hot_standby": "in_hot_standby",
    "default_transaction_read_only": "default_transaction_read_only",
}
# What catalog statements see of a session, and may change: settings that PostgreSQL lets a client change.
_SHARED = (
    "application_name datestyle timezone intervalstyle search_path extra_float_digits client_min_messages "
    "statement_timeout lock_timeout idle_in_transaction_session_timeout default_transaction_isolation bytea_output "
    "escape_string_warning synchronize_seqscans row_security work_mem geqo enable_seqscan xmloption lc_monetary "
    "lc_numeric lc_time"
)
SHARED = (*TACIT_SETTINGS, *_SHARED.split())
WATCHED = (*SHARED, "client_encoding")  # what `set_config` may change; an encoding that is not spoken is then refused
_DEFAULTS = TACIT_SETTINGS | _FIXED | _CHANGEABLE
_MOST_LENGTH = 500
_TIME = re.compile(r"(\d{1,10})\s*(ms|s|min|h|d)?", re.ASCII)
_UNITS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_ON, _OFF = {"on", "true", "yes", "1", "t"}, {"off", "false", "no", "0", "f"}


@dataclass(frozen=True)
class SessionSettings:
    """The settings of a session. Setting one gives another value; nothing is changed."""

    values: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str:
        """The value of a setting, or an error that names those of Tacit."""
        known = name.lower()
        if known not in _DEFAULTS:
            raise _unknown(name)
        return self.values.get(known, _DEFAULTS[known])

    def with_value(self, name: str, value: str | None) -> SessionSettings:
        """With another value; None for the one it had at first. An epsilon and an accuracy replace each other."""
        known = name.lower()
        if known not in _DEFAULTS:
            raise _unknown(name)
        if known in _FIXED and value is not None and value != _FIXED[known]:
            raise WireError("55P02", f"{known} cannot be changed", "leave it as it is")
        others = {key: old for key, old in self.values.items() if key != known}
        if value is None or (value == "" and known in TACIT_SETTINGS):
            return SessionSettings(others)
        if len(value) > _MOST_LENGTH:
            raise _invalid_value_error(known, "is too long", "choose a shorter one")
        if known in _VALIDATORS:
            value = _VALIDATORS[known](value)
        other = {"tacit.epsilon": "tacit.within", "tacit.within": "tacit.epsilon"}.get(known)
        others.pop(other or "", None)
        return SessionSettings(others | {known: value})

    def with_privacy_of(self, other: SessionSettings) -> SessionSettings:
        """With the epsilon or the accuracy that other settings have."""
        kept = {name: value for name, value in self.values.items() if name not in PRIVACY_SETTINGS}
        return SessionSettings(kept | {name: other.values[name] for name in PRIVACY_SETTINGS if name in other.values})

    @property
    def privacy(self) -> str:
        """The epsilon or the accuracy of each question as it was set, "" where neither is.

        >>> SessionSettings().with_value("tacit.within", "n=50").privacy
        "within 'n=50'"
        """
        epsilon, accuracy = map(self.get, PRIVACY_SETTINGS)
        return f"epsilon {epsilon}" if epsilon else f"within {quote_text(accuracy)}" if accuracy else ""

    @cached_property
    def epsilon_or_within(self) -> tuple[Fraction | None, dict[str, Fraction] | None]:
        """The epsilon or the accuracy that is set; an error with the fix where neither is."""
        epsilon, accuracy = self.get("tacit.epsilon"), self.get("tacit.within")
        if not epsilon and not accuracy:
            hint = "SET tacit.epsilon = 0.5, or connect with options=-c tacit.epsilon=0.5"
            raise WireError(BAD_VALUE, "refused [parameter]: the question has neither an epsilon nor an accuracy", hint)
        return (Fraction(epsilon), None) if epsilon else (None, _parse_within(accuracy))

    @cached_property
    def confidence(self) -> Fraction:
        """How often intervals hold."""
        return Fraction(self.get("tacit.confidence"))

    @cached_property
    def intervals(self) -> bool:
        """Whether each estimate x is followed by x_low and x_high."""
        return self.get("tacit.intervals") == "on"

    @cached_property
    def timeout(self) -> float | None:
        """The seconds that a client waits for a statement; None where it waits as long as it takes."""
        found = _TIME.fullmatch(self.get("statement_timeout"))
        return int(found[1]) * _UNITS[found[2] or "ms"] / 1000 or None if found else None

    @property
    def hides_rows(self) -> bool:
        """Whether a question for single rows has its columns and no rows, in place of a refusal."""
        return self.get("tacit.rows") == "hidden"

    @property
    def dialect(self) -> str | None:
        """Whose SQL a question is, where dialects differ; None for the policy's."""
        return self.get("tacit.dialect") or None

    @property
    def request(self) -> str:
        """The name of the next question."""
        return self.get("tacit.request")

    @cached_property
    def reported_settings(self) -> dict[str, str]:
        """The settings that clients are sent."""
        return {shown: self.get(name) for name, shown in REPORTED.items()}

    @property
    def shared_settings(self) -> dict[str, str]:
        """The settings that were set, as catalog statements see them."""
        return {name: value for name, value in self.values.items() if name in SHARED}

    def list_settings(self) -> list[tuple[str, str]]:
        """All of them."""
        return [(name, self.get(name)) for name in sorted(_DEFAULTS)]


def start_settings(analyst: str, version: tuple[int, int] | None) -> SessionSettings:
    """The settings of a new session, with the version of the PostgreSQL that is behind it."""
    major, minor = version or _VERSION
    shown = {"server_version": f"{major}.{minor}", "server_version_num": str(10_000 * major + minor)}
    return SessionSettings(shown).with_value("session_authorization", analyst)


def is_setting(name: str) -> bool:
    """Whether a session keeps a setting of that name itself."""
    return name.lower() in _DEFAULTS


def _unknown(name: str) -> WireError:
    return WireError(UNKNOWN_SETTING, f"there is no setting {name[:60]}", f"there are {', '.join(TACIT_SETTINGS)}")


def _invalid_value_error(name: str, what: str, hint: str) -> WireError:
    return WireError(BAD_VALUE, f"refused [parameter]: {name} {what}", hint)


def _number(name: str, text: str, lower: Fraction, upper: Fraction) -> str:
    """A decimal number in a range, as it was written."""
    try:
        to_rational_between(name, Decimal(text), lower, upper)
    except (InvalidOperation, ParameterError):
        hint = f"choose a number from {float(lower):g} to {float(upper):.10g}"
        raise _invalid_value_error(name, "is not a number in its range", hint) from None
    return text.strip()


def _epsilon(text: str) -> str:
    return _number("tacit.epsilon", text, MIN_EPSILON, MAX_EPSILON)


def _confidence(text: str) -> str:
    return _number("tacit.confidence", text, Fraction(1, 100), 1 - Fraction(1, 10**9))


def _dialect(text: str) -> str:
    if text.strip().lower() not in DIALECTS:
        hint = f"SET tacit.dialect = '{DIALECTS[0]}'; there are {', '.join(DIALECTS)}"
        raise _invalid_value_error("tacit.dialect", "is none that is known", hint)
    return text.strip().lower()


def _rows(text: str) -> str:
    if text.strip().lower() not in {"refused", "hidden"}:
        raise _invalid_value_error("tacit.rows", "is neither refused nor hidden", "SET tacit.rows = hidden")
    return text.strip().lower()


def _accuracy(text: str) -> str:
    _parse_within(text)
    return text


def _parse_within(text: str) -> dict[str, Fraction]:
    """n=50, total=1000 as columns and widths."""
    found: dict[str, Fraction] = {}
    for part in text.split(","):
        name, _, width = (each.strip() for each in part.partition("="))
        try:
            number = to_rational("within", Decimal(width))
        except (InvalidOperation, ParameterError):
            raise _invalid_value_error(
                "tacit.within", "is not a list of columns and widths", "SET tacit.within = 'n=50'"
            ) from None
        if number <= 0 or not name:
            raise _invalid_value_error(
                "tacit.within", "has a width that is not above zero", "SET tacit.within = 'n=50'"
            )
        found[name.strip('"')] = number
    return found


def _parse_switch(text: str) -> str:
    if text.lower() not in _ON | _OFF:
        raise _invalid_value_error("tacit.intervals", "is neither on nor off", "SET tacit.intervals = on")
    return "on" if text.lower() in _ON else "off"


def _encoding(text: str) -> str:
    if text.strip("'").lower().replace("-", "").replace("_", "") not in {"utf8", "unicode", "auto"}:
        raise _invalid_value_error("client_encoding", "is not spoken here", "SET client_encoding = 'UTF8'")
    return "UTF8"


def _date_style(text: str) -> str:
    if text.split(",", maxsplit=1)[0].strip().lower() not in {"iso", "mdy", "dmy", "ymd"}:
        raise _invalid_value_error("datestyle", "is not spoken here", "SET datestyle = ISO")
    return "ISO, MDY"


def _duration(text: str) -> str:
    """A time in milliseconds, or with a unit, in the largest unit that is whole: 5000 is 5s."""
    found = _TIME.fullmatch(text.strip())
    most = 2**31 - 1
    milliseconds = int(found[1]) * _UNITS[found[2] or "ms"] if found else most + 1
    if milliseconds > most:
        raise _invalid_value_error("statement_timeout", "is not a duration", "SET statement_timeout = '5s'")
    unit = next((unit for unit in ("d", "h", "min", "s") if milliseconds and milliseconds % _UNITS[unit] == 0), "ms")
    return f"{milliseconds // _UNITS[unit]}{unit}" if milliseconds else "0"


_VALIDATORS: dict[str, Callable[[str], str]] = {
    "tacit.epsilon": _epsilon,
    "tacit.within": _accuracy,
    "tacit.confidence": _confidence,
    "tacit.intervals": _parse_switch,
    "tacit.dialect": _dialect,
    "tacit.rows": _rows,
    "client_encoding": _encoding,
    "datestyle": _date_style,
    "statement_timeout": _duration,
}
