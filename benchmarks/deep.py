"""Private training steps beside ordinary ones, and beside Opacus where it is installed: milliseconds and memory.

    python benchmarks/deep.py --model gpt2 --batch 64 --length 128 --out deep.json
    python benchmarks/deep.py --model mlp --batch 4096 --arms plain-graph,private-graph

Every arm takes the same steps: bf16 matrix products by autocast, 32-bit parameters, fused AdamW. A figure is the median
of `--repeats` times `--steps` steps; the ratio is that of the fastest arm without privacy to each arm. It needs torch
and scikit-learn beside what Tacit itself needs, and PYTHONPATH=src where Tacit is not installed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")  # for all arms: memory without gaps

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tacit.learn.torch import Offset, Private, norms
from tacit.learn.torch.batches import Pass

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PLAIN = ("plain-eager", "plain-compiled", "plain-graph", "plain-split-graph")
PRIVATE = ("private-eager", "private-compiled", "private-graph")
TOLERANCE = 0.02  # of an update, beside one and a half times the error of bf16 numbers
OPACUS = ("opacus-hooks", "opacus-ghost", "opacus-fast")


class Block(nn.Module):
    """A transformer block, norms first."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        rows, tokens, width = x.shape
        parts = self.qkv(self.first(x)).split(width, -1)
        q, k, v = (each.view(rows, tokens, self.heads, -1).transpose(1, 2) for each in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, tokens, width))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """GPT-2 with its embeddings tied to the head."""

    def __init__(self, layers: int, width: int, heads: int, words: int, tokens: int, tied: bool = True) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(words, width), Offset(tokens, width)
        self.blocks = nn.ModuleList(Block(width, heads, True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        nn.init.normal_(self.embed.weight, std=0.02)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, x: Tensor) -> Tensor:
        x = self.positions(self.embed(x))
        for block in self.blocks:
            x = block(x)
        found: Tensor = self.head(self.norm(x))
        return found


class Vit(nn.Module):
    """ViT-B/16 on patches, with the mean of the tokens in place of a class token."""

    def __init__(self, layers: int, width: int, heads: int, classes: int, tokens: int, patch: int = 768) -> None:
        super().__init__()
        self.patch, self.positions = nn.Linear(patch, width), Offset(tokens, width)
        self.blocks = nn.ModuleList(Block(width, heads, False) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.positions(self.patch(x))
        for block in self.blocks:
            x = block(x)
        found: Tensor = self.head(self.norm(x).mean(1))
        return found


class Wide(nn.Module):
    """A residual block of a wide network, with group norms."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = nn.GroupNorm(16, inputs), nn.GroupNorm(16, outputs)
        self.one = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        same = inputs == outputs and stride == 1
        self.skip = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.first(x))
        return self.skip(h if not isinstance(self.skip, nn.Identity) else x) + self.two(
            F.relu(self.second(self.one(h)))
        )


class Wrn(nn.Module):
    """WRN-16-4 with group norms."""

    def __init__(self, blocks: int = 2, widen: int = 4, classes: int = 10) -> None:
        super().__init__()
        widths = [16, 16 * widen, 32 * widen, 64 * widen]
        layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)]
        for group in range(3):
            for n in range(blocks):
                inputs = widths[group] if n == 0 else widths[group + 1]
                layers.append(Wide(inputs, widths[group + 1], 2 if group > 0 and n == 0 else 1))
        self.layers = nn.Sequential(*layers)
        self.norm, self.head = nn.GroupNorm(16, widths[3]), nn.Linear(widths[3], classes)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(F.relu(self.norm(self.layers(x))).mean((2, 3)))
        return found


def make(args: argparse.Namespace, tied: bool = True) -> tuple[nn.Module, Tensor, Tensor]:
    """A model, and a batch for it."""
    torch.manual_seed(0)
    tiny, batch = args.tiny, args.batch
    x: Tensor
    if args.model == "gpt2":
        size = (2, 64, 2, 128) if tiny else (12, 768, 12, 50304)
        model: nn.Module = Gpt2(*size, args.length, tied)
        x = torch.randint(0, size[3], (batch, args.length))
        y = torch.randint(0, size[3], (batch, args.length))
    elif args.model == "vit":
        size = (2, 64, 2, 10) if tiny else (12, 768, 12, 1000)
        model = Vit(*size, 196)
        x, y = torch.randn(batch, 196, 768), torch.randint(0, size[3], (batch,))
    elif args.model == "mlp":
        widths = [784, 64, 64, 10] if tiny else [784, 2048, 2048, 10]
        layers = [each for a, b in pairwise(widths) for each in (nn.Linear(a, b), nn.ReLU())][:-1]
        model, x, y = nn.Sequential(*layers), torch.randn(batch, 784), torch.randint(0, 10, (batch,))
    else:
        model = Wrn(1, 2) if tiny else Wrn()
        x, y = torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))
    model = model.to(DEVICE)
    if args.channels_last and args.model == "wrn":
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    return model, x.to(DEVICE), y.to(DEVICE)


def losses_of(model: nn.Module, short: bool = True) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss of each row, the mean over its tokens."""

    def losses(x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast(DEVICE, torch.bfloat16, enabled=short):
            logits = model(x)
        found = F.cross_entropy(logits.float().flatten(0, -2), y.flatten(), reduction="none")
        return found.view(y.shape[0], -1).mean(1)

    return losses


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(
        model.parameters(), lr=1e-4, fused=True, **({"capturable": True} if DEVICE == "cuda" else {})
    )


def graphed(step: Callable[[], None]) -> Callable[[], None]:
    """A step as one CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay() -> None:
        graph.replay()

    replay.step = step  # type: ignore[attr-defined]  # what the graph reads and writes lives as long as the graph
    return replay


def plain(args: argparse.Namespace, arm: str) -> Callable[[], None]:
    """Ordinary training."""
    model, x, y = make(args)
    optimizer, losses = optimizer_of(model), losses_of(model)

    def mean(x: Tensor, y: Tensor) -> Tensor:
        return losses(x, y).mean()

    run = mean if arm == "plain-eager" else torch.compile(mean, fullgraph=True)

    def step() -> None:
        run(x, y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return graphed(step) if arm == "plain-graph" else step


def plain_split(args: argparse.Namespace) -> Callable[[], None]:
    """Ordinary training with our compile path: weight gradients in a graph of their own, no norms."""
    from tacit.learn.torch.book import booked_parameters
    from tacit.learn.torch.clipping import clipped_sums, read_parts

    private, _, x, y, losses = private_parts(args)
    run = private.compile(losses)
    scale = torch.full((args.batch,), 1 / args.batch, device=DEVICE)

    def sums(calls: list[Any], written: list[Tensor], indices: list[Any], scale: Tensor) -> list[Tensor]:
        found = clipped_sums(read_parts(calls, written, indices), scale, clean=False)
        return [found[id(parameter)] for parameter in booked_parameters(calls)]

    compiled = torch.compile(sums, fullgraph=True)
    mask = torch.ones(args.batch, dtype=torch.bool, device=DEVICE)
    private._book.start()
    losses(x, y)
    for call in private._book.calls:
        call.alone = False  # no norms
    private._book.replay, private._pass = True, Pass([], mask, True)

    def step() -> None:
        value = run(x, y)
        _, written = private._backward(value, mask)
        calls = private._book.calls
        with torch.no_grad():
            found = compiled(calls, written, [call.indices for call in calls], scale)
        for parameter, gradient in zip(booked_parameters(calls), found, strict=True):
            parameter.grad = gradient
        private.optimizer.step()
        private.optimizer.zero_grad(set_to_none=True)

    return graphed(step) if DEVICE == "cuda" else step


def private_parts(
    args: argparse.Namespace, kind: Callable[..., torch.optim.Optimizer] | None = None
) -> tuple[Private, nn.Module, Tensor, Tensor, Any]:
    model, x, y = make(args)
    data = DataLoader(TensorDataset(torch.zeros(100 * args.batch, 1)), batch_size=args.batch)
    private = Private(
        *(model, optimizer_of(model) if kind is None else kind(model.parameters()), data),
        noise_multiplier=1.0,
        epochs=10**6,
        units_per_pass=args.batch,
        check=args.check,
    )
    return private, model, x, y, losses_of(model)


def private(args: argparse.Namespace, arm: str) -> Callable[[], None]:
    """Ours: three of a hundred rows hidden by the mask, as after a Poisson draw."""
    private, _, x, y, losses = private_parts(args)
    mask = torch.rand(args.batch) < 0.97
    given = Pass([], mask.to(DEVICE), True)
    private.begin(given)
    if arm == "private-graph":
        captured = private.capture(losses, x, y)
        private._pass = None

        def step() -> None:
            private.begin(given)
            captured(*captured.inputs)  # nothing is copied in any arm
    else:
        run = losses if arm == "private-eager" else private.compile(losses)
        private._pass = None

        def step() -> None:
            private.begin(given)
            private.step(run(x, y))

    return step


def opacus(args: argparse.Namespace, arm: str) -> Callable[[], None]:
    """Opacus, as its own loop has it; without tied weights, which it does not support."""
    from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    model, x, y = make(args, tied=False)
    model = untie_offsets(model)
    base = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    settings = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": args.batch}
    if arm == "opacus-hooks":
        wrapped = GradSampleModule(model)
        optimizer = DPOptimizer(base, **settings)
        losses = losses_of(wrapped)

        def step() -> None:
            losses(x, y).mean().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        return step
    wrapped = GradSampleModuleFastGradientClipping(model, max_grad_norm=1.0, use_ghost_clipping=arm == "opacus-ghost")
    optimizer = DPOptimizerFastGradientClipping(base, **settings)

    def per_row(logits: Tensor, target: Tensor) -> Tensor:
        found = F.cross_entropy(logits.float().flatten(0, -2), target.flatten(), reduction="none")
        return found.view(target.shape[0], -1).mean(1)

    per_row.reduction = "mean"  # type: ignore[attr-defined]  # what Opacus asks a criterion for
    criterion = DPLossFastGradientClipping(wrapped, optimizer, per_row, "mean")

    def step() -> None:
        with torch.autocast(DEVICE, torch.bfloat16):
            logits = wrapped(x)
        loss = criterion(logits, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def untie_offsets(model: nn.Module) -> nn.Module:
    """Opacus has no rule for `Offset`: positions that are not learned in its arms, which favors it a little."""
    for module in model.modules():
        if isinstance(module, Offset):
            module.requires_grad_(False)
    return model


def verify(args: argparse.Namespace) -> bool:
    """Small models on this device: updates of every arm against one example at a time, and the noise."""
    args.tiny, args.check = True, True
    right = True
    for model in args.models.split(","):
        args.model, args.batch, args.length = model, 8, 80
        single, exact = clipped_one_by_one(args), clipped_one_by_one(args, short=False)
        allowed = [1.5 * (a - b).norm() / b.norm() + TOLERANCE for a, b in zip(single, exact, strict=True)]
        for arm in ("private-eager", "private-compiled", "private-graph")[: 3 if DEVICE == "cuda" else 2]:
            found = one_update(args, arm)
            far = max(float((a - b).norm() / b.norm()) for a, b in zip(found, single, strict=True))
            errors = [(a - b).norm() / b.norm() for a, b in zip(found, exact, strict=True)]
            share = max(float(a / b) for a, b in zip(errors, allowed, strict=True))
            right &= share < 1
            print(f"{args.model:5s} {arm:17s} farthest parameter from single examples in bf16: {far:.4f}", end="")
            print(f", from those in 32 bits: {float(max(errors)):.4f}, {share:.2f} of what is allowed", flush=True)
            clear()
    right &= verify_sums() and verify_noise()
    print("all right" if right else "WRONG")
    return right


def verify_sums() -> bool:
    """Scaled rows and their sum, against 64-bit ones."""
    from tacit.learn.torch.products import scaled_rows

    right = True
    for rows, columns, dtype in ((4096, 2048, torch.bfloat16), (3001, 777, torch.float32), (512, 512, torch.float16)):
        x, scale = torch.randn(rows, columns, device=DEVICE, dtype=dtype), torch.rand(rows, device=DEVICE)
        scaled, total = scaled_rows(x, scale)
        exact = scale.double()[:, None] * x.double()
        same = torch.equal(scaled, (x.float() * scale[:, None]).to(dtype))
        error = float((total - exact.sum(0)).norm() / exact.sum(0).norm())
        print(f"scaled rows of {rows} x {columns} {dtype}: same {same}, relative error of the sum {error:.1e}")
        right &= same and error < 1e-5
    return right


def verify_noise() -> bool:
    """Moments of the noise, each within eight deviations, and that both ways to launch it add the same."""
    from tacit.learn.torch.noise import DeviceNoise

    device = torch.device(DEVICE)
    noise, zeros = DeviceNoise(device), [torch.zeros(10**7, device=DEVICE) for _ in range(2)]
    before = None if DEVICE == "cpu" else (noise._state.clone(), noise.generator.get_state())
    noise.add(zeros, torch.tensor(2.0, device=DEVICE))
    again = [torch.zeros(10**7, device=DEVICE) for _ in range(2)]
    noise.add(again, 2.0)
    x, y, z = zeros[0] / 2, zeros[1] / 2, again[0] / 2
    moments = [float(each) for each in (x.mean(), x.std() - 1, (x**3).mean(), (x**4).mean() - 3)]
    products = [float((x * y).mean()), float((x * z).mean()), float((x[1:] * x[:-1]).mean())]
    print("noise: mean, deviation - 1, third, fourth - 3, largest:", *(f"{each:.5f}" for each in moments))
    print("correlations of tensors, calls, and neighbors:", products, "largest:", float(x.abs().max()))
    deviations = [1.0, 0.5**0.5, 15**0.5, 96**0.5, 1.0, 1.0, 1.0]
    right = all(abs(m) < 8 * d / 10**3.5 for m, d in zip([*moments, *products], deviations, strict=True))
    if before is None:
        return right
    same = [torch.zeros(10**7, device=DEVICE) for _ in range(2)]
    noise._state.copy_(before[0])
    noise.generator.set_state(before[1])
    noise.prepare(same)
    noise.add(same, 2.0)
    return right and all(torch.equal(a, b) for a, b in zip(zeros, same, strict=True))


class Recorder(torch.optim.Optimizer):
    """Keeps the gradients that it is given, and moves nothing."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(list(parameters), {})
        self.seen = [torch.zeros_like(p) for p in self.param_groups[0]["params"]]

    def step(self, closure: Any = None) -> None:
        for mine, parameter in zip(self.seen, self.param_groups[0]["params"], strict=True):
            mine.copy_(parameter.grad)


def one_update(args: argparse.Namespace, arm: str) -> list[Tensor]:
    """The gradients of one step without noise."""
    private, _, x, y, losses = private_parts(args, Recorder)
    private._multiplier = 0.0
    given = Pass([], torch.arange(args.batch, device=DEVICE) != 3, True)
    private.begin(given)
    if arm == "private-graph":
        step = private.capture(losses, x, y)
        step(x, y)
    else:
        private.step((losses if arm == "private-eager" else private.compile(losses))(x, y))
    found = [each.clone() for each in private.optimizer.seen]  # type: ignore[attr-defined]  # of Recorder
    private.close()
    return found


def clipped_one_by_one(args: argparse.Namespace, short: bool = True) -> list[Tensor]:
    """The same by a backward pass for each example, in bf16 or in 32 bits."""
    model, x, y = make(args)
    losses, parameters = losses_of(model, short), list(model.parameters())
    total = [torch.zeros_like(p) for p in parameters]
    for n in range(args.batch):
        if n != 3:
            gradients = torch.autograd.grad(losses(x[n : n + 1], y[n : n + 1]).sum(), parameters)
            norm = torch.stack([each.float().square().sum() for each in gradients]).sum().sqrt()
            for mine, gradient in zip(total, gradients, strict=True):
                mine.add_(gradient * (1 / norm).clamp(max=1.0) / args.batch)
    return total


def measure(step: Callable[[], None], args: argparse.Namespace, steps: int) -> tuple[float, float]:
    """Milliseconds of a step, and the most memory in GiB."""
    for _ in range(args.warm):
        step()
    times = []
    if DEVICE == "cpu":
        for _ in range(args.repeats):
            start = time.perf_counter()
            for _ in range(steps):
                step()
            times.append((time.perf_counter() - start) / steps * 1e3)
        return statistics.median(times), 0.0
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    step()
    for _ in range(args.repeats):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(steps):
            step()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) / steps)
    return statistics.median(times), torch.cuda.max_memory_reserved() / 2**30


def run(args: argparse.Namespace, arm: str) -> dict[str, Any]:
    """The figures of one arm, or why it has none."""
    start = time.perf_counter()
    try:
        if arm == "plain-split-graph":
            step = plain_split(args)
        else:
            kind = {"plain": plain, "private": private, "opacus": opacus}[arm.split("-", maxsplit=1)[0]]
            step = kind(args, arm)
        step()
        set_up = time.perf_counter() - start
        steps = args.opacus_steps if arm in OPACUS else args.steps
        milliseconds, memory = measure(step, args, steps)
        return {"arm": arm, "ms": milliseconds, "gib": memory, "set_up_s": set_up}
    except Exception as error:  # an arm that fails is a line of the table
        traceback.print_exc(limit=8 if args.verbose else 2, file=sys.stderr)
        return {"arm": arm, "error": f"{type(error).__name__}: {error}"[:300]}


def clear() -> None:
    gc.collect()
    torch._dynamo.reset()
    if DEVICE == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def table(results: list[dict[str, Any]]) -> str:
    """The figures as text, with ratios to the fastest arm without privacy."""
    base = [each for each in results if each["arm"].startswith("plain") and "ms" in each]
    fastest = min(base, key=lambda each: each["ms"]) if base else None
    lines = [f"{'arm':20s} {'ms':>9s} {'ratio':>6s} {'GiB':>7s} {'memory':>7s} {'set-up s':>9s}"]
    for each in results:
        if "ms" not in each:
            lines.append(f"{each['arm']:20s} {each['error']}")
            continue
        ratio = fastest["ms"] / each["ms"] if fastest else float("nan")
        memory = each["gib"] / fastest["gib"] if fastest and fastest["gib"] else float("nan")
        lines.append(
            f"{each['arm']:20s} {each['ms']:9.3f} {ratio:6.3f} {each['gib']:7.2f} {memory:7.2f} {each['set_up_s']:9.1f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("gpt2", "vit", "mlp", "wrn"), default="gpt2")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--arms", default=None, help="separated by commas; all that can run where left out")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--opacus-steps", type=int, default=20, help="the same for the arms of Opacus, which take long")
    parser.add_argument("--warm", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None, help="a JSON file")
    parser.add_argument("--tiny", action="store_true", help="a model of the same kind that a CPU trains")
    parser.add_argument("--check", action="store_true", help="check the first pass of our arms, as `Private` does")
    parser.add_argument("--materialized", type=float, default=None, help="tacit.learn.torch.norms.MATERIALIZED")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--verify", action="store_true", help="check every arm on this device, and measure nothing")
    parser.add_argument("--models", default="gpt2,vit,mlp,wrn", help="which ones to check")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    if args.verify:
        raise SystemExit(0 if verify(args) else 1)
    if args.materialized is not None:
        norms.MATERIALIZED = args.materialized
    arms = args.arms.split(",") if args.arms else [*PLAIN, *PRIVATE, *OPACUS]
    if DEVICE == "cpu":
        arms = [arm for arm in arms if "graph" not in arm or arm == "plain-split-graph"]
    results = []
    for arm in arms:
        results.append(run(args, arm))
        print(results[-1], flush=True)
        clear()
    named = torch.cuda.get_device_name() if DEVICE == "cuda" else "CPU"
    case = {"model": args.model, "batch": args.batch, "length": args.length, "device": named}
    print(f"\n{case} torch {torch.__version__}\n{table(results)}")
    if args.out is not None:
        args.out.write_text(json.dumps({**case, "torch": torch.__version__, "results": results}, indent=1) + "\n")
    if os.environ.get("OUT") and args.out is None:
        name = f"deep-{args.model}-{args.batch}x{args.length}.json"
        Path(os.environ["OUT"], name).write_text(json.dumps({**case, "torch": torch.__version__, "results": results}))


if __name__ == "__main__":
    main()
