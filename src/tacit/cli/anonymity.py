"""`tacit anonymity`: k-anonymity, l-diversity and t-closeness of a table that is to be released."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import JsonOption
from tacit.cli.output import check_plot_path, print_json
from tacit.errors import ParameterError
from tacit.terminal import several_lines

if TYPE_CHECKING:
    import pyarrow as pa


def anonymity(
    file: Annotated[Path, typer.Argument(help="The table as it is to be released: a .csv or .parquet file.")],
    key: Annotated[
        list[str], typer.Option("--key", "-k", help="A column that others may know; several times.", metavar="COLUMN")
    ],
    sensitive: Annotated[
        str | None, typer.Option("--sensitive", "-s", help="The column that is to be hidden.", metavar="COLUMN")
    ] = None,
    order: Annotated[
        list[str] | None,
        typer.Option(
            "--order", help="The sensitive values from the first to the last; several times.", metavar="VALUE"
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Save a picture of it: .svg, .png or .pdf.", metavar="FILE")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure k-anonymity, l-diversity and t-closeness of a table, exactly and without noise.

    These are properties of the table alone, and none of them bounds what it tells together with other releases.
    """
    from tacit.attacks.anonymity import measure_anonymity

    if plot is not None:
        check_plot_path(plot)
    table = _read_table(file, sensitive, is_listed=bool(order))
    found = measure_anonymity(table, key, sensitive, order=order or None)
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(several_lines(str(found)))
    if plot is not None:
        found.plot(plot)


def _read_table(file: Path, sensitive: str | None, *, is_listed: bool) -> pa.Table:
    """Read a file; the sensitive values as text where their order is listed, since all is text on the command line."""
    import pyarrow as pa
    from pyarrow import parquet

    from tacit.engines.released_csv import read_released_csv

    if file.suffix.lower() not in {".csv", ".parquet"}:
        raise ParameterError("file", f"{file.name} is neither .csv nor .parquet", fix="save the table as one of them")
    if not file.is_file():
        raise ParameterError("file", f"there is no file {file}", fix="name a file that is there")
    if file.suffix.lower() == ".csv":
        return read_released_csv(file, None if is_listed else sensitive)
    try:
        table = parquet.read_table(file)
        if is_listed and sensitive in table.column_names:
            place = table.column_names.index(sensitive)
            table = table.set_column(place, sensitive, table[sensitive].cast(pa.string()))
    except (pa.ArrowException, OSError) as problem:
        what = f"{file.name} cannot be read: {problem!s:.160}"
        raise ParameterError("file", what, fix="save it as CSV with one line of names, or as Parquet") from problem
    return table
