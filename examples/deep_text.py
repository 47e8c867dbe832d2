"""A transformer and its adapters
==============================

A transformer of characters with tied embeddings, on Python's documentation; then low-rank adapters for it. A unit is a
line of 32 characters. It needs PyTorch.
"""

from __future__ import annotations

import inspect

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tacit.learn.torch import Offset, Private, add_lora

LENGTH, WIDTH = 32, 32


class Characters(nn.Module):
    """One block of attention between an embedding and a head that shares its matrix."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(words, WIDTH), Offset(LENGTH, WIDTH)
        self.block = nn.TransformerEncoderLayer(WIDTH, 2, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.head = nn.Linear(WIDTH, words, bias=False)
        self.head.weight = self.embed.weight
        hidden = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), diagonal=1)
        self.register_buffer("hidden", hidden)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.block(self.positions(self.embed(x)), src_mask=self.hidden))
        return found


def lines() -> tuple[Tensor, int]:
    """The text in lines, as numbers of characters, and how many characters there are."""
    kinds = (str, bytes, list, dict, set, frozenset, tuple, int, float, complex, range, memoryview)
    text = " ".join(inspect.getdoc(getattr(kind, name)) or "" for kind in kinds for name in dir(kind))
    known = sorted(set(text))
    numbers = torch.tensor([known.index(each) for each in text])
    return numbers.unfold(0, LENGTH + 1, LENGTH + 1), len(known)


def compute_losses(model: nn.Module, rows: Tensor) -> Tensor:
    """The loss of each line, which is the mean over its characters."""
    return F.cross_entropy(model(rows[:, :-1]).transpose(1, 2), rows[:, 1:], reduction="none").mean(1)


def train(model: nn.Module, rows: Tensor, epochs: int) -> Private:
    """Train on the lines, and print the loss."""
    data = DataLoader(TensorDataset(rows), batch_size=200)
    wanted = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(wanted, lr=0.01)
    private = Private(model, optimizer, data, epsilon=8, delta=1e-5, epochs=epochs, rows=len(rows))
    for _ in range(epochs):
        for (batch,) in private.loader:
            private.step(compute_losses(model, batch))
    with torch.no_grad():
        loss = compute_losses(model, rows).mean()
    print(
        f"{sum(each.numel() for each in wanted):,} parameters: loss {loss:.2f} at epsilon {private.guarantee_.epsilon}"
    )
    private.close()
    return private


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows, words = lines()
    model = Characters(words)
    train(model, rows, epochs=4)
    train(add_lora(model, rank=2, layers=["linear1", "linear2"]), rows, epochs=1)


if __name__ == "__main__":
    main()
