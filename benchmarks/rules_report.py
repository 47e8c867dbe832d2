"""The results of `rules.py` as a page."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from report import table

WHAT = {
    "output._SCORES": "output: the scores that the penalty is for, in units of a decisive one",
    "objective._SCORES": "objective: the scores that the penalty is for, for a signal as large as its noise",
    "objective._GROWTH": "objective: the power of the signal by which these scores grow",
    "objective._DETERMINANT": "objective: the part of epsilon that the determinant alone may take",
    "gradient._REACH": "gradient, newton, Ridge: the scores that the penalty is for, in units of slope/bend",
    "gradient._PATIENCE": "gradient: steps, in units of the root of the condition number",
    "gradient._FEWEST": "gradient: the fewest steps",
    "gradient._MOST": "gradient: the most steps",
    "gradient._SKIPPED": "gradient: the part of the steps that is not in the mean",
    "gradient._CUT": "all methods: how soon noise brings the cut of the logistic residuals down",
    "newton._SHARE": "newton: the part of the budget for the second moments",
    "newton._STEPS": "newton: steps",
    "newton._SKIPPED": "newton: the part of the steps that is not in the mean",
    "newton._FLOOR": "newton: the least eigenvalue believed, in units of the largest that noise has",
    "moments._SHARE": "Ridge: the part of the budget for X^T X",
    "moments._FLOOR": "Ridge: the least eigenvalue believed, in units of the largest that noise has",
    "Rule.plenty": "auto: the signal from which objective perturbation is chosen, else gradients",
    "Rule.wide": "auto, Ridge: the most columns for which X^T X is released, else gradients",
    "LogisticRegression.intercept_scaling": "the constant feature, in units of the norm",
    "AdditiveClassifier.knots": "knots of a column",
}

HEAD = """# The constants of private learning's default rules

Settled on made-up problems alone: `python benchmarks/rules.py` draws them, fits, chooses and writes this page, the same
one every time. No real data is read.

- The problems are those of `benchmarks/rules_family.py`: two halves of 30 classifications with 1,000 to 100,000 rows, 5
  to 200 columns, two or three classes, columns that are dense, correlated, marks of categories, skewed, heavy-tailed or
  flags, a weak or a strong signal, balanced or not, sparse or not, straight or bent, a norm declared or not, rows added
  and removed or replaced; at epsilon 0.1 and 1, or 0.3 and 3, with delta = 1/n^2. Regressions of the same shapes settle
  what `Ridge` needs, sums of functions of a column settle the knots.
- The error is the mean chance to be wrong on a test row, by the true probabilities, in points of a hundred; for a
  regression the part of the variance that is not explained.
- Constants that the same fits settle are searched one after the other, round after round, from the middle of each grid.
  The least mean error on the first half wins. Of candidates within one standard error of it (of the difference on each
  problem), the one with the best probabilities, by their mean squared error, wins. What was there before has no
  preference. Grids at whose end the choice fell in a first run, or in a trial on a few tiny
  problems, were made longer, and all was run again.
- The second half was held out. It is shown, and decided nothing.
"""


def markdown(lines: list[Any]) -> str:
    """The whole page."""
    cells = [["constant", "value", "what it is", "regret", "held out"]]
    for line in lines:
        key, found = line.constant.key, (line.settled, line.held_out)
        cells.append([f"`{key}`", _text(line.value), WHAT[key], *(f"{_regret(one)[line.value]:.2f}" for one in found)])
    told = [*HEAD.splitlines(), "", *table(cells), ""]
    told.append(
        "The regret of a candidate is its error above that of the best candidate on each problem, the mean over "
        "problems. Below, ± is the standard error of the difference from the candidate with the least error, and "
        "`probabilities` their squared error, all with the other constants as settled."
    )
    told += ["", _restless(lines)]
    for line in lines:
        told += ["", f"## {line.constant.key}", "", *_line(line)]
    return "\n".join(told) + "\n"


def _line(line: Any) -> list[str]:
    settled, held = _regret(line.settled), _regret(line.held_out)
    least = min(settled, key=lambda candidate: settled[candidate])
    cells = [["candidate", "regret", "±", "probabilities", "held out, regret", "probabilities"]]
    for candidate, found in line.settled.items():
        apart = found[:, 0] - line.settled[least][:, 0]
        name = f"**{_text(candidate)}**" if candidate == line.value else _text(candidate)
        error = f"{apart.std(ddof=1) / len(apart) ** 0.5:.2f}"
        other = line.held_out[candidate]
        cells.append(
            [name, f"{settled[candidate]:.2f}", error, _squared(found), f"{held[candidate]:.2f}", _squared(other)]
        )
    return list(table(cells))


def _restless(lines: list[Any]) -> str:
    """Two rounds were declared, and were kept to."""
    moving = [f"`{line.constant.key}` would go to {_text(line.again)}" for line in lines if line.again != line.value]
    return f"In one more round {'; '.join(moving) or 'nothing would move'}. Two had been declared."


def _squared(found: Any) -> str:
    return "-" if np.isnan(found).any() else f"{found[:, 1].mean():.2f}"


def _regret(found: dict[Any, Any]) -> dict[Any, float]:
    best = np.min([one[:, 0] for one in found.values()], axis=0)
    return {candidate: float(np.mean(one[:, 0] - best)) for candidate, one in found.items()}


def _text(value: Any) -> str:
    """A value as the page has it: 1/4, 0.25, 200."""
    return str(value) if isinstance(value, int | Fraction) else f"{value:g}"
