"""How large a fit may be that is asked for over a server, by public numbers alone.

**Rule.** How many rows there are decides nothing: where a fit fails because of them, whoever chooses the columns or the
batches compares them with any number, and pays for a model of an epsilon as small as they like.

For the same reason a fit is not compared with the number of rows that its method is proved for, where that is limited
(`minimize.most_rows`): an analyst declares `rows`, but for how many rows it has to be proved is the owner's to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.errors import ErrorCode, Refused
from tacit.learn.minimize import fewest_declared, most_rows
from tacit.learn.network import NetworkTraining
from tacit.learn.objective import ObjectivePerturbation
from tacit.learn.output import OutputPerturbation

if TYPE_CHECKING:
    from tacit.learn.base import FitPlan

_LONGER = 15  # times the seconds of a training that rows beyond the declared ones may take


@dataclass(frozen=True)
class FitLimits:
    """The most that a fit may have of what costs work and memory; None is no limit.

    Features, classes, levels of trees, sums that are kept for a split, the weights of a network and the seconds that
    the declared rows take it are public numbers. `cells` are numbers that are held where there are `rows` rows, which
    is for how many the server is made: the owner's number, which tables are to stay within.

    **Theorem.** Where no table has more than `rows`, whatever `check` lets pass is proved private, whatever rows the
    analyst declares.
    """

    rows: int = 0
    features: int | None = None
    classes: int | None = None
    cells: int | None = None
    levels: int | None = None
    tree_cells: int | None = None
    weights: int | None = None
    seconds: float | None = None

    def check(self, features: int, plan: FitPlan) -> None:
        """Refuse a fit of so many features that is more than is allowed."""
        self._check_features(features)
        self.check_classes(plan.loss.outputs)
        self._check_cells((features + 1) * plan.loss.outputs)
        self._check_trees(plan)
        self._check_network(plan)
        self._check_proof(plan)

    def check_classes(self, count: int) -> None:
        """Refuse more classes than are allowed."""
        if self.classes is not None and count > self.classes:
            what = f"there are {count:,} classes, and a server takes {self.classes:,} at most"
            raise _refuse(what, "group them by CASE, or name fewer: classes=[0, 1]")

    def _check_features(self, count: int) -> None:
        if self.features is not None and count > self.features:
            what = f"the columns make {count:,} features, and a server takes {self.features:,} at most"
            raise _refuse(what, "select fewer columns, or group their keys by CASE")

    def _check_cells(self, per_row: int) -> None:
        if self.cells is not None and self.rows * per_row > self.cells:
            what = f"the columns and classes make {per_row:,} numbers a row, and a server that is made for "
            what += f"{self.rows:,} rows takes {self.cells // self.rows:,} at most"
            raise _refuse(what, "select fewer columns, group their keys by CASE, or name fewer classes")

    def _check_trees(self, plan: Any) -> None:
        releases = getattr(plan.method, "releases", None)
        if releases is None:
            return
        levels = releases.trees * releases.depth
        if self.levels is not None and levels > self.levels:
            what = f"the trees have {levels:,} levels, and a server takes {self.levels:,} at most"
            raise _refuse(what, "max_iter=30, max_depth=2, say")
        if self.tree_cells is not None and plan.cells > self.tree_cells:
            what = f"the trees keep {plan.cells:,} sums for a split, and a server takes {self.tree_cells:,} at most"
            raise _refuse(what, "max_bins=31, a lower max_leaf_nodes, or fewer columns")

    def _check_proof(self, plan: FitPlan) -> None:
        """Refuse a method that is proved for fewer rows than the server is made for; all others are for any number."""
        declared = plan.facts.rows
        if isinstance(plan.method, OutputPerturbation | ObjectivePerturbation) and most_rows(declared) < self.rows:
            what = f"{plan.name} is proved for {most_rows(declared):,} rows where {declared:,} are declared, and the "
            what += f"server is made for {self.rows:,}"
            raise _refuse(what, f"rows={fewest_declared(self.rows):_}, or method='gradient'")

    def _check_network(self, plan: Any) -> None:
        """How long it takes is estimated for the declared rows. Where there are more, as many as `rows`, a longer time
        is allowed."""
        method = plan.method
        if not isinstance(method, NetworkTraining):
            return
        fix = "hidden_layer_sizes=(64,), fewer epochs, or fewer columns"
        if self.weights is not None and method.parameters > self.weights:
            what = f"the network has {method.parameters:,} weights, and a server takes {self.weights:,} at most"
            raise _refuse(what, fix)
        if self.seconds is None:
            return
        seconds = method.estimate_seconds(plan.facts.rows)
        if seconds > self.seconds:
            what = f"the training takes some {seconds:,.0f} seconds, and a server takes {self.seconds:,.0f} at most"
            raise _refuse(what, fix)
        longest, most = method.estimate_seconds(self.rows), _LONGER * self.seconds
        if longest > most:
            what = f"the training would take some {longest:,.0f} seconds on {self.rows:,} rows, for which the server "
            what += f"is made; {most:,.0f} are the most"
            raise _refuse(what, fix)


UNLIMITED = FitLimits()
"""What the owner's own process allows."""


def _refuse(what: str, fix: str) -> Refused:
    return Refused(ErrorCode.TOO_LARGE, what, fix=fix)
