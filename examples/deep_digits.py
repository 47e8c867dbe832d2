"""Handwritten digits
==================

A small convolutional network that reads handwritten digits, trained with epsilon 3. It needs PyTorch.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tacit.learn.torch import Private


def read_digits() -> tuple[Tensor, Tensor]:
    """Images with values from -1 to 1, and the digits that they show."""
    digits = load_digits()
    return torch.tensor(digits.images[:, None] / 8 - 1, dtype=torch.float32), torch.tensor(digits.target)


def make_network() -> nn.Module:
    """Two convolutions and a linear layer."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)),
    )


def compute_losses(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """The loss of each image."""
    return F.cross_entropy(model(images), labels, reduction="none")


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images, labels = read_digits()
    train = DataLoader(TensorDataset(images[:1400], labels[:1400]), batch_size=350)
    model = make_network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    private = Private(model, optimizer, train, epsilon=3, delta=1e-5, epochs=10, clipping="automatic", rows=1400)
    for _ in range(private.epochs):
        for rows, target in private.loader:
            private.step(compute_losses(model, rows, target))
    right = (model(images[1400:]).argmax(1) == labels[1400:]).float().mean()
    print(f"{right:.0%} of 397 others are read, at epsilon {private.spent(1e-5):.2f}")


if __name__ == "__main__":
    main()
