"""The networks of the examples, audited by canaries: what is promised stands, and planted faults are caught."""

from __future__ import annotations

import importlib
import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.counts import FULL

torch = pytest.importorskip("torch")

from tacit.learn.torch import noise, unit_scaling  # noqa: E402 - only where torch is

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "examples"
NETWORKS = ["convolutions", "transformer", "adapters"]
# By 100 runs with 1,600 canaries half of the noise is caught, and by 12 with 192 a quarter of it.
STEPS = 2 if FULL else 1
RUNS, LESS = (100, 2) if FULL else (12, 4)
SEEDS = range(5 if FULL else 1)


@pytest.fixture(scope="module")
def example():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        found = importlib.import_module("deep_audit")
        patch.setattr(found, "STEPS", STEPS)
        yield found


@pytest.fixture(scope="module")
def subjects(example):
    """Each network with its canaries and the noise multiplier of what it promises."""
    return {
        each.name: (each, example.choose_canaries(each), example.find_multiplier(each))
        for each in example.make_subjects()
    }


@pytest.fixture(autouse=True)
def seeded(monkeypatch):
    """Noise that is the same in every run of the tests."""
    restart_noise(monkeypatch)


def restart_noise(patch, first=0):
    seeds = itertools.count(1000 * first)
    patch.setattr(noise, "draw_system_seed", lambda: next(seeds))


def weaken_noise(patch, less):
    """Plant a fault: the noise of sums has one `less`th of its deviation."""
    add = noise.DeviceNoise.add
    patch.setattr(noise.DeviceNoise, "add", lambda self, sums, deviation: add(self, sums, deviation / less))


def skip_clipping(patch):
    """Plant a fault: gradients enter sums as long as they are."""
    factors = unit_scaling.factors

    def keep_all(columns, mask, clip, stability):
        return mask.float(), factors(columns, mask, clip, stability)[1]

    patch.setattr(unit_scaling, "factors", keep_all)


def run_audits(example, subject, canaries, multiplier, runs=RUNS):
    promised = example.list_trainings(subject.clip, multiplier)[0]
    return [example.audit(subject, canaries, multiplier, runs, seed, **promised) for seed in SEEDS]


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_promised_is_not_refuted(example, subjects, name):
    # False alarms: at most 0.05 in each audit, by the theorem of the auditor. 1,600 canaries show about half of what
    # there is, so they are far rarer: none came in 2,000 made-up audits of the Gaussian mechanism itself.
    for found in run_audits(example, *subjects[name]):
        assert not found.is_refuted
        assert found.lower < found.claim.value < found.most_provable  # it could have been refuted


@pytest.mark.parametrize("name", NETWORKS)
def test_too_little_noise_is_caught(example, subjects, name, monkeypatch):
    # Power: half of the noise was caught in 35 of 36 audits with 1,280 canaries, and in 18 of 18 with 1,600.
    weaken_noise(monkeypatch, LESS)
    found = run_audits(example, *subjects[name])
    assert sum(each.is_refuted for each in found) >= 0.8 * len(found)


@pytest.mark.parametrize("name", NETWORKS)
def test_skipped_clipping_is_caught(example, subjects, name, monkeypatch):
    skip_clipping(monkeypatch)
    for found in run_audits(example, *subjects[name]):
        assert found.is_refuted


@pytest.mark.parametrize("name", NETWORKS)
def test_canaries_add_as_much_as_clipping_lets_through(example, subjects, name):
    # and none of them so much that the norm of the audit without clipping would clip it
    subject, canaries, _ = subjects[name]
    norms = example.find_first_gradients(replace(subject, clip=1e9), canaries).norm(dim=1)
    assert norms.min() > 2 * subject.clip and norms.max() < 40 * subject.clip
    clipped = example.find_first_gradients(subject, canaries)
    assert torch.allclose(clipped.norm(dim=1), torch.tensor(subject.clip))
    # each has most of its length in a direction of its own
    alone = torch.linalg.inv((clipped @ clipped.T).double()).diagonal().rsqrt() / subject.clip
    assert alone.min() > 0.75


@pytest.mark.parametrize("name", NETWORKS)
def test_the_options_of_the_example_are_the_planted_faults(example, subjects, name, monkeypatch):
    # with the same noise, what is released is the same but for rounding
    subject, canaries, multiplier = subjects[name]
    parts = tuple(torch.cat(pair) for pair in zip(subject.rows, canaries, strict=True))
    promised, half, free = example.list_trainings(subject.clip, multiplier)
    for options, plant in ((half, lambda patch: weaken_noise(patch, 2)), (free, skip_clipping)):
        restart_noise(monkeypatch, 1)
        shown = example.train(subject, parts, **options)[0][1]
        with pytest.MonkeyPatch.context() as patch:
            restart_noise(patch, 1)
            plant(patch)
            planted = example.train(subject, parts, **promised)[0][1]
        assert (shown - planted).norm() < 1e-3 * shown.norm()
        restart_noise(monkeypatch, 1)
        sound = example.train(subject, parts, **promised)[0][1]
        assert (shown - sound).norm() > 0.1 * shown.norm()
