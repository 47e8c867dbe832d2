"""Audits of other libraries
=========================

A count of rows, with the noise of OpenDP and of diffprivlib. From the folder that holds ``examples``, with opendp
installed::

    tacit audit callable examples.audit_peers:opendp_laplace --claim epsilon=1 --shape count
    tacit audit callable examples.audit_peers:opendp_laplace --claim epsilon=0.5 --one "[1, 1]" --other "[1]"

The first claim stands, with a bound near it. The second is too good for the noise, and is refuted.

diffprivlib 0.6 does not import with the newest scikit-learn, so give it an environment of its own::

    python -m venv peers
    peers/bin/pip install tacit-dp diffprivlib "scikit-learn==1.5.2"
    peers/bin/tacit audit callable examples.audit_peers:diffprivlib_geometric --claim epsilon=1 --shape count
    peers/bin/tacit audit callable examples.audit_peers:diffprivlib_laplace --claim epsilon=1 --one "[1, 1]" --other "[1]"

Its geometric noise stands. Its Laplace noise is refuted: it is a double added to a double, and some of the last bits of
the sum are possible for one count only (Mironov 2012).
"""  # noqa: E501 - commands stand on one line

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

EPSILON = 1.0


def opendp_laplace(data: Sequence[float], size: int) -> np.ndarray:
    """Counts of the rows, each with discrete Laplace noise by OpenDP."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    noisy = dp.m.make_laplace(*space, scale=1 / EPSILON)
    return np.array(noisy([len(data)] * size), dtype=np.float64)


def diffprivlib_geometric(data: Sequence[float], size: int) -> np.ndarray:
    """Counts of the rows, each with discrete Laplace noise by diffprivlib."""
    from diffprivlib.mechanisms import Geometric

    mechanism = Geometric(epsilon=EPSILON, sensitivity=1)
    return np.array([mechanism.randomise(len(data)) for _ in range(size)], dtype=np.float64)


def diffprivlib_laplace(data: Sequence[float], size: int) -> np.ndarray:
    """Counts of the rows, each with Laplace noise in doubles by diffprivlib."""
    from diffprivlib.mechanisms import Laplace

    mechanism = Laplace(epsilon=EPSILON, sensitivity=1)
    return np.array([mechanism.randomise(len(data)) for _ in range(size)])


def main() -> None:
    """Audit the ones whose library is installed here."""
    from importlib.util import find_spec

    from tacit.audit import Claim, audit

    for mechanism in (opendp_laplace, diffprivlib_geometric, diffprivlib_laplace):
        library = mechanism.__name__.partition("_")[0]
        if find_spec(library) is None:
            print(f"{mechanism.__name__}: {library} is not installed")
        else:
            finding = audit(mechanism, [1, 1], [1], Claim.epsilon(EPSILON), samples=20_000)
            print(f"{mechanism.__name__}: {finding}")


if __name__ == "__main__":
    main()
