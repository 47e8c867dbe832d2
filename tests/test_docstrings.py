"""Docstrings of the public names: parameters as the signature has them, what is returned, an example that runs."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest
from tests.support.docstrings import find_faults, split_entries, split_sections

PACKAGES = (
    "tacit",
    "tacit.accounting",
    "tacit.attacks",
    "tacit.audit",
    "tacit.learn",
    *(["tacit.learn.torch"] if find_spec("torch") else []),  # `tests/learn/test_torch_missing.py` says where it is not
    "tacit.local",
    "tacit.mechanisms",
    "tacit.privacy",
)


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_documented(package):
    module = import_module(package)
    assert sorted(module.__all__) == list(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    faults = [fault for name in module.__all__ for fault in find_faults(f"{package}.{name}", getattr(module, name))]
    assert not faults, "\n".join(faults)


def good(epsilon: float, names: list[str]) -> int:
    """Return how many names there are.

    Parameters
    ----------
    epsilon : float
        The privacy loss to spend, above 0.
    names : list of str
        What is counted, in any order.

    Returns
    -------
    int
        The count.

    Examples
    --------
    >>> good(1.0, [])
    0
    """
    return len(names)


def bad(epsilon: float, names: list[str]) -> int:
    """Return how many names there are.

    Parameters
    ----------
    epsilon : float
        Epsilon.
    label : str
        What is counted, in any order.
    """
    return len(names)


def test_faults_are_found():
    assert not list(find_faults("good", good))
    assert list(find_faults("bad", bad)) == [
        "bad: says too little of epsilon: 'Epsilon.'",
        "bad: does not describe names",
        "bad: describes label, which it does not take",
        "bad: does not say what it returns",
        "bad: has no example",
    ]


def test_sections_and_entries_are_read():
    sections = split_sections(good.__doc__)
    assert list(sections) == ["", "Parameters", "Returns", "Examples"]
    assert split_entries(sections["Parameters"])["names"] == "What is counted, in any order."
