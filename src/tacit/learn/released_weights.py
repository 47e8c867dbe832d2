"""The released weights of a model as bytes and back, exactly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tacit.learn.base import FitPlan, PrivateLinearModel
    from tacit.learn.feature_encoding import FeatureEncoding

Array = NDArray[Any]


def encode_weights(weights: Array) -> bytes:
    """Canonical bytes of the weights: every double as its hexadecimal digits.

    >>> encode_weights(np.array([[0.5, -2.0]]))
    b'{"shape":[1,2],"weights":["0x1.0000000000000p-1","-0x1.0000000000000p+1"]}'
    """
    plain = {"shape": weights.shape, "weights": [float(number).hex() for number in weights.ravel()]}
    return json.dumps(plain, separators=(",", ":"), sort_keys=True).encode()


def decode_weights(stored: bytes) -> Array:
    """Return the weights that `encode_weights` wrote.

    >>> decode_weights(encode_weights(np.array([[0.5, -2.0]]))).tolist()
    [[0.5, -2.0]]
    """
    found = json.loads(stored)
    return np.array([float.fromhex(number) for number in found["weights"]]).reshape(found["shape"])


def restore_model(
    estimator: PrivateLinearModel, plan: FitPlan, features: FeatureEncoding, stored: bytes
) -> PrivateLinearModel:
    """Return the estimator with released weights, and with what reads rows as its fit did."""
    found = estimator.take(plan, decode_weights(stored))
    found.encoding_ = features
    return found
