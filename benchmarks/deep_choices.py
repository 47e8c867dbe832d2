"""What the settings of private training change: accuracy by epsilon, batch, epochs, clipping and learning rate.

    python benchmarks/deep_choices.py --out benchmarks/deep_choices.json        # measure
    python benchmarks/deep_choices.py --draw benchmarks/deep_choices.json       # docs/images/deep-choices.svg

The network and the data are those of `examples/deep_digits.py`: 1,400 handwritten digits to learn from, 397 others to
be read. One setting is varied at a time, the others stay those of the example. A figure is the mean of `--seeds` runs.
It needs torch and scikit-learn, and PYTHONPATH=src where Tacit is not installed; a GPU is used where there is one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROWS, DELTA = 1400, 1e-5
BASE: dict[str, Any] = {"epsilon": 3, "batch": 350, "epochs": 10, "clipping": "automatic", "clip": 1.0, "rate": 0.01}
VARIED: dict[str, list[Any]] = {
    "epsilon": [0.5, 1, 2, 3, 5, 8, None],
    "batch": [50, 100, 175, 350, 700, 1400],
    "batch at 40 steps": [35, 70, 175, 350, 700, 1400],
    "epochs": [2, 5, 10, 20, 40],
    "clip": ["automatic", "adaptive", 0.1, 0.3, 1.0, 3.0, 10.0],
    "rate": [0.001, 0.003, 0.01, 0.03, 0.1],
}
TITLES = {"epsilon": "epsilon", "batch": "batch, of 1,400", "epochs": "epochs", "rate": "learning rate of Adam"}
LABELS = {"batch": "10 epochs", "batch at 40 steps": "40 steps"}


def settings_of(name: str, value: Any) -> dict[str, Any]:
    """The base settings with one of them changed."""
    if name == "clip":
        return {**BASE, "clipping": value} if isinstance(value, str) else {**BASE, "clipping": "flat", "clip": value}
    if name == "batch at 40 steps":
        return {**BASE, "batch": value, "epochs": 40 * value // ROWS}
    return {**BASE, name: value}


def train(job: tuple[dict[str, Any], int]) -> dict[str, float]:
    """The accuracy on the rows that were left out, and the seconds that training took; epsilon None is no privacy."""
    import torch
    from sklearn.datasets import load_digits
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from tacit.learn.torch import Private

    at, seed = job
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    digits = load_digits()
    order = torch.randperm(len(digits.target))
    images = torch.tensor(digits.images[:, None] / 8 - 1, dtype=torch.float32)[order].to(device)
    labels = torch.tensor(digits.target)[order].to(device)
    model = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)),
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=at["rate"])
    plain = at["epsilon"] is None
    data = DataLoader(TensorDataset(images[:ROWS], labels[:ROWS]), batch_size=at["batch"], shuffle=plain)
    begun = time.perf_counter()
    if plain:
        for _ in range(at["epochs"]):
            for rows, target in data:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(rows), target).backward()
                optimizer.step()
    else:
        private = Private(
            *(model, optimizer, data),
            **{"epsilon": at["epsilon"], "delta": DELTA, "epochs": at["epochs"], "rows": ROWS},
            **{"clipping": at["clipping"], "clip": at["clip"]},
        )
        for _ in range(private.epochs):
            for rows, target in private.loader:
                private.step(nn.functional.cross_entropy(model(rows), target, reduction="none"))
    with torch.no_grad():
        right = (model(images[ROWS:]).argmax(1) == labels[ROWS:]).float().mean()
    return {"accuracy": float(right), "seconds": time.perf_counter() - begun}


def measure(seeds: int, processes: int) -> dict[str, Any]:
    """Every value of every setting, `seeds` times."""
    import torch

    jobs = [(name, value) for name, values in VARIED.items() for value in values]
    each = [(settings_of(name, value), seed) for name, value in jobs for seed in range(seeds)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(train, each))
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    results = []
    for number, (name, value) in enumerate(jobs):
        runs = found[number * seeds : (number + 1) * seeds]
        results.append({"varied": name, "value": value, "accuracy": [run["accuracy"] for run in runs]})
        mean, seconds = (statistics.fmean(run[figure] for run in runs) for figure in ("accuracy", "seconds"))
        print(f"{name:8s} {value!s:10s} {mean:.3f}  {seconds:.1f} s", flush=True)
    return {"torch": torch.__version__, "device": device, "base": BASE, "delta": DELTA, "results": results}


def draw(measured: dict[str, Any], target: Path) -> None:
    """One panel for each setting that is a number: the mean accuracy, with twice its standard error."""
    from tacit.pictures import open_figure

    panels = (("epsilon",), ("batch", "batch at 40 steps"), ("epochs",), ("rate",))
    with open_figure(target, "Digits that are read", "", "", size=(11, 3.2), panels=len(panels)) as drawn:
        for axes, names in zip(drawn, panels, strict=True):
            for name in names:
                points = [each for each in measured["results"] if each["varied"] == name]
                shares = [statistics.fmean(each["accuracy"]) for each in points]
                errors = [2 * statistics.stdev(each["accuracy"]) / len(each["accuracy"]) ** 0.5 for each in points]
                values = [16 if each["value"] is None else each["value"] for each in points]
                axes.errorbar(values, shares, yerr=errors, fmt="o-", capsize=3, label=LABELS.get(name))
            axes.set(xlabel=TITLES[names[0]], ylim=(0.6, 1.01), xscale="log")
            values = [each["value"] for each in measured["results"] if each["varied"] == names[0]]
            axes.set_xticks([16 if value is None else value for value in values], [_label(value) for value in values])
            axes.minorticks_off()
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")


def _label(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="where the measured values go, as JSON")
    parser.add_argument("--draw", type=Path, help="draw values that were measured before")
    parser.add_argument("--picture", type=Path, default=Path("docs/images/deep-choices.svg"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    if args.draw is not None:
        draw(json.loads(args.draw.read_text()), args.picture)
    else:
        measured = measure(args.seeds, args.processes)
        if args.out is not None:
            args.out.write_text(json.dumps(measured, indent=1) + "\n")
