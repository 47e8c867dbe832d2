"""Private deep learning: any PyTorch model, trained by noisy sums of clipped per-example gradients.

`Private` takes a model, an optimizer and a loader, and gives a loop of the ordinary shape. Per-example norms come from
the one backward pass that training has anyway, so it costs little more than without privacy.
"""

from importlib.util import find_spec
from typing import Any

from tacit.extras import missing_extra
from tacit.lazy import attach

_get, __dir__, __all__ = attach(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import a name when it is asked for, where torch is there."""
    if name in __all__ and find_spec("torch") is None:
        raise missing_extra("torch", f"learn.torch.{name}", "PyTorch")
    if name.startswith("MLP") and find_spec("sklearn") is None:
        raise missing_extra("learn", f"learn.torch.{name}", "scikit-learn")
    return _get(name)
