"""A table of a policy file, which knows its path and so can say where a mistake is."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

from tacit.errors import ErrorCode, PolicyError
from tacit.policy import locate
from tacit.policy.check import MAX_NAME, describe_value, find_name_problem, is_one_clean_line, parse_number

Read = TypeVar("Read")


@dataclass(frozen=True)
class Section:
    """A table of the policy, which knows its path and so can say where a mistake is.

    `mistakes` collects what is wrong where all of it is asked for, and is None where the first is raised.
    """

    entries: Mapping[Any, Any]
    path: locate.KeyPath
    file: locate.TomlFile | None
    mistakes: list[PolicyError] | None = None

    def fail(self, what: str, *keys: str | int, fix: str = "", key: bool = False) -> NoReturn:
        """Refuse what stands at the keys below this table; `key` points at the key and not at its value."""
        path = (*self.path, *keys)
        at = self.file.place(path, key=key) if self.file else None
        raise PolicyError(ErrorCode.POLICY, f"{locate.format_path(path) or 'the policy'}: {what}", at=at, fix=fix)

    def only(self, *known: str) -> None:
        """Refuse keys that mean nothing here."""
        for name in self.names():
            if name not in known:
                fix = _nearest(name, known) or f"use one of {', '.join(known)}"
                self.fail("no such key", name, fix=fix, key=True)

    def names(self) -> Iterator[str]:
        """The keys, which are text."""
        for name in self.entries:
            if not isinstance(name, str):
                self.fail(f"a key must be text, not {describe_value(name)}", fix="put it in quotes")
            yield str.__str__(name)

    def section(self, name: str, fix: str = "") -> Section:
        """The table of that name; an empty one if it is not there."""
        value = self.entries.get(name, {})
        if not isinstance(value, Mapping):
            self.fail(f"must be a table, not {describe_value(value)}", name, fix=fix or f"write it as [{name}]")
        return Section(value, (*self.path, name), self.file, self.mistakes)

    def read_each(self, sections: Iterable[Section], read: Callable[[Section], Read]) -> list[Read]:
        """What is read of each section; one with a mistake is left out where mistakes are collected."""
        found = []
        for section in sections:
            try:
                found.append(read(section))
            except PolicyError as mistake:
                if self.mistakes is None:
                    raise
                self.mistakes.append(mistake)
        return found

    def sections(self, entry: str, example: str, flaw: Callable[[str], str] = lambda name: "") -> Iterator[Section]:
        """The tables below this one, of which there is at least one. Their names are the owner's, but for any flaw."""
        if not self.entries:
            self.fail("there is none", fix=f"declare at least one: {entry.format(example)}")
        for name in self.names():
            if wrong := flaw(name) or find_name_problem(name):
                self.fail(wrong, name, fix="choose another name", key=True)
            yield self.section(name, fix=f"write it as {entry.format(locate.format_key(name))}")

    def need(self, name: str, fix: str) -> Any:
        """The value, which must be there."""
        if name not in self.entries:
            self.fail("is missing", name, fix=fix)
        return self.entries[name]

    def number(self, name: str, rule: str, holds: Callable[[Fraction], bool]) -> Fraction:
        """A number that keeps the rule."""
        fix = f"give a number {rule}"
        value = self.need(name, fix)
        number = parse_number(value)
        if number is None or not holds(number):
            self.fail(f"must be a number {rule}, not {describe_value(value)}", name, fix=fix)
        return number

    def whole(self, name: str, least: int, most: int, fix: str) -> int:
        """An integer from `least` to `most`."""
        value = self.need(name, fix)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.fail(f"must be a whole number from {least} to {most}, not {describe_value(value)}", name, fix=fix)
        return int(value)

    def text(self, name: str, fix: str) -> str:
        """A text that is not empty and has nothing unprintable in it."""
        value = self.need(name, fix)
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if not isinstance(value, str) or not value or not is_one_clean_line(value):
            self.fail(f"must be text, not empty and on one line, not {describe_value(value)}", name, fix=fix)
        return str.__str__(value)

    def choice(self, name: str, *options: str) -> str:
        """One of the options."""
        one_of = "one of " * (len(options) > 1) + ", ".join(options)
        value = self.need(name, f"give {one_of}")
        if not isinstance(value, str) or value not in options:
            fix = _nearest(value, options) if isinstance(value, str) else ""
            self.fail(f"must be {one_of}, not {describe_value(value)}", name, fix=fix or f"give {one_of}")
        return str.__str__(value)


def _nearest(name: str, known: Sequence[str]) -> str:
    """The question whether a known word was meant, if one is near."""
    longer = [word for word in known if len(name) > 2 and word.startswith(name)]
    near = longer or difflib.get_close_matches(name[:MAX_NAME].lower(), known, 1)
    return f"did you mean {near[0]}?" if near else ""
