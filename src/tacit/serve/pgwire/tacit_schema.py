"""What a catalog statement names of the schema `tacit`: the view of the budget, and the questions to explain."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.query.lexer import Token


def find_explained_questions(found: Sequence[Token], values: Sequence[bytes | None] = ()) -> list[str]:
    """The questions inside tacit.explain('...') and tacit.explain($1), each once; `values` are of the parameters."""
    questions: list[str] = []
    numbers: set[int] = set()
    for index in range(len(found) - 5):
        if not _has_keys(found, index, "TACIT", ".", "EXPLAIN", "("):
            continue
        inner = found[index + 4]
        if inner.kind in {"text", "escaped"}:
            questions.append(inner.text)
        elif inner.kind == "parameter":
            numbers.add(int(inner.text[1:]))
    given = (value for number, value in enumerate(values, 1) if number in numbers and value is not None)
    return list(dict.fromkeys([*questions, *(value.decode(errors="replace") for value in given)]))


def has_budget_view(found: Sequence[Token]) -> bool:
    """Whether tacit.budget is named."""
    return any(_has_keys(found, index, "TACIT", ".", "BUDGET") for index in range(len(found)))


def _has_keys(found: Sequence[Token], index: int, *keys: str) -> bool:
    return all(
        index + step < len(found) and (found[index + step].key or found[index + step].text.upper()) == key
        for step, key in enumerate(keys)
    )
