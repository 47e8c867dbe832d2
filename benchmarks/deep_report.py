"""The results of `deep.py` as a section of the page on benchmarks: what `--out` wrote of each run, in deep.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report import table

RESULTS = Path(__file__).parent / "deep.json"
NAMES = {
    "plain-graph": "ordinary training",
    "plain-split-graph": "ordinary training, weight gradients in a graph of their own",
    "private-graph": "Tacit",
    "opacus-hooks": "Opacus, hooks",
    "opacus-ghost": "Opacus, ghost clipping",
    "opacus-fast": "Opacus, fast gradient clipping",
}
CASES = {  # model, batch and length: the name, the goal for the ratio, and that for memory
    ("gpt2", 64, 128): ("GPT-2 124M, 64 x 128 tokens", 0.87, 1.15),
    ("gpt2", 256, 128): ("GPT-2 124M, 256 x 128 tokens", 0.87, 1.15),
    ("gpt2", 32, 512): ("GPT-2 124M, 32 x 512 tokens", 0.82, 1.15),
    ("vit", 128, None): ("ViT-B/16, 128 images", 0.82, 1.15),
    ("mlp", 4096, None): ("784-2048-2048-10 perceptron, 4,096 rows", 0.87, None),
    ("wrn", 512, None): ("WRN-16-4 with group norms, 512 images", 0.70, None),
}


def markdown(found: dict[str, Any]) -> str:
    """The section."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    lines = [
        "## Private deep learning",
        "",
        "One step of `private.capture` beside one of ordinary training and of Opacus: bf16 matrix products by "
        "autocast, 32-bit parameters, fused AdamW. Ordinary training is compiled and one CUDA graph, with and without "
        "Tacit's way to compile; the ratio is that of the faster one to each side, and the ratio of memory is to the "
        f"one that takes less. On one {found['device']}, {versions}.",
        "",
        "Times are medians of 5 times 20 steps, 5 times 4 or 5 for Opacus. Where a side was measured twice, the table "
        "has the faster time of ordinary training and the slower one of the others. Memory is what PyTorch reserved "
        "at most. Three of a hundred rows are hidden by the mask, as after a Poisson draw.",
        "",
    ]
    cells = [["model and batch", "side", "time", "ratio", "memory", "ratio"]]
    goals = []
    for case, (name, goal, memory_goal) in CASES.items():
        arms = _arms(found["runs"], case)
        base = _base(arms)
        for key, label in NAMES.items():
            arm = arms[key]
            ratios = f"{base['ms'] / arm['ms']:.3f}", f"{arm['gib'] / base['gib']:.2f}"
            cells.append([name, label, f"{arm['ms']:.3g} ms", ratios[0], f"{arm['gib']:.2f} GiB", ratios[1]])
        goals.append(_goal(name, arms, base, goal, memory_goal))
    lines += [
        *table(cells),
        "",
        *goals,
        "",
        "For GPT-2 and ViT the sides of Tacit and of ordinary training were measured before the kernels for "
        "convolutions and for layers of one token were added. Opacus ran at starts of the machine of its own, but for "
        "the perceptron: without tied embeddings and learned positions, which it has no rule for, and not compiled, "
        "as its own loop is. No goal was set for the memory of the last two models: it is more than that of ordinary "
        "training by what all layers keep until the norms are known, and by the patches of convolutions.",
        "",
        "Compiling took 10 to 165 s a side the first time, with several compiled at once. Measured runs, but for the "
        "perceptron's, found what these had compiled, and chose the settings of kernels anew. `python "
        "benchmarks/deep.py "
        "--verify` compared the updates of small models on the same kind of machine with those of single examples: "
        "all right. The commands, with `src` and Opacus on the PYTHONPATH:",
        "",
        *(f"    {run['command']}" for run in found["runs"]),
    ]
    return "\n".join(lines) + "\n"


def _arms(runs: list[dict[str, Any]], case: tuple[str, int, int | None]) -> dict[str, dict[str, Any]]:
    """Each side of a case, of two measurements the one that favors Tacit less."""
    arms: dict[str, dict[str, Any]] = {}
    for run in runs:
        if (run["model"], run["batch"], run.get("length")) == case:
            for arm in run["results"]:
                key, choose = arm["arm"], min if arm["arm"].startswith("plain") else max
                arms[key] = choose(arms.get(key, arm), arm, key=lambda each: each["ms"])
    return arms


def _base(arms: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The least time and the least memory of ordinary training."""
    plain = [arm for key, arm in arms.items() if key.startswith("plain")]
    return {what: min(arm[what] for arm in plain) for what in ("ms", "gib")}


def _goal(name: str, arms: dict[str, Any], base: dict[str, Any], goal: float, memory_goal: float | None) -> str:
    ours = arms["private-graph"]
    ratio, memory = base["ms"] / ours["ms"], ours["gib"] / base["gib"]
    ahead = min(arm["ms"] for key, arm in arms.items() if key.startswith("opacus")) / ours["ms"]
    kept = ratio >= goal and ahead > 1 and (memory_goal is None or memory <= memory_goal)
    wanted = f"at least {goal:.2f} of ordinary training"
    wanted += "" if memory_goal is None else f", at most {memory_goal} times its memory"
    found = f"{ratio:.3f}" + ("" if memory_goal is None else f" and {memory:.2f} times")
    return f"- {name}: {wanted}. It is {found}, {ahead:.1f} times as fast as Opacus's best: {_said(kept)}."


def _said(kept: bool) -> str:
    return "kept" if kept else "missed"
