"""What a fit warns of: a stable code, what is wrong, and what to change. No text depends on a row.

>>> print(RepeatedFitWarning("two fits cost epsilon 2 together", fix="count them in a budget"))
warning [repeated-fits]: two fits cost epsilon 2 together
  fix: count them in a budget
"""

from __future__ import annotations

from typing import ClassVar


class FitWarning(UserWarning):
    """The base of what a fit warns of.

    Attributes
    ----------
    what : str
        What is wrong, in the caller's terms.
    fix : str
        What to change.
    code : str
        Stable name of the warning; the reference of errors explains each one.

    Examples
    --------
    >>> import warnings
    >>> from tacit.learn import FitWarning
    >>> warnings.simplefilter("error", FitWarning)  # fits that warn then fail, after their privacy loss is spent
    >>> warnings.simplefilter("default", FitWarning)
    """

    code: ClassVar[str] = "fit"

    def __init__(self, what: str, *, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"warning [{self.code}]: {self.what}\n  fix: {self.fix}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.fix)


class RepeatedFitWarning(FitWarning):
    """Several fits of a process were outside of a budget: if they see the same people, their losses add up.

    Attributes
    ----------
    what : str
        What the fits cost together.
    fix : str
        How to count them.

    Examples
    --------
    >>> RepeatedFitWarning.code
    'repeated-fits'
    """

    code = "repeated-fits"


class NoSignalWarning(FitWarning):
    """The noise of a fit is a fifth of all that its rows could say, or more: it has learned next to nothing.

    Where rows are too few to learn how long they are, a fourteenth is too much, unless the bounds are tight.

    It is known from what is declared, so it tells nothing of the rows.

    Attributes
    ----------
    what : str
        How large the noise is.
    fix : str
        What to change.

    Examples
    --------
    >>> NoSignalWarning.code
    'no-signal'
    """

    code = "no-signal"


def _rebuild(kind: type[FitWarning], what: str, fix: str) -> FitWarning:
    """Unpickle a warning, whose fix is a keyword."""
    return kind(what, fix=fix)
