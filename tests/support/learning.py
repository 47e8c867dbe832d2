"""A method of `tacit.learn` calibrated to a task that is written out."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import Any

from tacit.learn.method import LearningTask

_FACTS = {field.name for field in fields(LearningTask)}


def calibrate(kind: Any, epsilon: Fraction, delta: Fraction, **settings: Any) -> Any:
    """Return the method for these facts; settings that are no facts are the method's own."""
    facts = {name: value for name, value in settings.items() if name in _FACTS}
    tuning = {name: value for name, value in settings.items() if name not in _FACTS}
    return kind.calibrate(LearningTask(epsilon, delta, **facts), **tuning)
