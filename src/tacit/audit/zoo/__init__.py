"""A zoo of mechanisms: sound ones, and the classic mistakes, each with what is true of it.

>>> reused = specimen("noise-reused")
>>> reused.says, reused.sound, reused.true
('Two counts with the same draw of noise.', False, inf)
"""

from __future__ import annotations

from difflib import get_close_matches

from tacit.audit.zoo.known_mechanism import KnownMechanism as KnownMechanism
from tacit.audit.zoo.outcomes import OUTCOMES, SOUND_OUTCOMES
from tacit.audit.zoo.selections import BROKEN_SELECTIONS
from tacit.audit.zoo.sound import CORRECT_MECHANISMS
from tacit.audit.zoo.sums import BROKEN_SUMS
from tacit.errors import ParameterError

ZOO: tuple[KnownMechanism, ...] = (*CORRECT_MECHANISMS, *SOUND_OUTCOMES, *BROKEN_SUMS, *BROKEN_SELECTIONS, *OUTCOMES)


def specimen(name: str) -> KnownMechanism:
    """Return the known mechanism of this name: a sound one, or one with a classic mistake.

    Parameters
    ----------
    name : str
        A name such as "noise-reused"; `tacit.audit.zoo.ZOO` holds all of them.

    Returns
    -------
    KnownMechanism
        The mechanism with its claim, a pair of neighbors, and the true parameter.

    Raises
    ------
    ParameterError
        If there is no such mechanism; the error names the nearest ones.

    Examples
    --------
    >>> specimen("noise-reused").sound
    False
    """
    for each in ZOO:
        if each.name == name:
            return each
    near = get_close_matches(str(name), [each.name for each in ZOO], n=3, cutoff=0.4) or [ZOO[0].name]
    raise ParameterError("name", f"there is no specimen {name!r:.60}", fix=f"did you mean {' or '.join(near)}?")


def find_specimens(name: str) -> list[KnownMechanism]:
    """Return the mechanism of this name, or all whose names have the word; ParameterError where there is none.

    >>> [found.name for found in find_specimens("laplace")]
    ['discrete-laplace', 'l2-for-laplace', 'double-laplace']
    """
    named = [each for each in ZOO if each.name == name]
    return named or [each for each in ZOO if name in each.name.split("-")] or [specimen(name)]
