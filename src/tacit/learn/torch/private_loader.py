"""The batches of an epoch of private training, read by a `DataLoader`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader

from tacit.errors import ParameterError
from tacit.learn.torch.batches import PassSampler
from tacit.learn.torch.fresh_randomness import fresh_generator, seed_worker


class PrivateLoader:
    """The batches of an epoch of private training: iterate over it once for each epoch."""

    def __init__(self, private: Any) -> None:
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
            generator=fresh_generator(),
            worker_init_fn=seed_worker,
        )
        reading = iter(batches)
        try:
            while True:
                if private._iteration is not mine:
                    fix = "finish one before the next"
                    raise ParameterError("loader", "another iteration over the loader was begun", fix=fix)
                private._randomness.begin()
                batch = next(reading, _END)
                if batch is _END:
                    return
                private.begin(sampler.given.popleft())
                yield batch
        finally:
            if private._iteration is mine:  # else a later one is in the midst of a pass
                private._randomness.end()


_END: Any = object()
