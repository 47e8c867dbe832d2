"""What is refused before anything is understood, and how a refusal points at the text."""

from __future__ import annotations

import re

from sqlglot import exp

from tacit.errors import Code, Place, Refused
from tacit.query.nodes import Scalar, children, place_of

MAX_CHARACTERS = 20_000
MAX_DEPTH = 40
MAX_ITEMS = 1_000
MAX_NODES = 5_000
_WIDTH = 100  # characters of a line that an error shows
_NAME = 40  # characters in which a function's name and its bracket are looked for

# Clauses of a SELECT that are not answered, with what to do instead.
CLAUSES = {
    "with_": ("WITH", "ask over one table of the policy"),
    "joins": ("JOIN", "ask over one table of the policy"),
    "laterals": ("LATERAL", "ask over one table of the policy"),
    "distinct": ("SELECT DISTINCT", "GROUP BY a column with declared values lists them"),
    "windows": ("WINDOW", "aggregate with GROUP BY instead"),
    "qualify": ("QUALIFY", "filter released values with HAVING"),
    "sample": ("SAMPLE", "leave it out: the noise already hides each row"),
    "pivots": ("PIVOT", "use CASE inside an aggregate: SUM(CASE WHEN ward = 'A' THEN cost END)"),
    "connect": ("CONNECT BY", "ask over one table of the policy"),
    "locks": ("FOR UPDATE", "leave it out: nothing is ever written"),
    "into": ("INTO", "leave it out: take the answer with .to_pandas()"),
    "kind": ("SELECT AS", "leave it out"),
    "hint": ("a hint", "leave it out"),
}

# What to do instead, and for what: names in SQL or the parser's.
_INSTEAD = {
    "an extreme is one person's value; count beyond one you choose: COUNT(*) FILTER (WHERE x > 90)": (
        "min max any_value first last arg_min arg_max mode"
    ),
    "quantiles are not answered; AVG is, and COUNT(*) FILTER (WHERE x < 50)": (
        "median quantile quantile_cont percentile_cont percentilecont withingroup"
    ),
    "variances are not answered; AVG(x) and AVG(x * x) are": (
        "stddev stddev_samp stddev_pop stddevpop variance var_samp var_pop variancepop"
    ),
    "compare whole texts with = or IN": (
        "like ilike regexplike regexp_matches similarto dpipe lower upper concat substring length trim replace"
    ),
    "compare dates: visited >= DATE '2025-12-31'": (
        "extract year month day datetrunc timestamptrunc interval currentdate current_date"
    ),
    "the answer depends on the data alone; leave it out": "rand random currentuser currenttimestamp now",
    "ask once for each list of keys": "rollup cube groupingsets",
    "FLOOR(x / 10) gives the tens": "mod intdiv",
    "write x * x": "pow",
    "write CASE WHEN x <> 0 THEN x END": "nullif",
    "write CASE WHEN ... THEN ... ELSE ... END": "if",
    "over rows use FLOOR(x + 0.5); over aggregates ROUND works": "round",
    "list the values: IN ('A', 'B')": "any",
    "leave it out: the order of rows decides nothing": "order",
}
INSTEAD = {name: fix for fix, names in _INSTEAD.items() for name in names.split()}
ARITHMETIC = "use + - * /, ABS, FLOOR, CEIL, LEAST, GREATEST, COALESCE and CASE"


def check_size(text: str) -> None:
    """Refuse a text that is too long or nested too deeply, before a parser sees it."""
    if len(text) > MAX_CHARACTERS:
        raise Refused(
            Code.TOO_LARGE,
            f"the question has {len(text):,} characters; {MAX_CHARACTERS:,} is the most",
            fix="ask several smaller questions",
        )
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise Refused(Code.SYNTAX, "the question holds a character that is no text", fix="take it out")
    depth = deepest = 0
    for character in text:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth -= 1
    words = text.upper().split()
    # Each of these words and signs nests one level in the parser, too.
    nesting = words.count("CASE") + words.count("NOT")
    signs = max((len(run) for run in _runs_of_signs(text)), default=0)
    if deepest > MAX_DEPTH or nesting > 4 * MAX_DEPTH or signs > MAX_DEPTH:
        raise Refused(
            Code.TOO_LARGE,
            f"the question is nested more than {MAX_DEPTH} deep",
            fix="take the inner parts apart into several questions",
        )


def check_tree(scalar: Scalar) -> None:
    """Refuse an expression that is too deep or has too many parts for the planner's recursion."""
    seen = 0
    level: list[Scalar] = [scalar]
    for _ in range(3 * MAX_DEPTH):
        level = [child for one in level for child in children(one)]
        seen += len(level)
        if not level:
            return
        if seen > MAX_NODES:
            break
    raise Refused(
        Code.TOO_LARGE, "an expression has too many parts", at=place_of(scalar), fix="ask several smaller questions"
    )


def _runs_of_signs(text: str) -> list[str]:
    """The runs of unary signs, such as + + - +."""
    squeezed = "".join(text.split())
    return "".join(c if c in "+-~" else " " for c in squeezed).split()


class Places:
    """Where each node of a statement stands: from its first known token to its last, with the bracket it opens."""

    def __init__(self, statement: exp.Expr, text: str) -> None:
        self._text = text
        self._spans: dict[int, tuple[int, int]] = {}
        for node in reversed(list(statement.walk())):  # breadth first, reversed: children before parents
            if "start" in node.meta:
                self._widen(node, node.meta["start"], node.meta["end"] + 1)
            if node.parent is not None and id(node) in self._spans:
                self._widen(node.parent, *self._spans[id(node)])

    def _widen(self, node: exp.Expr, start: int, end: int) -> None:
        known = self._spans.get(id(node), (start, end))
        self._spans[id(node)] = (min(start, known[0]), max(end, known[1]))

    def __call__(self, node: exp.Expr) -> Place | None:
        """The place of a node, or None where the parser kept no position."""
        span = self._spans.get(id(node))
        if span is None:
            return None
        start, end = span
        before = max(0, start - _NAME)
        opening = re.search(r"(\w+)\s*\(\s*$", self._text[before:start])
        if opening and opening[1].lower() == node.key:  # the parser keeps no position of some functions' names
            start = before + opening.start()
        missing = self._text.count("(", start, end) - self._text.count(")", start, end)
        for _ in range(missing):
            end = self._text.find(")", end) + 1 or end
        return place_at(self._text, start, end)


def place_at(text: str, start: int, end: int) -> Place:
    """The place of text[start:end]: its line, its column, and the part of the line that shows it."""
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    line = text[begin : len(text) if stop < 0 else stop]
    column = start - begin
    first = max(0, min(column - _WIDTH // 2, len(line) - _WIDTH)) if len(line) > _WIDTH else 0
    excerpt = line[first : first + _WIDTH].replace("\t", " ")
    length = max(1, min(end - start, len(excerpt) - (column - first)))
    return Place(text.count("\n", 0, start) + 1, column + 1, excerpt, length, offset=first)


def unsupported(what: str, fix: str, at: Place | None) -> Refused:
    """A refusal of a part of SQL that is not answered."""
    return Refused(Code.UNSUPPORTED, f"{what} is not answered", at=at, fix=fix)
