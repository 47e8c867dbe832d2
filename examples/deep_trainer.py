"""A Hugging Face Trainer
======================

The Trainer of the transformers library with private steps. A small BERT learns a rule about the first word of a
sequence, at epsilon 8. It needs PyTorch, transformers and accelerate.

Schedules, evaluation, callbacks and saving stay Trainer's. Three things are `Private`'s: the batches, which come from
`private.loader`; the step, which may take several passes; and the loss of the training rows, which is private and so is
not logged. Positions and token types are columns of the data here: layers see examples along the first dimension, and
BERT would look them up once for all rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from tacit.learn.torch import Private

WORDS, LENGTH = 50, 8


class PrivateTrainer(Trainer):
    """A Trainer whose steps are private."""

    def __init__(self, *args: Any, epsilon: float, delta: float, **settings: Any) -> None:
        super().__init__(*args, **settings)
        loader = DataLoader(self.train_dataset, batch_size=self.args.train_batch_size, collate_fn=self.data_collator)
        self.inner = super().create_optimizer()
        epochs = int(self.args.num_train_epochs)
        self.private = Private(self.model, self.inner, loader, epsilon=epsilon, delta=delta, epochs=epochs)
        self.optimizer = Scheduled(self.inner)
        self.passes = self.draw_passes()

    def draw_passes(self) -> Iterator[dict[str, Tensor]]:
        """The passes of all epochs, one after the other."""
        for _ in range(self.private.epochs):
            yield from self.private.loader

    def get_train_dataloader(self) -> list[dict[str, Tensor]]:
        """One empty batch for each step of an epoch: `training_step` takes the rows itself."""
        return [{"input_ids": torch.zeros(0, LENGTH)}] * (self.private.plan.steps // self.private.epochs)

    def training_step(self, model: nn.Module, *_: Any) -> Tensor:
        """One private step."""
        model.train()
        for planned, used in zip(self.optimizer.param_groups, self.inner.param_groups, strict=True):
            used["lr"] = planned["lr"]
        stepped = False
        while not stepped:
            rows = self._prepare_inputs(next(self.passes))
            target = rows.pop("labels")
            stepped = self.private.step(F.cross_entropy(model(**rows).logits, target, reduction="none"))
        return torch.zeros(())


class Scheduled(torch.optim.Optimizer):
    """What Trainer takes for the optimizer: the schedule sets its learning rates, and its step moves nothing."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        super().__init__([{"params": group["params"], "lr": group["lr"]} for group in inner.param_groups], {})

    def step(self, closure: Any = None) -> None:
        """`Private` has made the step."""


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    words = torch.randint(WORDS, (2500, LENGTH))
    labels = (words[:, 0] < WORDS // 2).long()
    shared = {"position_ids": torch.arange(LENGTH), "token_type_ids": torch.zeros(LENGTH, dtype=torch.long)}
    rows = [{"input_ids": ids, "labels": label, **shared} for ids, label in zip(words, labels, strict=True)]
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    model = BertForSequenceClassification(
        BertConfig(vocab_size=WORDS, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **size)
    )
    with tempfile.TemporaryDirectory() as folder:
        how = {"per_device_train_batch_size": 500, "num_train_epochs": 8, "learning_rate": 0.005, "max_grad_norm": 0.0}
        quiet = {"report_to": "none", "save_strategy": "no", "logging_strategy": "no", "disable_tqdm": True}
        arguments = TrainingArguments(folder, use_cpu=True, **how, **quiet)
        trainer = PrivateTrainer(model, arguments, train_dataset=rows[:2000], epsilon=8, delta=1e-5)
        trainer.train()
        found = trainer.predict(rows[2000:]).predictions.argmax(1)
    right = (torch.tensor(found) == labels[2000:]).float().mean()
    print(f"{right:.0%} of 500 others are right, at epsilon {trainer.private.spent(1e-5):.2f}")


if __name__ == "__main__":
    main()
