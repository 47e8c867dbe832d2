"""Handwritten digits
==================

A small convolutional network that reads handwritten digits, trained with epsilon 3. It needs PyTorch.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tacit.learn.torch import Private


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = load_digits()
    images, labels = torch.tensor(digits.images[:, None] / 8 - 1, dtype=torch.float32), torch.tensor(digits.target)
    train = DataLoader(TensorDataset(images[:1400], labels[:1400]), batch_size=350)
    model = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    private = Private(model, optimizer, train, epsilon=3, delta=1e-5, epochs=10, clipping="automatic", rows=1400)
    for _ in range(private.epochs):
        for rows, target in private.loader:
            private.step(F.cross_entropy(model(rows), target, reduction="none"))
    right = (model(images[1400:]).argmax(1) == labels[1400:]).float().mean()
    print(f"{right:.0%} of 397 others are read, at epsilon {private.spent(1e-5):.2f}")


if __name__ == "__main__":
    main()
