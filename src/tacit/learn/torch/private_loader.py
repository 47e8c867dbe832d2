"""The batches of an epoch of private training, read by a `DataLoader`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

from tacit.errors import ParameterError
from tacit.learn.torch.batches import PassSampler

if TYPE_CHECKING:
    from tacit.learn.torch.private import Private


class PrivateLoader:
    """The batches of an epoch of private training: iterate over it once for each epoch."""

    def __init__(self, private: Private) -> None:
        self._private = private

    def __len__(self) -> int:
        return self._private.plan.steps_per_epoch

    def __iter__(self) -> Iterator[Any]:
        private, data = self._private, self._private._data
        mine = private._iteration = object()
        private._forget_pass()
        if private.steps_ >= private.plan.steps:
            what = f"all {private.plan.steps} planned steps are taken"
            raise ParameterError("epochs", what, fix="plan more epochs, at the privacy loss they have")
        sampler = PassSampler(private._epoch)
        batches: DataLoader[Any] = DataLoader(
            data.dataset,
            batch_sampler=sampler,
            collate_fn=data.collate_fn,
            num_workers=data.num_workers,
            pin_memory=data.pin_memory,
        )
        for batch in batches:
            if private._iteration is not mine:
                fix = "finish one before the next"
                raise ParameterError("loader", "another iteration over the loader was begun", fix=fix)
            private.begin(sampler.given.popleft())
            yield batch
