"""A model that a served curator fitted, as the estimator that was asked for.

The server sends the released weights and public facts. The rest of a fitted estimator is computed here, by the code
that a local fit runs (`learn/released_weights.py`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.client.arrow_stream import receipt_from_dict
from tacit.client.views import OTHER_SHAPES
from tacit.errors import ErrorCode, ParameterError, Refused

if TYPE_CHECKING:
    from tacit.learn.base import PrivateLinearModel

Model = TypeVar("Model", bound="PrivateLinearModel")
_EXACT = re.compile(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?", re.ASCII)


def encode_estimator(estimator: Any) -> dict[str, Any]:
    """The name of an estimator of tacit.learn and its parameters that differ from the defaults, as JSON has them."""
    kind = type(estimator)
    if not kind.__module__.startswith("tacit.learn."):
        what = f"a {kind.__name__} is none that the curator knows to be private"
        raise ParameterError("estimator", what, fix="use one of tacit.learn, LogisticRegression() say")
    usual = kind().get_params()
    given = {name: value for name, value in estimator.get_params().items() if value is not usual[name]}
    return {"estimator": kind.__name__, "parameters": {name: _to_json(name, value) for name, value in given.items()}}


def restore_estimator(estimator: Model, found: Mapping[str, Any]) -> Model:
    """A fitted copy of the estimator, of what `serve/fit_requests.py` wrote."""
    from sklearn.base import clone

    from tacit.learn.feature_encoding import Feature, FeatureEncoding
    from tacit.learn.released_weights import restore_model

    try:
        features = FeatureEncoding(tuple(Feature.from_dict(each) for each in found["features"]))
        ready: Model = clone(estimator).set_params(
            **{name: _from_json(value) for name, value in found["parameters"].items()}
        )
        plan = ready.plan(len(features.names))
        if plan.name != found["method"]:
            raise ValueError(plan.name)
        _check_weights(found["released"])
        fitted = restore_model(ready, plan, features, json.dumps(found["released"]).encode())
        fitted.receipt_ = receipt_from_dict(found["receipt"])
    except OTHER_SHAPES as error:
        fix = "check the address: is it a Tacit server of this version?"
        raise Refused(ErrorCode.PROTOCOL, "what came back is no model of Tacit's", fix=fix) from error
    return fitted


def _to_json(name: str, value: Any) -> Any:
    """A parameter as JSON has it."""
    if hasattr(value, "tolist"):  # numpy's arrays and numbers
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_to_json(name, each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ParameterError("estimator", f"{name} cannot be sent to a server", fix=f"leave {name} out")


def _check_weights(released: Mapping[str, Any]) -> None:
    """Raise where released weights are not finite numbers of the shape that they say."""
    numbers = [float.fromhex(number) for number in released["weights"]]
    if not all(map(math.isfinite, numbers)) or math.prod(released["shape"]) != len(numbers):
        raise ValueError("weights")


def _from_json(value: Any) -> Any:
    """A parameter as an estimator has it. Exact numbers are fractions of digits, without an exponent."""
    if isinstance(value, Mapping):
        if not _EXACT.fullmatch(value["exact"]):
            raise ValueError(value)
        return Fraction(value["exact"])
    return [_from_json(each) for each in value] if isinstance(value, list) else value
