"""The results of the query benchmarks as a page and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from peers.environments import WANTED
from peers.question import (
    EPSILON,
    GROUPS,
    JOINED_SQL,
    LARGEST,
    MOST_GROUPS,
    MOST_ROWS,
    SHIPPING,
    SHOP_ROWS,
    SHOP_SQL,
    SQL,
)
from report import seconds, table

OURS = ("sql", "rows", "auto")  # besides the prepared copy, of the same versions
NAMES = {
    "plain": "DuckDB, unprotected",
    "parquet": "DuckDB, unprotected, over the Parquet file",
    "prepared": "Tacit, prepared copy",
    "rows": f"Tacit, prepared copy, {MOST_GROUPS * MOST_ROWS} rows a unit",
    "auto": "Tacit, prepared copy, a clip that is chosen",
    "sql": "Tacit, plain SQL",
    "opendp": "OpenDP, polars",
    "smartnoise": "SmartNoise SQL, SQLite",
    "pipelinedp": "PipelineDP, local",
    "tumult": "Tumult Analytics, Spark",
    "unjoined": "DuckDB, unprotected, without the join",
}
NOT_ASKED = (
    "Qrlew 0.9.27 installs, and is not measured: it bounds a unit by the norm of what it adds and adds Gaussian noise, "
    "so it has no setting with these bounds.",
    "diffprivlib has no bound on what one unit adds, so it has no answer to the question.",
)
NOTES = (
    "*Tacit*'s time has the parsing, the charge and the stored answer on disk, the noise and the error bars in it. The "
    "others keep no ledger. The first call of a process loads compiled code.",
    '*OpenDP*: `truncate_num_groups(4)` is charged for four groups and keeps three, and `keep="sample"` raises an '
    "error with these versions, so they are the first ones in its order, here the large groups. Its rows are in memory "
    "before the clock starts. With few rows most of its time goes into the search for the scale of its noise.",
    "*SmartNoise SQL* has one cap on the rows of a unit, not one on groups and one on rows in each: it is "
    f"{MOST_GROUPS * MOST_ROWS} rows. That is the same noise and loses fewer rows, so where this loss is most of the "
    "error it is nearer to the truth. {}It shows the keys that are in the data. Its rows lie in a SQLite file before "
    "the clock starts.",
    "*PipelineDP* runs on its local backend, in plain Python.",
    "*Tumult Analytics* runs on Spark in the same machine, its rows in Spark's cache before the clock starts. Count "
    "and sum are two questions at half of epsilon each. Its memory is that of Python and Java together.",
)
ALL_ROWS = (
    f"Tacit has that cap too, `max_rows = {MOST_GROUPS * MOST_ROWS}`: *{NAMES['rows']}* is the side to compare with, "
    "at the same noise and the same loss of rows. "
)
BUSY = 0.7
BUSY_NOTE = (
    "Other programs ran on the machine meanwhile: its load was {:.1f} at the start. So times are longer than they "
    "would be alone, and the processor times, which count the work of a side only, say more. Unprotected queries and "
    "Tacit's prepared copy took turns; the other sides ran later, when there may have been more or less other work, so "
    "of these compare the processor times."
)
SCAN_GOAL, LINEAR_GOAL, MEMORY_GOAL = 15, 0.2, 4e9


def markdown(results: dict[str, Any]) -> str:
    """The whole page."""
    parts = [_head(results), _asks(results), _errors(results), _notes(results), _copies(results), _shop(results)]
    return "\n".join(line for part in parts for line in part)


def _head(results: dict[str, Any]) -> list[str]:
    machine = results["machine"]
    each = [
        ", ".join(f"{p} {v}" for p, v in of.items()) for name, of in results["versions"].items() if name not in OURS
    ]
    return [
        "# Queries at scale",
        "",
        "How long a protected group-by takes beside the same query without protection, how much memory it needs, and "
        "how far off it is. All numbers are from one run of `make bench-query` on one machine: "
        f"{machine['cores']} cores, {_bytes(machine['memory'])} of memory, {machine['system']}, Python "
        f"{machine['python']}. Each side ran in a process of its own. Ratios travel between machines better than times "
        "do. What to do with this is in [data that does not fit](guide/scale.md).",
        "",
        f"Versions: {'; '.join(each)}.",
        "",
        *([] if machine["load"] < BUSY else [BUSY_NOTE.format(machine["load"]), ""]),
    ]


def _asks(results: dict[str, Any]) -> list[str]:
    lines = [
        "## One table, 1,000 groups",
        "",
        f"    {SQL}",
        "",
        f"A tenth as many units as rows, some of thousands of rows; {GROUPS:,} groups by Zipf's law; values from 0 to "
        f"{LARGEST}. Protected at epsilon {EPSILON:g} is a unit, add or remove one, of which at most {MOST_GROUPS} "
        f"groups and {MOST_ROWS} rows in each count. Medians of up to 7 calls after the first one; of fewer calls, and "
        "with the first one, where these take long. The ratio is to the unprotected query over DuckDB's own table, "
        "which is quicker than over Parquet. *Processor* is the time of all threads together.",
        "",
        "![processor time and peak memory by rows](images/query.svg)",
        "",
    ]
    cells = [["rows", "side", "time", "ratio", "processor", "ratio", "calls", "first call", "peak memory"]]
    for part in results["asks"]:
        base = part["sides"]["plain"]
        for name, side in part["sides"].items():
            cells.append([f"{part['rows']:,}", NAMES[name], *_times(side, base), str(side["calls"])])
            cells[-1] += [seconds(side["first"]), _bytes(side["peak"])]
    lines += [*table(cells), ""]
    lines += [
        f"- {NAMES[name]}, {part['rows']:,} rows: left out, it {why}."
        for part in results["asks"]
        for name, why in part["left_out"].items()
    ]
    return [*lines, *(f"- {text}" for text in NOT_ASKED), ""]


def _errors(results: dict[str, Any]) -> list[str]:
    cells = [["rows", "side", "error of n", "spread of n", "error of s", "spread of s"]]
    for part in results["asks"]:
        for name, side in part["sides"].items():
            if name not in {"plain", "parquet"}:
                found = [side[kind][column] for column in ("n", "s") for kind in ("error", "spread")]
                cells.append(
                    [f"{part['rows']:,}", NAMES[name], *("-" if value is None else f"{value:,.4g}" for value in found)]
                )
    return [
        "### How far off",
        "",
        "*Error* is the mean absolute error against the unprotected answer, over groups and calls. With many rows most "
        "of it is what the bounds cut off: of a unit with rows in twenty groups, four count. *Spread* is how far "
        "repeated answers lie apart, the root of the mean variance of a group: that is the noise, and the choice of "
        "what counts.",
        "",
        *table(cells),
        "",
    ]


def _notes(results: dict[str, Any]) -> list[str]:
    if not any(name in WANTED for part in results["asks"] for name in part["sides"]):
        return []
    alike = ALL_ROWS if any("rows" in part["sides"] for part in results["asks"]) else ""
    return [line for note in NOTES for line in (note.format(alike), "")]


def _copies(results: dict[str, Any]) -> list[str]:
    cells = [["rows", "scan", "tacit prepare", "ratio", "scan, processor", "prepare, processor", "ratio"]]
    cells[0] += ["a million rows", "size of the copy", "peak memory"]
    for copy in results["copies"]:
        made, read, rows = copy["prepare"], copy["scan"], copy["rows"]
        cells.append([f"{rows:,}"])
        for kind in ("seconds", "processor"):
            cells[-1] += [seconds(read[kind]), seconds(made[kind]), _ratio(made[kind] / read[kind])]
        cells[-1] += [seconds(made["seconds"] / rows * 1e6), _bytes(made["bytes"]), _bytes(made["peak"])]
    return [
        "## Preparing a copy",
        "",
        "`tacit prepare` against a scan: reading every column of the Parquet file into Arrow batches. Medians of "
        "three, in turns; one of each where it takes long.",
        "",
        *table(cells),
        "",
        *(f"- {line}" for line in goals(results)),
        "",
    ]


def goals(results: dict[str, Any]) -> list[str]:
    """What was aimed at, and whether it was reached."""
    copies = {copy["rows"]: copy for copy in results["copies"]}
    asks = {part["rows"]: part["sides"] for part in results["asks"]}
    lines = []
    if middle := copies.get(10**7):
        ratio = middle["prepare"]["seconds"] / middle["scan"]["seconds"]
        lines.append(
            f"Goal: at 10,000,000 rows at most {SCAN_GOAL} scans. It is {ratio:.1f}: {_kept(ratio <= SCAN_GOAL)}."
        )
    sizes = (10**6, 10**7, 10**8)
    if all(rows in copies and rows in asks for rows in sizes):
        asked = [asks[rows]["prepared"]["median"] / rows for rows in sizes]
        made = [copies[rows]["prepare"]["seconds"] / rows for rows in sizes]
        lines.append(
            "Goal: from 1,000,000 to 100,000,000 rows, time grows in proportion to rows and no more, within 20 %. "
            + " ".join(_growth(what, each) for what, each in (("A question over the copy", asked), ("Preparing", made)))
        )
    if 10**8 in copies and 10**8 in asks:
        most = max(copies[10**8]["prepare"]["peak"], asks[10**8]["prepared"]["peak"])
        lines.append(
            "Goal: 100,000,000 rows within 4 GB, preparing and asking. The peak is "
            f"{_bytes(most)}: {_kept(most <= MEMORY_GOAL)}."
        )
    return lines


def _growth(what: str, each: list[float]) -> str:
    """How the time of a row changes from each of three sizes to the next, and from the first to the last."""
    steps = [each[1] / each[0] - 1, each[2] / each[1] - 1, each[2] / each[0] - 1]
    told = f"takes {_change(steps[0])} a row at ten times the rows and then {_change(steps[1])}"
    return f"{what} {told}: {_kept(max(steps) <= LINEAR_GOAL)}."


def _shop(results: dict[str, Any]) -> list[str]:
    shop = results["shop"]
    cells = [["side", "time", "ratio", "processor", "ratio", "calls", "peak memory"]]
    for name, side in shop["sides"].items():
        times = _times(side, shop["sides"]["plain"])
        cells.append([NAMES[name], *times, str(side["calls"]), _bytes(side["peak"])])
    return [
        "## A unit reached through another table",
        "",
        f"{shop['orders'] // 10:,} customers, {shop['orders']:,} orders, {shop['lines']:,} lines. Protected is a "
        f"customer, whom lines reach through their order: at most {len(SHIPPING)} ways of shipping, {SHOP_ROWS} lines "
        "in each. The unprotected query joins lines to orders, as whoever needs the customer has to; Tacit is asked "
        "about lines, and the prepared copy holds the customer of each.",
        "",
        f"    {JOINED_SQL}",
        f"    {SHOP_SQL}",
        "",
        *table(cells),
        "",
        f"The copy took {seconds(shop['prepare']['seconds'])} and {_bytes(shop['prepare']['peak'])} of memory.",
        "",
    ]


def plot(results: dict[str, Any], path: Path) -> None:
    """Processor time and peak memory by rows."""
    from tacit.pictures import TEXT_COLOR, open_figure

    with open_figure(path, "A group-by of 1,000 groups", "rows", "seconds", size=(11.0, 4.2), panels=2) as (
        time,
        memory,
    ):
        for axes in (time, memory):
            axes.set(xscale="log", yscale="log")
        time.set(ylabel="seconds of processor time")
        memory.set(ylabel="peak memory, GB")
        for name, label in NAMES.items():
            points = [(part["rows"], part["sides"][name]) for part in results["asks"] if name in part["sides"]]
            if points and name != "parquet":
                style = {} if label.startswith("Tacit") else {"linestyle": ":"}
                style = {"color": TEXT_COLOR, "linestyle": "--"} if name == "plain" else style
                rows = [number for number, _ in points]
                time.plot(rows, [side["processor"] for _, side in points], marker="o", **style)
                memory.plot(rows, [side["peak"] / 1e9 for _, side in points], marker="o", label=label, **style)
        memory.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))


def _kept(kept: bool) -> str:
    return "kept" if kept else "missed"


def _change(share: float) -> str:
    return f"{100 * abs(share):.0f} % {'more' if share > 0 else 'less'}"


def _times(side: dict[str, Any], base: dict[str, Any]) -> list[str]:
    """Time and processor time, each with its ratio."""
    return [
        text
        for kind in ("median", "processor")
        for text in (seconds(side[kind]), _ratio(side[kind] / max(base[kind], 1e-9)))
    ]


def _ratio(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


def _bytes(number: float) -> str:
    return f"{number / 1e9:.2f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"
