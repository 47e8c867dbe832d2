"""Membership inference: which rows was a model fitted to? Shadow models, or its labels alone, tell.

>>> class Memory:  # remembers its rows, and guesses for all others
...     classes_ = np.array([0, 1])
...     def fit(self, features, labels):
...         self.known = dict(zip(features[:, 0].tolist(), labels.tolist()))
...         return self
...     def predict(self, features):
...         return np.array([self.known.get(value, 0) for value in features[:, 0].tolist()])
>>> rng = np.random.default_rng(0)
>>> features, labels = rng.normal(size=(600, 1)), rng.integers(0, 2, 600)
>>> attack_membership(lambda x, y: Memory().fit(x, y), features, labels, method="correctness").verdict
'members are found'
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.interval import CONFIDENCE, clopper_pearson_interval
from tacit.arithmetic import Number, to_integer, to_rational
from tacit.errors import ParameterError

Bits = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

METHODS = ("lira-online", "lira-offline", "correctness", "robustness")
FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
MIN_ROWS = 20
_LEAST_PROBABILITY = 1e-12
_LEAST_SPREAD = 1e-6
_OWN_SPREAD = 32  # shadow models from which each row has spreads of its own
_LARGEST_ANSWER = 1e100  # its square is a double
_COPIES = 20  # of each row, moved a little


@dataclass(frozen=True, eq=False)
class MembershipAttack:
    """What an attack on a fitted model says of each row: its score, and whether the row was in.

    **Theorem.** A model that is (epsilon, delta)-DP has no test of a row's membership whose rate of members found is
    above e^epsilon times the rate of false positives plus delta (`max_true_positive_rate`).

    Attributes
    ----------
    method : str
        How rows were scored: "lira-online", "lira-offline", "correctness" or "robustness".
    scores : array of float
        A score for each row and attacked model; a larger one speaks for membership.
    is_member : array of bool
        Whether the row was among those that the model was fitted to.
    shadows : int
        How many shadow models the scores come from; 0 where labels alone are used.

    Raises
    ------
    ParameterError
        If a score is NaN or infinite.

    Examples
    --------
    >>> found = MembershipAttack("correctness", np.array([1.0, 1.0, 0.0, 0.0]), np.array([True, True, True, False]), 0)
    >>> round(found.auc, 3), round(found.advantage, 3)
    (0.833, 0.667)
    """

    method: str
    scores: Floats
    is_member: Bits
    shadows: int

    def __post_init__(self) -> None:
        if not np.isfinite(self.scores).all():
            what = "must be finite: NaN is neither above nor below any score"
            raise ParameterError("scores", what, fix="scores=numpy.nan_to_num(scores)")

    @property
    def members(self) -> int:
        """How many of the scores are of members."""
        return int(self.is_member.sum())

    @property
    def outsiders(self) -> int:
        """How many are not."""
        return len(self.is_member) - self.members

    @property
    def auc(self) -> float:
        """The area under the ROC curve: how often a member scores above an outsider, ties as halves."""
        order = np.sort(self.scores[~self.is_member])
        mine = self.scores[self.is_member]
        below = np.searchsorted(order, mine, side="left") + np.searchsorted(order, mine, side="right")
        return float(below.mean() / 2 / len(order))

    @property
    def advantage(self) -> float:
        """The largest difference of the true and the false positive rate."""
        alarms, found = self.curve()
        return float(np.max(found - alarms))

    def curve(self) -> tuple[Floats, Floats]:
        """Return the ROC curve.

        Returns
        -------
        tuple of arrays
            False positive rates, from 0 to 1, and the true positive rate at each.
        """
        edges = np.append(np.inf, np.unique(self.scores)[::-1])
        rates = [
            1 - np.searchsorted(np.sort(self.scores[side]), edges, side="left") / side.sum()
            for side in (~self.is_member, self.is_member)
        ]
        return rates[0], rates[1]

    def true_positive_rate(self, false_positive_rate: Number) -> tuple[float, float, float]:
        """Return the share of members found at a rate of false positives, with Clopper and Pearson's 99 % interval.

        Parameters
        ----------
        false_positive_rate : number
            The largest share of outsiders that may be accused, in [0, 1].

        Returns
        -------
        tuple of float
            The true positive rate, and the ends of its interval. The interval takes rows as independent.
        """
        rate = float(to_rational("false_positive_rate", false_positive_rate))
        if not 0 <= rate <= 1:
            what = f"must be between 0 and 1, got {false_positive_rate}"
            raise ParameterError("false_positive_rate", what, fix="false_positive_rate=0.01")
        found = int((self.scores[self.is_member] > _threshold(self.scores[~self.is_member], rate)).sum())
        return found / self.members, *clopper_pearson_interval(found, self.members)

    def lower_epsilon(self, delta: Number = 0.0, confidence: Number = CONFIDENCE) -> float:
        """Return the epsilon that the attack shows: no model that leaks so much has less.

        Thresholds come from one half of the scores, at random: for three rates of false positives, and for the largest
        advantage. The other half is counted. The bound takes rows as independent, which those of one model are not
        quite; `tacit.audit.audit_training_run` gives a bound that needs no such thing.

        Parameters
        ----------
        delta : number
            The delta of the bound, in [0, 1].
        confidence : number
            The probability, in (0, 1), with which the bound holds, for all thresholds together.

        Returns
        -------
        float
            The lower bound, 0 where nothing is shown.
        """
        slack, sure = float(to_rational("delta", delta)), float(to_rational("confidence", confidence))
        if not 0 <= slack <= 1:
            raise ParameterError("delta", f"must be between 0 and 1, got {delta}", fix="delta=1e-6")
        if not 0 < sure < 1:
            what = f"must be between 0 and 1, both excluded, got {confidence}"
            raise ParameterError("confidence", what, fix="confidence=0.99")
        first = np.random.default_rng(len(self.scores)).random(len(self.scores)) < 0.5
        school = MembershipAttack(self.method, self.scores[first], self.is_member[first], self.shadows)
        mine, theirs = self.scores[~first & self.is_member], self.scores[~first & ~self.is_member]
        if not school.members or not school.outsiders or not len(mine) or not len(theirs):
            return 0.0
        edges = school._thresholds()
        best, each = 0.0, 1 - (1 - sure) / len(edges)
        for edge in edges:
            # Each interval has both ends at half of its miss, and one end of either is used.
            low = clopper_pearson_interval(int((mine > edge).sum()), len(mine), each)[0]
            high = clopper_pearson_interval(int((theirs > edge).sum()), len(theirs), each)[1]
            ratios = [(low - slack) / high if high > 0 else 0.0, (1 - high - slack) / (1 - low) if low < 1 else 0.0]
            best = max(best, math.log(max(1.0, *ratios)))
        return best

    def _thresholds(self) -> list[float]:
        """Return the scores above which a row is accused: for each rate of false positives, and the best advantage."""
        values = np.unique(self.scores)
        counts = [len(side) - np.searchsorted(np.sort(side), values, side="right") for side in self._sides()]
        best = values[np.argmax(counts[1] / self.members - counts[0] / self.outsiders)]
        return [*(_threshold(self._sides()[0], rate) for rate in FALSE_POSITIVE_RATES), float(best)]

    def _sides(self) -> tuple[Floats, Floats]:
        """Return the scores of outsiders and of members."""
        return self.scores[~self.is_member], self.scores[self.is_member]

    @property
    def verdict(self) -> str:
        """ "members are found" where significantly more of them are accused than of outsiders, else "nothing found"."""
        return "members are found" if self.lower_epsilon() > 0 else "nothing found"

    def __str__(self) -> str:
        shadows = f", {self.shadows} shadow models" if self.shadows else ", labels alone"
        lines = [
            f"{self.verdict} by {self.method}{shadows}: {self.members:,} members and {self.outsiders:,} outsiders, "
            f"AUC {self.auc:.3f}, advantage {self.advantage:.3f}"
        ]
        for rate in FALSE_POSITIVE_RATES:
            share, low, high = self.true_positive_rate(rate)
            lines.append(
                f"at {rate:.1%} false positives {share:.2%} of the members ({low:.2%} to {high:.2%} at 99 % confidence)"
            )
        shown = self.lower_epsilon()
        lines.append(f"epsilon is at least {shown:.3g}, with confidence 99 % if rows are independent")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from tacit.notebook_html import render_list, render_paragraph, render_table

        rows = []
        for rate in FALSE_POSITIVE_RATES:
            share, low, high = self.true_positive_rate(rate)
            rows.append([f"{rate:.1%}", f"{share:.2%}", f"{low:.2%} to {high:.2%}"])
        first, *_, last = str(self).split("\n")
        table = render_table(["false positives", "members found", "99 % interval"], rows, [False] * 3)
        return render_paragraph(first, strong=True) + table + render_list([last])

    def to_dict(self) -> dict[str, object]:
        """Return the result as plain values, for JSON, without the scores.

        Returns
        -------
        dict
            The method, the verdict, AUC, advantage, true positive rates with intervals, and the bound on epsilon.
        """
        rates = []
        for rate in FALSE_POSITIVE_RATES:
            share, low, high = self.true_positive_rate(rate)
            rates.append({"false_positive_rate": rate, "true_positive_rate": share, "interval": [low, high]})
        return {
            "attack": "membership",
            "verdict": self.verdict,
            "method": self.method,
            "shadows": self.shadows,
            "members": self.members,
            "outsiders": self.outsiders,
            "auc": self.auc,
            "advantage": self.advantage,
            "rates": rates,
            "lower_epsilon": self.lower_epsilon(),
        }

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, epsilon: float | None = None, delta: float = 0.0
    ) -> None:
        """Plot the ROC curve with logarithmic axes, and the most that epsilon allows.

        Parameters
        ----------
        path : path, optional
            The picture to write; its ending chooses the format (.png, .svg, .pdf). Without it matplotlib shows it.
        epsilon : float, optional
            The privacy loss of the model, 0 or more; its bound is drawn where it is given.
        delta : float
            The delta of that bound, in [0, 1].
        """
        plot_membership_attacks({self.method: self}, path, epsilon=epsilon, delta=delta)


def plot_membership_attacks(
    attacks: dict[str, MembershipAttack],
    path: str | os.PathLike[str] | None = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
) -> None:
    """Plot the ROC curves of several attacks with logarithmic axes, and the most that epsilon allows.

    Parameters
    ----------
    attacks : dict
        Attacks by the names that the legend shows.
    path : path, optional
        The picture to write; its ending chooses the format (.png, .svg, .pdf). Without it matplotlib shows it.
    epsilon : float, optional
        The privacy loss of a private model, 0 or more; its bound is drawn where it is given.
    delta : float
        The delta of that bound, in [0, 1].

    Examples
    --------
    >>> import os, tempfile
    >>> found = MembershipAttack("correctness", np.array([1.0, 1.0, 0.0, 0.0]), np.array([True, True, True, False]), 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_membership_attacks({"plain": found}, os.path.join(folder, "roc.svg"), epsilon=1)
    """
    from tacit.accounting.interpretation import max_true_positive_rate
    from tacit.pictures import open_figure

    least = 0.5 / max(attack.outsiders for attack in attacks.values())
    fine = np.geomspace(least, 1, 400)
    with open_figure(path, "Members found", "false positive rate", "true positive rate", size=(5.8, 5.2)) as axes:
        for name, attack in attacks.items():
            alarms, found = attack.curve()
            shares = np.interp(fine, alarms, found)  # equal scores are told apart by coins
            axes.plot(fine, np.maximum(shares, least), label=name)
        axes.plot(fine, fine, ":", color="gray", label="a blind guess")
        if epsilon is not None:
            most = [max_true_positive_rate(epsilon, float(alarm), delta) for alarm in fine]
            axes.plot(fine, most, "--", label=f"the most under epsilon {epsilon:g}")
        axes.set(xscale="log", yscale="log", xlim=(least, 1.05), ylim=(least, 1.15))
        axes.legend(loc="lower right")


def attack_membership(
    fit: Callable[..., object],
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    method: str = "lira-online",
    shadows: int = 32,
    targets: int = 1,
    seed: int = 0,
) -> MembershipAttack:
    """Attack models of the kind that `fit` makes: each is fitted to a random half of the rows, and tells which.

    A fair coin puts each row in or out, for the attacked models and for the shadow models alike. By
    "lira-online" (Carlini et al. 2022) a row's score is the log-likelihood ratio of the attacked model's confidence in
    its label, on a logit scale, under two normal distributions: of shadow models with the row, and without it.
    "lira-offline" has those without it alone, and scores by how far above them the confidence is. The others see labels
    only: "correctness" scores a row by whether its label is predicted, and "robustness" by how often it is for copies
    that are moved a little.

    Parameters
    ----------
    fit : callable
        `fit(features, labels)` gives a fitted estimator with `predict`, and with `predict_proba` or
        `decision_function` for LiRA. An estimator without `classes_` is a regressor, and its confidence is minus the
        absolute error.
    features : array of shape (rows, columns)
        The rows, 20 or more; several thousand for rates of false positives of 0.1 %.
    labels : array of shape (rows,)
        The label or the target of each row.
    method : str
        "lira-online", "lira-offline", "correctness" or "robustness".
    shadows : int
        How many shadow models LiRA fits, 4 or more.
    targets : int
        How many models are attacked, 1 or more; their scores are pooled.
    seed : int
        Seed of the coins and of moved copies, 0 or more.

    Returns
    -------
    MembershipAttack
        The scores with the truth: AUC, rates with intervals, a bound on epsilon, a plot.

    Raises
    ------
    ParameterError
        If an argument is out of range, the estimator does not say how sure it is, or an answer of it is NaN or
        infinite. No score can be made of that, and no answer may be left out: which ones are NaN may tell members.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rng = np.random.default_rng(0)
    >>> features, labels = rng.normal(size=(400, 5)), rng.integers(0, 2, 400)
    >>> found = attack_membership(lambda x, y: DecisionTreeClassifier().fit(x, y), features, labels, shadows=8)
    >>> found.verdict
    'members are found'
    """
    if method not in METHODS:
        raise ParameterError("method", f"there is no method {method!r:.40}", fix=f'method="{METHODS[0]}"')
    table, answers = np.asarray(features, dtype=np.float64), np.asarray(labels)
    if table.ndim != 2 or answers.shape != table.shape[:1] or len(table) < MIN_ROWS:
        what = f"needs {MIN_ROWS} rows or more, and as many labels"
        raise ParameterError("features", what, fix="features=numpy.asarray(frame), labels=numpy.asarray(column)")
    uses_shadows = method.startswith("lira")
    many = to_integer("shadows", shadows, least=4) if uses_shadows else 0
    attacked = to_integer("targets", targets, least=1)
    coins, moves = (np.random.default_rng([to_integer("seed", seed, least=0), stream]) for stream in (0, 1))
    is_in = coins.integers(0, 2, (attacked + many, len(table))).astype(bool)
    measure = _measure(method, table, moves)
    said = np.empty(is_in.shape)
    for number, chosen in enumerate(is_in):
        if len(np.unique(answers[chosen])) == 1:
            raise ParameterError("labels", "a random half has one label only", fix="give more rows of each label")
        said[number] = measure(fit(table[chosen], answers[chosen]), table, answers)
        if not (np.abs(said[number]) < _LARGEST_ANSWER).all():  # NaN is not less
            what = "gave a model that answers NaN, infinity or more than 1e100: if for members only, that tells them"
            fix = "give a model that answers with numbers: numpy.nan_to_num(answers, nan=-1, posinf=1e9, neginf=-1e9)"
            raise ParameterError("fit", what, fix=fix)
    own, known = said[:attacked], is_in[attacked:]
    scores = own if not uses_shadows else _lira(own, said[attacked:], known, online=method == "lira-online")
    return MembershipAttack(method, scores.ravel(), is_in[:attacked].ravel(), many)


def _lira(own: Floats, shadow: Floats, known: Bits, *, online: bool) -> Floats:
    """The likelihood ratio of each row's confidence, in against out; or how far above out it is."""
    centers, spreads = [], []
    for side in (known, ~known):
        count = np.maximum(side.sum(axis=0), 1)
        center = np.where(side, shadow, 0.0).sum(axis=0) / count
        squares = np.where(side, (shadow - center) ** 2, 0.0)
        if len(known) >= _OWN_SPREAD:
            spread = np.sqrt(squares.sum(axis=0) / count)
        else:  # few models tell one spread for all rows
            spread = np.full(known.shape[1], math.sqrt(squares.sum() / max(1, side.sum() - known.shape[1])))
        centers.append(center)
        spreads.append(np.maximum(spread, _LEAST_SPREAD))
    outside = (own - centers[1]) / spreads[1]
    if not online:
        return np.asarray(outside)
    inside = (own - centers[0]) / spreads[0]
    return np.asarray((outside**2 - inside**2) / 2 + np.log(spreads[1] / spreads[0]))


def _measure(method: str, table: Floats, rng: np.random.Generator) -> Callable[[Any, Floats, Any], Floats]:
    """Return what is measured of each row by a fitted model."""
    if method.startswith("lira"):
        return _confidence
    if method == "correctness":
        return _correctness
    moved = [
        table + rng.normal(size=table.shape) * table.std(axis=0) * scale for scale in np.linspace(0.01, 0.1, _COPIES)
    ]

    def robustness(model: Any, rows: Floats, answers: Any) -> Floats:
        return np.asarray(np.mean([_correctness(model, copy, answers) for copy in [rows, *moved]], axis=0))

    return robustness


def _correctness(model: Any, rows: Floats, answers: Any) -> Floats:
    """1 where the label is predicted; minus the absolute error of a regressor."""
    said = np.asarray(model.predict(rows))
    if not hasattr(model, "classes_"):
        return np.asarray(-np.abs(np.asarray(said, dtype=np.float64) - answers))
    is_nan = np.asarray(said != said, dtype=bool)  # noqa: PLR0124 - no other label differs from itself
    return np.where(is_nan, np.nan, np.asarray(said == answers, dtype=np.float64))


def _confidence(model: Any, rows: Floats, answers: Any) -> Floats:
    """The log of the odds that the model gives to a row's own label."""
    if not hasattr(model, "classes_"):
        return _correctness(model, rows, answers)
    classes = np.asarray(model.classes_)
    place = np.minimum(np.searchsorted(classes, answers), len(classes) - 1)
    own = np.arange(len(classes)) == place[:, None]
    own &= (classes[place] == answers)[:, None]  # a label that the model never saw has no place
    if hasattr(model, "predict_proba"):
        chances = np.asarray(model.predict_proba(rows), dtype=np.float64)
        mine = np.where(own, chances, 0.0).sum(axis=1)
        rest = np.where(own, 0.0, chances).sum(axis=1)
        mine = np.where(np.isfinite(chances).all(axis=1), mine, np.nan)
        odds = np.log(np.maximum(mine, _LEAST_PROBABILITY)) - np.log(np.maximum(rest, _LEAST_PROBABILITY))
        return np.asarray(odds)
    if hasattr(model, "decision_function"):
        margin = np.asarray(model.decision_function(rows), dtype=np.float64)
        if margin.ndim == 1:
            return np.where(own[:, -1], margin, -margin)
        mine = np.where(own.any(axis=1), np.where(own, margin, -np.inf).max(axis=1), margin.min(axis=1))
        return np.asarray(mine - np.where(own, -np.inf, margin).max(axis=1))
    what = f"gave a {type(model).__name__}, which has neither predict_proba nor decision_function"
    raise ParameterError("fit", what, fix='method="correctness"')


def _threshold(outsiders: Floats, rate: float) -> float:
    """The score above which at most this share of the outsiders is."""
    allowed = math.floor(rate * len(outsiders) + 1e-9)
    if allowed >= len(outsiders):
        return -math.inf
    return float(np.sort(outsiders)[::-1][allowed])
