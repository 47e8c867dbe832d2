"""The report and the picture of trees.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tacit.pictures import COLORS, open_figure

_NAMES = {"boosted": "boosted trees", "additive": "additive model", "logistic": "logistic regression"}
_CHOSEN = (20, 2)


def write_report(found: dict[str, Any]) -> str:
    """The page."""
    parts = {"settle": _settle, "adult": _adult, "numbers": _numbers, "classes": _classes}
    lines = ["# Private trees", ""]
    for name, write in parts.items():
        if name in found:
            lines += write(found[name])
    return "\n".join(lines)


def _settle(found: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## The constants",
        "",
        "Made-up tables of numbers and categories with two classes (`trees_family.py`): 2,000 to 32,000 rows, epsilon "
        "0.3 to 3, half of the columns say nothing. The expected accuracy in percent, by the known truth, as a mean "
        "over 18 tables. Beforehand, structures were compared on Adult, on other splits than those below "
        "(`docs/decisions/0050-symmetric-trees.md`).",
        "",
        "| trees, learning rate | one level | two levels | three levels |",
        "|---|---|---|---|",
    ]
    by_step: dict[tuple[int, float], dict[int, float]] = {}
    for row in found:
        by_step.setdefault((row["trees"], row["rate"]), {})[row["depth"]] = float(row["accuracy"])
    for (trees, rate), scores in by_step.items():
        cells = [f"**{scores[d]:.2f}**" if (trees, d) == _CHOSEN else f"{scores[d]:.2f}" for d in sorted(scores)]
        lines.append(f"| {trees}, {rate:g} | {' | '.join(cells)} |")
    return [*lines, ""]


def _adult(found: dict[str, Any]) -> list[str]:
    sides = found["sides"]
    epsilons = list(sides["boosted"])
    lines = [
        "## Adult",
        "",
        f"Ten splits, {found['train']:,} rows to learn from, delta 1/n^2, default settings, as in [learn.md](learn.md)."
        " Means over splits, with the standard error of the mean.",
        "",
        "![accuracy by epsilon](../docs/images/learn-trees.svg)",
    ]
    for place, title in enumerate(("Accuracy, %", "Area under the curve, %")):
        lines += ["", f"| {title} | {' | '.join(f'epsilon {float(e):g}' for e in epsilons)} |"]
        lines.append("|---" * (len(epsilons) + 1) + "|")
        for name, runs in sides.items():
            cells = [_mean([run[place] for run in runs[e]]) for e in epsilons]
            lines.append(f"| {_NAMES[name]} | {' | '.join(cells)} |")
        gaps = [
            _mean(
                [
                    one[place] - other[place]
                    for one, other in zip(sides["boosted"][e], sides["additive"][e], strict=True)
                ]
            )
            for e in epsilons
        ]
        lines.append(f"| boosted less additive, split by split | {' | '.join(gaps)} |")
    return [*lines, ""]


def _numbers(found: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## Numbers to predict",
        "",
        "Other made-up tables, whose target is a number: the mean squared distance to the truth, in percent of its "
        "variance; less is better, and 100 is a constant. Ridge regression sees a mark for each category. Means over "
        "tables.",
        "",
        "| rows | boosted trees | ridge regression |",
        "|---|---|---|",
    ]
    for rows in sorted({row["rows"] for row in found}):
        here = [row for row in found if row["rows"] == rows]
        means = (100 * np.mean([row[side] for row in here]) for side in ("boosted", "ridge"))
        lines.append(f"| {rows:,} | {' | '.join(f'{mean:.1f}' for mean in means)} |")
    return [*lines, ""]


def _classes(found: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## Classes",
        "",
        "Other made-up tables of two and three classes: the expected accuracy in percent. The best is that of whoever "
        "knows the truth.",
        "",
        "| classes | rows | always the largest class | boosted trees | best |",
        "|---|---|---|---|---|",
    ]
    for classes, rows in sorted({(row["classes"], row["rows"]) for row in found}):
        here = [row for row in found if (row["classes"], row["rows"]) == (classes, rows)]
        means = (100 * np.mean([row[side] for row in here]) for side in ("largest", "boosted", "best"))
        lines.append(f"| {classes} | {rows:,} | {' | '.join(f'{mean:.1f}' for mean in means)} |")
    return [*lines, ""]


def _mean(values: list[float]) -> str:
    known = 100 * np.array(values)
    return f"{known.mean():.2f} ± {known.std(ddof=1) / len(known) ** 0.5:.2f}"


def draw_picture(found: dict[str, Any], target: Path) -> None:
    """Accuracy over epsilon."""
    with open_figure(target, "Income above 50,000, from the census", "epsilon", "accuracy, %", (7.5, 4.4)) as axes:
        for (name, runs), color in zip(found["sides"].items(), COLORS, strict=False):
            x = [float(epsilon) for epsilon in runs]
            known = [100 * np.array([run[0] for run in each]) for each in runs.values()]
            error = [2 * each.std(ddof=1) / len(each) ** 0.5 for each in known]
            y = [each.mean() for each in known]
            axes.errorbar(x, y, error, color=color, label=_NAMES[name], marker="o", ms=4, capsize=2)
        axes.set(xscale="log")
        axes.set_xticks([0.3, 1, 3], labels=["0.3", "1", "3"])
        axes.minorticks_off()
        axes.legend(loc="lower right", fontsize=9)
