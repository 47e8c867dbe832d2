"""Write the pages of the reference that follow from the code: the policy file, and the options of the commands.

python tools/write_reference.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from tacit.cli.main import app
from tacit.policy.schema import build_json_schema

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
Json = dict[str, Any]


def render_policy_page() -> str:
    """Return the page of the policy file: a table for each of its tables, from the JSON Schema."""
    schema = build_json_schema()
    parts = schema["properties"]
    private, public = parts["tables"]["additionalProperties"]["anyOf"]
    path = next(shape for shape in private["properties"]["unit"]["anyOf"] if shape.get("type") == "object")
    lines = [
        "# The policy file",
        "",
        "Every table and field of a policy, from the schema that `tacit check --schema` prints.",
        "[Writing a policy](../guide/policy.md) says how to choose them. `NAME` stands for a name of your own.",
        "",
        *_section("[data]", parts["data"]),
        *_section("[ledger]", parts["ledger"]),
        *_section("[privacy]", parts["privacy"]),
        *_section("[tables.NAME], a private table", private),
        *_section("unit = { ... }, the way to another table's unit", path),
        *_section("[tables.NAME], a public table", public),
        *_columns(private, public),
        *_section("[analysts.NAME]", parts["analysts"]["additionalProperties"]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _columns(private: Json, public: Json) -> Iterator[str]:
    """Yield a section for each type of column; what only public tables may say is said once."""
    yield "## [tables.NAME.columns]"
    yield ""
    yield 'A column is an inline table, `age = { type = "int", lower = 0, upper = 110 }`.'
    yield "What is not listed cannot be named."
    yield ""
    for shape in private["properties"]["columns"]["additionalProperties"]["anyOf"]:
        kind = shape["properties"]["type"]["const"]
        shown = {name: field for name, field in shape["properties"].items() if name != "unique"}
        yield from _table(f'### type = "{kind}"', shape | {"properties": shown})
    first = public["properties"]["columns"]["additionalProperties"]["anyOf"][0]
    only = {"properties": {"unique": first["properties"]["unique"]}}
    yield from _table("### In public tables, also", only)


def _section(title: str, shape: Json) -> Iterator[str]:
    yield from _table(f"## {title}", shape)


def _table(heading: str, shape: Json) -> Iterator[str]:
    """Yield a heading and a row for each field."""
    required = shape.get("required", [])
    yield from (heading, "")
    if "description" in shape:
        yield from (shape["description"], "")
    yield "| field | type | default | meaning |"
    yield "|---|---|---|---|"
    for name, field in shape["properties"].items():
        if name == "columns":
            continue
        default = "required" if name in required else f"`{_toml(field['default'])}`" if "default" in field else ""
        yield f"| `{name}` | {describe_type(field)} | {default} | {_cell(field.get('description', ''))} |"
    yield ""


def describe_type(field: Json) -> str:
    """Return the values that a field takes, in words."""
    if "anyOf" in field:
        return " or ".join(describe_type(each) for each in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{_toml(value)}`" for value in field["enum"])
    if "const" in field:
        return f"`{_toml(field['const'])}`"
    match field["type"]:
        case "integer":
            return f"whole number{_describe_range(field)}"
        case "number":
            return f"number{_describe_range(field)}"
        case "boolean":
            return "`true`, `false`"
        case "array":
            return f"list of {describe_type(field['items'])}"
        case "object":
            return f"table: {', '.join(f'`{name}`' for name in field['properties'])}"
    pattern = field.get("pattern", "")
    if pattern.startswith("^[0-9]{4}"):
        return "date" if "T" not in pattern else "date or time" if "([ Tt]" in pattern else "time"
    return "text"


def _describe_range(field: Json) -> str:
    """Return the range of a number where it says more than that numbers are finite."""
    low, above = field.get("minimum"), field.get("exclusiveMinimum")
    high, below = field.get("maximum"), field.get("exclusiveMaximum")
    parts = []
    if above is not None:
        parts.append(f"above {above}")
    elif low is not None and low >= 0:
        parts.append(f"from {low}")
    if below is not None:
        parts.append(f"below {below}")
    elif high is not None and high < 10**15:
        parts.append(f"to {high:,}" if high < 10**9 else "")
    return " " + " ".join(part for part in parts if part) if any(parts) else ""


def _toml(value: object) -> str:
    """Return a value as TOML writes it."""
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else f"{value}"


def _cell(text: str) -> str:
    """Return a text that stands in a cell of a table."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


def render_options_page() -> str:
    """Return the page of the commands' arguments and options, from the parser."""
    lines = [
        "# Options of the commands",
        "",
        "Every argument and option, from the parser: what `tacit COMMAND --help` prints.",
        "[The command line](cli.md) says what each command is for and what it costs.",
        "",
    ]
    command: Any = typer.main.get_command(app)
    for words, each in _commands(["tacit"], command):
        lines += [f"## {' '.join(words)}", "", _first_paragraph(each.help or ""), ""]
        rows = [row for row in map(_describe_parameter, each.params) if row]
        if rows:
            lines += ["| argument or option | default | meaning |", "|---|---|---|", *rows, ""]
    return "\n".join(lines).rstrip() + "\n"


def _commands(words: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:
    """Yield the commands that do something, with the words that name them."""
    if hasattr(command, "commands"):
        for name, each in sorted(command.commands.items()):
            yield from _commands([*words, name], each)
    else:
        yield words, command


def _first_paragraph(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("\b", "").split("\n\n")[0]).strip()


def _describe_parameter(parameter: Any) -> str:
    """Return the row of a parameter, or nothing for one that is hidden."""
    if getattr(parameter, "hidden", False) or parameter.name == "help":
        return ""
    value = parameter.metavar or parameter.name.upper()
    if parameter.param_type_name == "argument":
        names = [value]
    else:
        names = [*parameter.opts, *parameter.secondary_opts]
        names[-1] += "" if parameter.is_flag else f" {value}"
    default = parameter.default
    has_none = default is None or default is False or default in ("", (), []) or callable(default)
    shown = "required" if parameter.required else "" if has_none else f"`{default}`"
    written = ", ".join(f"`{_cell(name)}`" for name in names)
    return f"| {written} | {shown} | {_cell(parameter.help or '')} |"


PAGES = {"policy-file.md": render_policy_page, "options.md": render_options_page}


def main() -> None:
    """Write the pages."""
    for name, render in PAGES.items():
        (REFERENCE / name).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
