"""The results as text: one Markdown page that also reads well in a terminal."""

from __future__ import annotations

from typing import Any

from questions import EPSILON, GROUPS_PER_PERSON, ROWS, ROWS_PER_PERSON

TARGET = 20
_CUT = "count by education, 16 keys"  # with unit = person the peer leaves out more rows than asked


def markdown(results: dict[str, Any]) -> str:
    """The whole page."""
    return "\n".join(
        [*_head(results["machine"]), *_asks(results), *_setups(results), *_noise(results), *_cold(results)]
    )


def _head(machine: dict[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return [
        "# Speed",
        "",
        f"All numbers are from one run of `make bench` on one machine: {machine['cores']} cores, {machine['system']}, "
        f"Python {machine['python']}, {versions}. Writing 4 KiB and having it on disk takes "
        f"{seconds(machine['fsync'])} there. Ratios travel between machines better than times do.",
        "",
    ]


def _asks(results: dict[str, Any]) -> list[str]:
    rows = results["asks"]
    lines = [
        "## A whole question",
        "",
        f"{ROWS:,} rows, epsilon {EPSILON}, add or remove one unit. A person has at most {ROWS_PER_PERSON} rows in "
        f"each of {GROUPS_PER_PERSON} groups. Median of {rows[0]['tacit']['calls']} calls, quartiles in brackets; the "
        "sides take turns. Every call is a new question. Tacit's time has the parsing, the charge and the stored "
        "answer on disk, the noise and the error bars in it. OpenDP's has building, resolving and releasing a Context "
        "query; its rows are in memory and it keeps no ledger.",
        "",
    ]
    cells = [["question", "unit", "Tacit", "OpenDP Context", "OpenDP / Tacit", "scale by hand", "by hand / Tacit"]]
    for row in rows:
        ours = row["tacit"]
        cells.append([row["question"], row["unit"], _spread(ours)])
        for side in ("opendp", "by_hand"):
            cells[-1] += [_spread(row[side]), _ratio(row[side], ours)] if side in row else ["-", "-"]
    lines += [*table(cells), ""]
    if "opendp" in rows[0]:
        worst = min(row["opendp"]["median"] / row["tacit"]["median"] for row in rows)
        kept = "kept" if worst >= TARGET else "missed"
        lines += [
            f"Goal: at most 1/{TARGET} of OpenDP's Context query. The smallest ratio is {worst:.0f}: {kept}.",
            "",
            "*Scale by hand* is not the documented Context query: a person has worked out the noise beforehand and "
            "calls the constructor below it, so OpenDP need not search for the scale, where nearly all of its time "
            "goes. It is here to show what is left without the search.",
            "",
        ]
    lines += ["Mean absolute error at the same epsilon, against the true values:", ""]
    return [*lines, *table(_errors(rows)), "", *_notes(rows)]


def _errors(rows: list[dict[str, Any]]) -> list[list[str]]:
    cells = [["question", "unit", "column", "Tacit", "OpenDP Context"]]
    for row in rows:
        for column, error in row["tacit"]["error"].items():
            theirs = "-"
            if "opendp" in row:
                cut = row["question"] == _CUT and row["unit"] != "row"
                theirs = f"{row['opendp']['error'][column]:.3g}" + " (1)" * cut
            cells.append([row["question"], row["unit"], column, f"{error:.3g}", theirs])
    return cells


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    if "opendp" not in rows[0]:
        return ["OpenDP could not be installed, so its side is missing.", ""]
    return [
        "(1) Not comparable: `truncate_num_groups(2)` is charged for two groups of a person but keeps one, since it "
        "compares a rank that starts at 1 with `< 2`. Given 3 it keeps two, with noise for three.",
        "",
    ]


def _setups(results: dict[str, Any]) -> list[str]:
    rows = results["setups"]
    lines = [
        "## With set-up",
        "",
        "The same, with opening and closing a curator (its ledger is a new file) or making a Context on the clock. "
        f"Median of {rows[0]['tacit']['calls']} calls.",
        "",
    ]
    cells = [["question", "unit", "Tacit", "OpenDP Context", "OpenDP / Tacit"]]
    for row in rows:
        theirs = [_spread(row["opendp"]), _ratio(row["opendp"], row["tacit"])] if "opendp" in row else ["-", "-"]
        cells.append([row["question"], row["unit"], _spread(row["tacit"]), *theirs])
    return [*lines, *table(cells), ""]


def _noise(results: dict[str, Any]) -> list[str]:
    times = results["noise"]
    base = times["tacit"]
    cells = [["a million Laplace draws of scale 10", "time", "to Tacit's"]]
    cells.append(["numpy, floating point, not private", seconds(times["numpy"]), f"{times['numpy'] / base:.2f}"])
    cells.append(["Tacit, exact integers, bits from AES", seconds(base), "1"])
    if "opendp" in times:
        cells.append(["OpenDP, exact integers", seconds(times["opendp"]), f"{times['opendp'] / base:.0f}"])
        inner = times["opendp"] - times["opendp_handover"]
        cells.append(["OpenDP, less handing the list over", seconds(inner), f"{inner / base:.0f}"])
    return ["## Noise", "", *table(cells), ""]


def _cold(results: dict[str, Any]) -> list[str]:
    times = results["cold"]
    cells = [["whole process", "time"]]
    cells.append(["`python -c pass`", seconds(times["python"])])
    cells.append(["`python -c 'import tacit'`", seconds(times["import"])])
    cells.append(["open the demo clinic, ask one question, with its ledger", seconds(times["ask"])])
    return ["## Cold start", "", "Median of 10.", "", *table(cells), ""]


def table(cells: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def _spread(side: dict[str, Any]) -> str:
    return f"{seconds(side['median'])} [{seconds(side['low'])}, {seconds(side['high'])}]"


def _ratio(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    return times(theirs["median"] / ours["median"])


def times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"


def seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
