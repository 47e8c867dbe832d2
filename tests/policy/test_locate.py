from __future__ import annotations

import tomllib
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.policy.locate import KeyPath, TomlFile, find_positions, format_key, format_path, quote_string

TEXT = """\
# [not.a.table]
top = 1
[a.b]   # a header
x = "[y] # no comment"
'quo ted' = '''
[also.not] = 1
x = 2
'''
list = [ # of three
  1,
  { k = "v", n.m = [2, 3] },  # an inline table ] inside
  \"\"\"four "quotes" at the end\"\"\"\",
]
p . "q\\u0061" = 1979-05-27 07:32:00  # a date with a space

[a]
late = true
[[several]]
z = 1
[[several]]
z = 2
[several.inner]
z = 3
"""


@pytest.mark.parametrize(
    ("path", "line", "column", "length"),
    [
        (("top",), 2, 7, 1),
        (("a", "b"), 3, 4, 1),
        (("a", "b", "x"), 4, 5, 18),
        (("a", "b", "quo ted"), 5, 13, 3),
        (("a", "b", "list"), 9, 8, 12),
        (("a", "b", "list", 0), 10, 3, 1),
        (("a", "b", "list", 1, "n", "m", 1), 11, 24, 1),
        (("a", "b", "list", 2), 12, 3, 31),
        (("a", "b", "p", "qa"), 14, 17, 19),
        (("a", "late"), 17, 8, 4),
        (("several", 1, "z"), 21, 5, 1),
        (("several", 1, "inner", "z"), 23, 5, 1),
        # What is not there stands at the nearest thing around it.
        (("a", "b", "none"), 3, 4, 1),
        (("a", "none"), 16, 2, 1),
        (("a", "b", "list", 1, "none"), 11, 3, 25),
        (("none",), 1, 1, 1),
        ((), 1, 1, 1),
    ],
)
def test_places(path: KeyPath, line: int, column: int, length: int):
    place = TomlFile(TEXT, "x.toml").place(path)
    assert (place.line, place.column, place.length, place.source) == (line, column, length, "x.toml")
    assert place.excerpt == TEXT.split("\n")[line - 1][:120]


def test_the_key_itself():
    place = TomlFile(TEXT, "x.toml").place(("a", "b", "quo ted"), key=True)
    assert (place.line, place.column, place.length) == (5, 1, 9)


def test_a_tab_is_one_column():
    place = TomlFile("\tx\t= 1", "x.toml").place(("x",))
    assert (place.column, place.excerpt) == (6, " x = 1")


def test_a_long_line_is_cut_after_the_stretch():
    text = "x = [" + "1, " * 1000 + "]"
    assert len(TomlFile(text, "").place(("x", 3)).excerpt) == 120
    assert TomlFile(text, "").place(("x", 500)).excerpt.endswith("1")


def test_dotted():
    assert (
        format_path(("tables", "my visits", "columns", "a.b", "values", 2))
        == 'tables."my visits".columns."a.b".values[2]'
    )
    assert format_path(("\x1b[31m", "x" * 500)) == '"\\u001b[31m".' + '"' + "x" * 120 + '..."'


@settings(deadline=None)
@given(st.text())
def test_quoted_text_is_toml(text: str):
    if not any("\ud800" <= c <= "\udfff" for c in text):
        assert tomllib.loads(f"x = {quote_string(text)}") == {"x": text}
        assert tomllib.loads(f"{format_key(text)} = 1") == {text: 1}


@settings(deadline=None)
@given(st.text(alphabet="ab.=[]{}\"'#,\\\n 1-", max_size=60))
def test_any_text_is_survived(text: str):
    for path in find_positions(text):
        assert TomlFile(text, "").place(path).line >= 1


# Random TOML: a tree of tables, each written in one of the ways that TOML has for it. Every leaf is different, so that
# a place is right if and only if the text cut out there is that leaf.

NAMES = st.sampled_from(["a", "b", "c-d", "1", "x y", "", "#", "a.b", "]", '"', "'", "=", "é", "[t]"])
WAYS = st.sampled_from(["header", "dotted", "inline"])
LEAVES = st.sampled_from(["int", "float", "date", "basic", "literal", "long", "long literal", "list", "tables"])
TREE = st.recursive(
    LEAVES, lambda inner: st.tuples(WAYS, st.dictionaries(NAMES, inner, min_size=1, max_size=4)), max_leaves=15
)
DOCUMENT = st.dictionaries(NAMES, TREE, max_size=5)


class Writer:
    """Writes a tree as TOML."""

    def __init__(self, spaces: Iterator[str]) -> None:
        self.spaces = spaces
        self.numbers = count(100)

    def key(self, name: str) -> str:
        bare = format_key(name)
        return f"'{name}'" if bare != name and "'" not in name and next(self.spaces) else bare

    def leaf(self, kind: str) -> str:
        n = next(self.numbers)
        if kind == "list":
            gap = next(self.spaces)
            lines = f"# one ] , [\n{gap}" if gap else ""
            return f"[{lines}{n},{gap}'#{n}]'{lines}, [{n}.5{gap}],]"
        if kind == "tables":
            return f"[{{ a = {n} }}, {{ a = {{ 'b' = \"}}{n}\" }} }}]"
        return {
            "int": f"{n}",
            "float": f"-{n}.5e1",
            "date": f"{n + 1000}-05-27 07:32:00",
            "basic": f'"\\"[x] # {n}\\\\"',
            "literal": f"'[x]\" # \\{n}'",
            "long": f'"""\n[x]\ny = {n} # "" \\"""\\\\"""""',
            "long literal": f"'''\n[x]\ny = {n} # '' \\'''''",
        }[kind]

    def value(self, tree: Any) -> str:
        if isinstance(tree, str):
            return self.leaf(tree)
        gap = next(self.spaces)
        entries = (f"{self.key(name)}{gap} = {self.value(inner)}" for name, inner in tree[1].items())
        return "{" + gap + f"{gap}, ".join(entries) + gap + "}"

    def lines(self, prefix: str, tree: dict[str, Any]) -> Iterator[str]:
        """The entries of a table that stand on lines of their own below its header."""
        for name, inner in tree.items():
            key, gap = prefix + self.key(name), next(self.spaces)
            if isinstance(inner, str) or inner[0] == "inline":
                yield f"{gap}{key}{gap}={gap}{self.value(inner)}{gap}# a = 1"
            elif inner[0] == "dotted" or prefix:
                yield from self.lines(f"{key}{gap}.{gap}", inner[1])

    def sections(self, path: list[str], tree: dict[str, Any]) -> Iterator[str]:
        """The tables with headers of their own, the inner one first now and then."""
        for name, inner in tree.items():
            if not isinstance(inner, str) and inner[0] == "header":
                here = [*path, self.key(name)]
                gap = next(self.spaces)
                own = [f"[{gap}{f'{gap}.'.join(here)}{gap}]{gap}# [a.b]", *self.lines("", inner[1])]
                below = list(self.sections(here, inner[1]))
                yield from (below + own) if gap else (own + below)


def leaves(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every path below the value, tables and lists among them."""
    if path:
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from leaves(inner, (*path, key))


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(DOCUMENT, st.lists(st.sampled_from(["", " ", "\t ", ""]), min_size=1, max_size=9))
@example({"a": ("header", {"b": ("header", {"c-d": "int"}), "": "tables"})}, [" "])
@example({"a": ("dotted", {"b": ("inline", {"x y": "long"}), "c-d": "long literal"})}, [""])
def test_every_value_of_random_toml_is_found(tree: dict[str, Any], spaces: list[str]):
    def around() -> Iterator[str]:
        while True:
            yield from spaces

    writer = Writer(around())
    text = "\n".join([*writer.lines("", tree), *writer.sections([], tree)])
    parsed = tomllib.loads(text)
    found = find_positions(text)
    for path, value in leaves(parsed):
        spot = found[path]
        if isinstance(path[-1], str):
            key = text[spot.key.start : spot.key.end]
            assert tomllib.loads(f"{key} = 1") == {path[-1]: 1}
        if spot.value is None:
            assert isinstance(value, dict)
        else:
            assert tomllib.loads(f"x = {text[spot.value.start : spot.value.end]}") == {"x": value}
    assert set(found) == {path for path, _ in leaves(parsed)}
