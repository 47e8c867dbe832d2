"""The results of `learn_sets.py` as a section of a page, and as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from learn_sets import EPSILONS, HINDSIGHT_EPSILON, NAMES, load
from report import table

from tacit.pictures import COLORS, TEXT_COLOR, open_figure

SIDES = {"tacit": "Tacit", "diffprivlib": "diffprivlib", "ebm": "DP-EBM"}
_AT = 1.0  # the epsilon of the tables
_ENOUGH = 5  # seeds for an interval that decides
_NEAR = 3.0  # points below the best penalty in hindsight
DRAWN = (
    ("tacit", "LogisticRegression"),
    ("tacit", "LinearSVC"),
    ("tacit", "AdditiveClassifier"),
    ("tacit", "HistGradientBoostingClassifier"),
    ("ebm", "DP-EBM"),
    ("diffprivlib", "RandomForestClassifier"),
    ("diffprivlib", "LogisticRegression"),
    ("diffprivlib", "GaussianNB"),
)
Runs = dict[str, dict[str, list[float]]]  # of each side: set|learner|epsilon, and the points of the seeds


def take_first(name: str) -> str:
    """The estimator that the guide says to take first: by the target, the rows and the columns alone."""
    return "LogisticRegression" if load(name).classes else "Ridge"


def tell_sets(sides: Runs) -> list[str]:
    """The section: what each side has at epsilon 1, how they rank, and the penalty in hindsight."""
    cells = [
        ["data", "rows", "columns", "Tacit, first choice", "Tacit, best", "diffprivlib, best", "DP-EBM", "unprotected"]
    ]
    behind = []
    for name in NAMES:
        rows, columns = load(name).features.shape
        first = _of(sides, "tacit", name, take_first(name), _AT)
        ours, (theirs, whose), ebm = (
            _best(sides, "tacit", name),
            _best(sides, "diffprivlib", name),
            _best(sides, "ebm", name),
        )
        plain = _of(sides, "scikit-learn", name, "linear", float("inf"))
        cells.append(
            [
                name,
                str(rows * 2 // 3),
                str(columns),
                _cell(first),
                _cell(*ours),
                _cell(theirs, whose),
                _cell(ebm[0]),
                _cell(plain),
            ]
        )
        peers = [float(np.mean(peer)) for peer in (theirs, ebm[0]) if peer]
        if first and peers and max(peers) > np.mean(first):
            near = len(first) >= _ENOUGH and max(peers) <= np.mean(first) + _half_width(first)
            behind.append(f"{name} {max(peers):.1f}{', within its interval' if near else ''}")
    counts = {side: _seeds(sides, side) for side in SIDES}
    words = "; ".join(
        f"{SIDES[side]} {', '.join(f'{count} at {epsilon:g}' for epsilon, count in found.items())}"
        for side, found in counts.items()
    )
    return [
        "## Fifteen data sets",
        "",
        "Every learner has its defaults and the same bounds, figures of one digit. Two thirds of the rows are learned "
        "from; points are the accuracy on the rest, or the explained variance of a regression, in percent, not below "
        f"-100; the mean over seeds at epsilon {_AT:g}, and the half width of its 95 % interval. The sets are in "
        "`learn_sets.py`. Seeds of each "
        f"epsilon: {words}. *First choice* is `LogisticRegression` or `Ridge`; *best* is the best of a library's "
        "learners, named, as known in hindsight. DP-EBM has no more than two classes. *Unprotected* is scikit-learn's "
        "linear model.",
        "",
        "![points by epsilon](../docs/images/learn-sets.svg)",
        "",
        *table(cells),
        "",
        f"- Goal: at epsilon {_AT:g} the first choice is ahead of every other library's learner, or within its 95 % "
        f"interval, which takes {_ENOUGH} seeds or more. Another is ahead on {len(behind)} of {len(NAMES)}"
        f"{': ' + '; '.join(behind) if behind else ''}.",
        *_tell_ranks(sides),
        *_tell_hindsight(sides),
    ]


def _tell_ranks(sides: Runs) -> list[str]:
    """The median rank of every learner among those that take the set, and its worst distance from the best."""
    ranks: dict[str, list[int]] = {}
    gaps: dict[str, list[float]] = {}
    for name in NAMES:
        means = {
            f"{SIDES[side]}, {kind}": float(np.mean(runs))
            for side in SIDES
            for kind, runs in _learners(sides, side, name, _AT).items()
        }
        for place, learner in enumerate(sorted(means, key=lambda learner: -means[learner])):
            ranks.setdefault(learner, []).append(place + 1)
            gaps.setdefault(learner, []).append(max(means.values()) - means[learner])
    cells = [["learner", "sets", "median rank", "worst rank", "points below the best: median", "most"]]
    for learner in sorted(ranks, key=lambda learner: float(np.median(gaps[learner]))):
        far = gaps[learner]
        cells.append(
            [
                learner,
                str(len(far)),
                f"{np.median(ranks[learner]):g}",
                str(max(ranks[learner])),
                f"{np.median(far):.1f}",
                f"{max(far):.1f}",
            ]
        )
    return ["", *table(cells), ""]


def _tell_hindsight(sides: Runs) -> list[str]:
    """On how many sets the first choice is near the best penalty in hindsight."""
    known = {}
    for name in NAMES:
        found, kind = _learners(sides, "hindsight", name, HINDSIGHT_EPSILON), take_first(name)
        ours = _of(sides, "tacit", name, kind, HINDSIGHT_EPSILON)
        if found and ours:
            count = min(len(ours), *(len(runs) for runs in found.values()))
            known[name] = max(float(np.mean(runs[:count])) for runs in found.values()) - float(np.mean(ours[:count]))
    if not known:
        return []
    far = [f"{name} {gap:.1f}" for name, gap in known.items() if gap > _NEAR]
    return [
        f"- Goal: the first choice is within {_NEAR:g} points of the best of seven penalties in hindsight on 10 of 12 "
        f"sets. It is on {len(known) - len(far)} of {len(known)}{'; not on ' + ', '.join(far) if far else ''}."
    ]


def draw_sets(sides: Runs, target: Path) -> None:
    """Mean points over the sets with two classes by epsilon, of the learners that take all of them."""
    names = [name for name in NAMES if load(name).classes == 2]
    with open_figure(
        target, "Seven data sets with two classes, default settings", "epsilon", "mean accuracy, %", (7.5, 4.4)
    ) as axes:
        for (side, kind), color in zip(DRAWN, (*COLORS, TEXT_COLOR, "0.55"), strict=False):
            y = [_mean_over(sides, side, kind, names, epsilon) for epsilon in EPSILONS]
            line = "-" if side == "tacit" else ":"
            label = f"{SIDES[side]}{'' if side == 'ebm' else ', ' + kind}"
            axes.plot(EPSILONS, y, line, color=color, marker="o" if side == "tacit" else "s", ms=4, label=label)
        top = _mean_over(sides, "scikit-learn", "linear", names, float("inf"))
        axes.axhline(top, color=TEXT_COLOR, linewidth=1, linestyle="--")
        axes.set(xscale="log", ylim=(48, 92))
        axes.set_xticks(EPSILONS, labels=[f"{epsilon:g}" for epsilon in EPSILONS])
        axes.minorticks_off()
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)


def _mean_over(sides: Runs, side: str, kind: str, names: list[str], epsilon: float) -> float:
    found = [_of(sides, side, name, kind, epsilon) for name in names]
    return float(np.mean([np.mean(runs) for runs in found])) if all(found) else float("nan")


def _of(sides: Runs, side: str, name: str, kind: str, epsilon: float) -> list[float]:
    return sides.get(side, {}).get(f"{name}|{kind}|{epsilon:g}", [])


def _learners(sides: Runs, side: str, name: str, epsilon: float) -> dict[str, list[float]]:
    """The learners of a side on a set, with their points."""
    parts = {key: key.split("|") for key in sides.get(side, {})}
    return {
        kind: sides[side][key]
        for key, (data, kind, at) in parts.items()
        if (data, at) == (name, f"{epsilon:g}") and sides[side][key]
    }


def _best(sides: Runs, side: str, name: str) -> tuple[list[float], str]:
    found = _learners(sides, side, name, _AT)
    kind = max(found, key=lambda kind: float(np.mean(found[kind])), default="")
    return found.get(kind, []), kind


def _seeds(sides: Runs, side: str) -> dict[float, int]:
    """The least number of seeds of a side at each epsilon."""
    return {
        epsilon: min(
            (len(runs) for key, runs in sides.get(side, {}).items() if key.endswith(f"|{epsilon:g}")), default=0
        )
        for epsilon in EPSILONS
    }


def _half_width(runs: list[float]) -> float:
    return float(1.96 * np.std(runs, ddof=1) / len(runs) ** 0.5) if len(runs) > 1 else float("inf")


def _cell(runs: list[float], whose: str = "") -> str:
    if not runs:
        return "-"
    spread = f" ± {_half_width(runs):.1f}" if len(runs) > 1 else ""
    return f"{np.mean(runs):.1f}{spread}{' ' + whose if whose else ''}"
