"""The options of private training: which there are, what they train, and what they guarantee."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import torch
from torch import Tensor, nn

from tacit.arithmetic import Number, to_rational
from tacit.errors import ParameterError
from tacit.learn.torch.accountant import TrainingPlan

Clipping = Literal["flat", "automatic", "adaptive"]
NoiseKind = Literal["device", "exact"]


def list_trainable_parameters(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """The trainable parameters, all of which the optimizer moves, on one device."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not parameters:
        raise ParameterError(
            "model", "has no trainable parameters", fix="set requires_grad to True on what is to be learned"
        )
    moved = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and id(parameter) not in moved:
            raise ParameterError(
                name, "is trainable, but the optimizer does not move it", fix="freeze it, or hand it over"
            )
    if len({parameter.device for parameter in parameters}) > 1:
        raise ParameterError("model", "has parameters on several devices", fix="model.to(one device)")
    return parameters


def check_guarantee(
    epsilon: Number | None, delta: Number | None, multiplier: Number | None
) -> tuple[Fraction, Fraction] | None:
    """The epsilon and delta asked for, or None where a noise multiplier is given in their place."""
    if multiplier is not None:
        if epsilon is not None:
            raise ParameterError("epsilon", "is not needed beside noise_multiplier", fix="leave one of them out")
        return None
    if epsilon is None or delta is None:
        raise ParameterError("epsilon", "epsilon and delta are needed", fix="epsilon=3.0, delta=1e-6")
    asked = to_rational("epsilon", epsilon), to_rational("delta", delta)
    if not (asked[0] > 0 and 0 < asked[1] < 1):
        raise ParameterError(
            "epsilon", "epsilon must be above 0 and delta between 0 and 1", fix="epsilon=3.0, delta=1e-6"
        )
    return asked


def check_choices(clipping: str, sampling: str, noise: str, bands: int) -> None:
    """Refuse choices that do not exist, or do not go together."""
    choices = {
        "clipping": (clipping, ("flat", "automatic", "adaptive")),
        "sampling": (sampling, ("poisson", "shuffled")),
        "noise": (noise, ("device", "exact")),
    }
    for name, (value, known) in choices.items():
        if value not in known:
            raise ParameterError(name, f"is {value!r:.40}", fix=f"one of {', '.join(map(repr, known))}")
    if clipping == "adaptive" and noise == "exact":
        raise ParameterError("clipping", "adaptive clipping has no exact noise yet", fix="clipping='flat'")
    if bands > 1 and (sampling != "shuffled" or clipping == "adaptive" or noise == "exact"):
        what = "correlated noise is for shuffled batches, a fixed clipping norm and noise of the device"
        raise ParameterError("bands", what, fix="sampling='shuffled', or leave bands out")


def describe_plan(plan: TrainingPlan) -> dict[str, str]:
    """The fields of a plan as texts, to compare plans by."""
    return {name: str(value) for name, value in vars(plan).items()}
