"""A zoo of mechanisms: sound ones, and the classic mistakes, each with what is true of it.

>>> reused = specimen("noise-reused")
>>> reused.says, reused.sound, reused.true
('Two counts with the same draw of noise.', False, inf)
"""

from __future__ import annotations

from difflib import get_close_matches

from tacit.audit.zoo.outcomes import OUTCOMES, SOUND_OUTCOMES
from tacit.audit.zoo.selections import SELECTIONS
from tacit.audit.zoo.sound import SOUND
from tacit.audit.zoo.specimen import Specimen as Specimen
from tacit.audit.zoo.sums import SUMS
from tacit.errors import ParameterError

ZOO: tuple[Specimen, ...] = (*SOUND, *SOUND_OUTCOMES, *SUMS, *SELECTIONS, *OUTCOMES)


def specimen(name: str) -> Specimen:
    """The specimen of this name."""
    for each in ZOO:
        if each.name == name:
            return each
    near = get_close_matches(str(name), [each.name for each in ZOO], n=3, cutoff=0.4) or [ZOO[0].name]
    raise ParameterError("name", f"there is no specimen {name!r:.60}", fix=f"did you mean {' or '.join(near)}?")
