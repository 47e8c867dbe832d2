"""Models that analysts fit over HTTP: what is asked for, within which limits, and what goes back.

The released weights go back with the public facts by which the client makes the model of them again: the estimator's
parameters, as the policy and the charge set them, and how columns are read. The client computes the rest from these, as
the server would (`learn/released_weights.py`).
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tacit.client.arrow_stream import receipt_to_dict
from tacit.curator.curator import Curator
from tacit.curator.fit import ChargedFit, Hold, release_fit
from tacit.curator.fit_limits import FitLimits
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.extras import missing_extra
from tacit.ledger.entries import Reservation
from tacit.serve.models import FitBody, parse_number

_log = logging.getLogger("tacit.serve")
MAX_FIT_ROWS = 200_000  # that a server is made for
LIMITS = FitLimits(
    rows=MAX_FIT_ROWS,
    features=500,
    classes=50,
    cells=100_000_000,  # rows times features, times classes where there are more than two: 800 MB
    levels=200,  # trees times levels: each is a pass over the rows
    tree_cells=2**22,  # sums that are kept for a split
    weights=50_000,  # of a network: each is some twenty bytes in the reply and in the ledger
    seconds=120.0,  # that training a network takes: by an estimate for the declared rows
)
ESTIMATORS = (
    "LogisticRegression",
    "LinearSVC",
    "Ridge",
    "LinearRegression",
    "Lasso",
    "ElasticNet",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "MLPClassifier",
    "MLPRegressor",
)


def fit_for_analyst(
    curator: Curator,
    analyst: str,
    form: FitBody,
    request: str,
    rows: int = MAX_FIT_ROWS,
    hold: Hold | None = None,
) -> dict[str, Any]:
    """Fit a model and return what the client needs of it; or Refused, at no cost.

    `rows` is for how many the server is made, a public number. `hold` calls what reads data (`delay_to_bucket`).
    """
    epsilon, delta = parse_number("epsilon", form.epsilon), parse_number("delta", form.delta)
    study, claim = release_fit(
        _make_estimator(form),
        form.sql,
        form.target,
        analyst,
        curator,
        epsilon,
        delta,
        request,
        form.dialect,
        replace(LIMITS, rows=rows),
        hold,
    )
    return _to_dict(study, claim)


def warn_of_rows(curator: Curator, rows: int) -> None:
    """Tell the owner, in the log, of tables that have more rows than fits are planned for."""
    for name, read in getattr(curator.engine, "tables", {}).items():
        table = curator.policy.table(name)
        if table is not None and not table.public and read.rows > rows:
            _log.warning("%s has more than %d rows: see --fit-rows, or a fit may take more memory", name, rows)


def _make_estimator(form: FitBody) -> Any:
    """The estimator with its parameters, none of which runs code."""
    if form.estimator not in ESTIMATORS:
        what = f"{form.estimator!r:.60} is none that is fitted here"
        raise ParameterError("estimator", what, fix=f"one of {', '.join(ESTIMATORS)}")
    try:
        from tacit.learn.fitted_kinds import find_kind

        kind = find_kind(form.estimator)
    except ModuleNotFoundError as error:
        extra, called = ("torch", "PyTorch") if error.name == "torch" else ("learn", "scikit-learn")
        fix = f"ask the owner of the server: {missing_extra(extra, 'a fit', called).fix}"
        raise Refused(ErrorCode.UNSUPPORTED, f"the server has no {called}", fix=fix) from None
    known = kind().get_params()
    classes = form.parameters.get("classes", [])
    if not isinstance(classes, list):
        raise ParameterError("classes", "is not a list", fix='"classes": [0, 1], say')
    LIMITS.check_classes(len(classes))
    for name in form.parameters:
        if name not in known:
            what = f"{form.estimator} has no {name!r:.60}"
            raise ParameterError("parameters", what, fix=f"there are {', '.join(sorted(known))}")
    return kind(**form.parameters)


def _to_dict(study: ChargedFit, claim: Reservation) -> dict[str, Any]:
    assert claim.stored is not None
    parameters = {name: _to_plain(value) for name, value in study.estimator.get_params().items() if name != "bits"}
    return {
        "parameters": parameters,
        "features": [feature.to_dict() for feature in study.features.all],
        "method": study.plan.name,
        "released": json.loads(claim.stored),
        "receipt": receipt_to_dict(claim.receipt),
    }


def _to_plain(value: Any) -> Any:
    """A parameter as JSON has it; exact numbers as text that says so."""
    if isinstance(value, Fraction):
        return {"exact": str(value)}
    if isinstance(value, list | tuple):
        return [_to_plain(each) for each in value]
    return value
