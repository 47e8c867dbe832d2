"""Audits of other libraries
=========================

Mechanisms of OpenDP and of diffprivlib, on two neighboring databases, against what they claim. From the folder that
holds ``examples``, with opendp installed::

    python examples/audit_peers.py
    python -c "from examples.audit_peers import main; main(20_000)"
    tacit audit callable examples.audit_peers:opendp_laplace --claim epsilon=1 --shape count
    tacit audit callable examples.audit_peers:opendp_laplace --claim epsilon=0.5 --one "[1, 1]" --other "[1]"

The first claim stands, with a bound near it. The second is too good for the noise, and is refuted.

diffprivlib 0.6 does not import with the newest scikit-learn, so give it an environment of its own::

    python -m venv peers
    peers/bin/pip install tacit-dp diffprivlib "scikit-learn==1.5.2"
    peers/bin/python examples/audit_peers.py
    peers/bin/tacit audit callable examples.audit_peers:diffprivlib_laplace --claim epsilon=1 --one "[1, 1]" --other "[1]"

Its noise on integers stands. Its noise in doubles is refuted: it is a double added to a double, and some of the last
bits of the sum are possible for one count only (Mironov 2012). Its snapping mechanism, which is made against this,
stands.
"""  # noqa: E501 - commands stand on one line

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tacit.audit import Claim

EPSILON, DELTA = 1.0, 1e-5
WITH, WITHOUT = [1, 1], [1]


def opendp_laplace(data: Sequence[float], size: int) -> np.ndarray:
    """Counts of the rows, each with discrete Laplace noise by OpenDP."""
    return _release_opendp("make_laplace", len(data), size)


def opendp_laplace_of_floats(data: Sequence[float], size: int) -> np.ndarray:
    """The same of floating-point numbers."""
    return _release_opendp("make_laplace", float(len(data)), size)


def opendp_gaussian(data: Sequence[float], size: int) -> np.ndarray:
    """Counts of the rows, each with discrete Gaussian noise of deviation 1 by OpenDP."""
    return _release_opendp("make_gaussian", len(data), size)


def opendp_gaussian_of_floats(data: Sequence[float], size: int) -> np.ndarray:
    """The same of floating-point numbers."""
    return _release_opendp("make_gaussian", float(len(data)), size)


def opendp_response(bit: bool, size: int) -> np.ndarray:
    """Randomized response by OpenDP."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    respond = dp.m.make_randomized_response_bool(prob=math.exp(EPSILON) / (1 + math.exp(EPSILON)))
    return np.array([respond(bool(bit)) for _ in range(size)], dtype=np.float64)


def _release_opendp(name: str, value: float, size: int) -> np.ndarray:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    whole = isinstance(value, int)
    kind = dp.atom_domain(T=int) if whole else dp.atom_domain(T=float, nan=False)
    metric = dp.l1_distance(T=type(value)) if name == "make_laplace" else dp.l2_distance(T=float)
    noisy = getattr(dp.m, name)(dp.vector_domain(kind), metric, scale=1 / EPSILON)
    return np.array(noisy([value] * size), dtype=np.float64)


def diffprivlib_geometric(data: Sequence[float], size: int) -> np.ndarray:
    """Counts of the rows, each with discrete Laplace noise by diffprivlib."""
    return _release_diffprivlib("Geometric", len(data), size, sensitivity=1)


def diffprivlib_laplace(data: Sequence[float], size: int) -> np.ndarray:
    """Counts of the rows, each with Laplace noise in doubles by diffprivlib."""
    return _release_diffprivlib("Laplace", len(data), size, sensitivity=1)


def diffprivlib_bounded_laplace(data: Sequence[float], size: int) -> np.ndarray:
    """The same, drawn until it is within bounds."""
    return _release_diffprivlib("LaplaceBoundedDomain", len(data), size, sensitivity=1, lower=0, upper=5)


def diffprivlib_snapping(data: Sequence[float], size: int) -> np.ndarray:
    """Counts of the rows, by diffprivlib's snapping mechanism."""
    return _release_diffprivlib("Snapping", float(len(data)), size, sensitivity=1, lower=0, upper=5)


def diffprivlib_staircase(data: Sequence[float], size: int) -> np.ndarray:
    """Counts of the rows, each with staircase noise by diffprivlib."""
    return _release_diffprivlib("Staircase", len(data), size, sensitivity=1)


def diffprivlib_gaussian(data: Sequence[float], size: int) -> np.ndarray:
    """Counts of the rows, each with Gaussian noise in doubles by diffprivlib."""
    return _release_diffprivlib("Gaussian", len(data), size, sensitivity=1, delta=DELTA)


def diffprivlib_discrete_gaussian(data: Sequence[float], size: int) -> np.ndarray:
    """Counts of the rows, each with discrete Gaussian noise by diffprivlib."""
    return _release_diffprivlib("GaussianDiscrete", len(data), size, sensitivity=1, delta=DELTA)


def diffprivlib_binary(bit: bool, size: int) -> np.ndarray:
    """Randomized response by diffprivlib."""
    found = _release_diffprivlib("Binary", str(int(bit)), size, value0="0", value1="1")
    return found.astype(np.float64)


def _release_diffprivlib(name: str, value: Any, size: int, **settings: Any) -> np.ndarray:
    from diffprivlib import mechanisms

    mechanism = getattr(mechanisms, name)(epsilon=EPSILON, **settings)
    return np.array([mechanism.randomise(value) for _ in range(size)])


def list_peers() -> list[tuple[Any, Any, Any, Claim]]:
    """Each mechanism, two neighboring inputs, and what it claims."""
    from tacit.audit import Claim

    pure, approximate, half = Claim.epsilon(EPSILON), Claim.epsilon(EPSILON, DELTA), Claim.rho(0.5)
    return [
        (opendp_laplace, WITH, WITHOUT, pure),
        (opendp_laplace_of_floats, WITH, WITHOUT, pure),
        (opendp_gaussian, WITH, WITHOUT, half),
        (opendp_gaussian_of_floats, WITH, WITHOUT, half),
        (opendp_response, True, False, pure),
        (diffprivlib_geometric, WITH, WITHOUT, pure),
        (diffprivlib_laplace, WITH, WITHOUT, pure),
        (diffprivlib_bounded_laplace, WITH, WITHOUT, pure),
        (diffprivlib_snapping, WITH, WITHOUT, pure),
        (diffprivlib_staircase, WITH, WITHOUT, pure),
        (diffprivlib_gaussian, WITH, WITHOUT, approximate),
        (diffprivlib_discrete_gaussian, WITH, WITHOUT, approximate),
        (diffprivlib_binary, True, False, pure),
    ]


def main(samples: int = 2_000) -> None:
    """Audit the ones whose library is installed here. No true claim of them is refuted in 98.7 of 100 runs."""
    from tacit.audit import audit

    for mechanism, one, other, claim in list_peers():
        library = mechanism.__name__.partition("_")[0]
        if find_spec(library) is None:
            print(f"{mechanism.__name__}: {library} is not installed")
        else:
            print(f"{mechanism.__name__}: {audit(mechanism, one, other, claim, samples=samples, confidence=0.999)}")


if __name__ == "__main__":
    main()
