"""Every layer: norms and clipped sums of the book are those of gradients that are computed one example at a time."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from tests.support.deep import booked, one_by_one, private_for, relative_error, sum_of_squares
from torch import nn

from tacit.errors import ParameterError
from tacit.learn.torch import Offset, Private, add_lora, functions
from tacit.learn.torch.batches import Pass

ROWS = 5


class Tied(nn.Module):
    """A language model in small: embeddings tied to the head, positions, and a block."""

    def __init__(self, words: int = 40, width: int = 16, tokens: int = 7) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.randn(1, tokens, width))
        self.norm = nn.LayerNorm(width)
        self.hidden = nn.Linear(width, width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        h = self.embed(x) + self.positions
        return self.head(h + torch.tanh(self.hidden(self.norm(h))))


class Twice(nn.Module):
    """One linear layer, used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x):
        return self.layer(torch.tanh(self.layer(x)))


class TwiceConvolved(Twice):
    """One convolution, used twice: gradients are materialized, or not."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.layer = nn.Conv1d(size, size, 3, padding=1)


class Attention(nn.Module):
    """Attention of torch, in its variants."""

    def __init__(self, across: bool, weights: bool = False, **settings) -> None:
        super().__init__()
        self.across, self.weights = across, weights
        self.attention = nn.MultiheadAttention(8, 2, **settings)
        self.memory = nn.Linear(8, settings.get("kdim", 8))

    def forward(self, x):
        first = not self.attention.batch_first
        memory = self.memory(x)
        x, memory = (x.transpose(0, 1), memory.transpose(0, 1)) if first else (x, memory)
        keys = memory if self.across else x
        y, w = self.attention(x, keys, keys, need_weights=self.weights)
        y = y.transpose(0, 1) if first else y
        y = y if self.across else y + memory.transpose(0, 1) if first else y + memory
        return y if w is None else y + w.sum() * 0 + w.flatten(1).mean(1)[:, None, None]


class Scale(nn.Module):
    """A layer of one's own, without a rule here."""

    def __init__(self) -> None:
        super().__init__()
        self.low, self.high = nn.Parameter(torch.randn(6, 2)), nn.Parameter(torch.randn(2, 6))
        self.gain = nn.Parameter(torch.randn(6))

    def forward(self, x):
        return (x @ self.low @ self.high) * self.gain.exp()


class Gained(nn.Module):
    """Scales its input by a parameter and by another input, given in some way."""

    def __init__(self, pack) -> None:
        super().__init__()
        self.pack, self.leaf = pack, Gain()

    def forward(self, x):
        return self.leaf(x[:, 0], **self.pack(x[:, 1]))


class Gain(nn.Module):
    """Takes a tensor, or one inside of containers."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6))

    def forward(self, x, gain, times=1):
        while not isinstance(gain, torch.Tensor):
            gain = gain["gain"] if isinstance(gain, dict) else gain[0]
        return x * self.weight * gain * times


class Conv1D(nn.Module):
    """A linear layer as transformers has it in GPT-2, its matrix transposed."""

    __module__ = "transformers.pytorch_utils"

    def __init__(self, outputs: int, inputs: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs)), nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


class Normalized(nn.RMSNorm):
    """A subclass that inherits its forward is the layer that it inherits from."""


class FrozenBase(nn.Module):
    """Some parameters frozen: a weight, a bias, a whole layer."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.three = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)
        self.one.weight.requires_grad_(False)
        self.two.bias.requires_grad_(False)
        self.three.requires_grad_(False)

    def forward(self, x):
        return self.three(torch.tanh(self.two(torch.tanh(self.one(x)))))


def tokens(*shape):
    return torch.randint(0, 9, (ROWS, *shape))


def numbers(*shape):
    return torch.randn(ROWS, *shape)


def images(*shape):
    return torch.randn(ROWS, *shape)


MODELS = {
    "linear": (lambda: nn.Linear(6, 4), numbers(6)),
    "linear without bias": (lambda: nn.Linear(6, 4, bias=False), numbers(6)),
    "linear over tokens, materialized": (lambda: nn.Linear(3, 4), numbers(7, 3)),
    "linear over tokens, by Gram matrices": (lambda: nn.Linear(32, 24), numbers(3, 32)),
    "linear over two dimensions of tokens": (lambda: nn.Linear(32, 24), numbers(2, 2, 32)),
    "linear layers in a row": (lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)), numbers(6)),
    "embedding": (lambda: nn.Embedding(9, 4), tokens(6)),
    "embedding with padding": (lambda: nn.Embedding(9, 4, padding_idx=3), tokens(6)),
    "embedding of one token": (lambda: nn.Embedding(9, 4), tokens()),
    "embedding tied to the head": (Tied, tokens(7)),  # nine words, so that some are there twice
    "embedding tied to a small head": (lambda: Tied(9, 4), tokens(7)),  # materialized
    "convolution": (lambda: nn.Conv2d(2, 3, 3, padding=1), images(2, 6, 5)),
    "convolution, not materialized": (lambda: nn.Conv2d(8, 16, 3, stride=2), images(8, 5, 5)),
    "convolution, not materialized, padded and dilated": (
        lambda: nn.Conv2d(16, 32, 3, stride=(2, 1), padding=2, dilation=2),
        images(16, 5, 5),
    ),
    "convolution in groups, dilated": (lambda: nn.Conv2d(4, 6, 3, groups=2, dilation=2, padding=2), images(4, 6, 6)),
    "convolution in groups, not materialized": (lambda: nn.Conv2d(16, 32, 3, groups=2), images(16, 4, 4)),
    "convolution by channel": (lambda: nn.Conv2d(4, 4, 3, groups=4, padding="same"), images(4, 5, 5)),
    "convolution of 1 by 1 with stride": (lambda: nn.Conv2d(4, 5, 1, stride=2, bias=False), images(4, 5, 5)),
    "convolution of 1 by 1, padded": (lambda: nn.Conv2d(4, 5, 1, padding=1), images(4, 3, 3)),
    "convolution of one dimension": (lambda: nn.Conv1d(3, 4, 3, stride=2, padding=1), images(3, 9)),
    "convolution of one dimension, by Gram": (lambda: nn.Conv1d(16, 24, 3, padding=2, dilation=2), images(16, 4)),
    "convolution of three dimensions": (lambda: nn.Conv3d(2, 3, 2), images(2, 3, 3, 3)),
    "layer norm": (lambda: nn.LayerNorm(6), numbers(4, 6)),
    "layer norm of two dimensions": (lambda: nn.LayerNorm((4, 6)), numbers(4, 6)),
    "layer norm without bias": (lambda: nn.LayerNorm(6, bias=False), numbers(6)),
    "RMS norm": (lambda: Normalized(6), numbers(4, 6)),
    "RMS norm with eps": (lambda: nn.RMSNorm(6, eps=0.1), numbers(6)),
    "group norm": (lambda: nn.GroupNorm(2, 4), images(4, 3, 5)),
    "group norm of vectors": (lambda: nn.GroupNorm(2, 4), images(4)),
    "instance norm": (lambda: nn.InstanceNorm2d(4, affine=True), images(4, 3, 5)),
    "attention to itself": (lambda: Attention(False, batch_first=True), numbers(5, 8)),
    "attention, tokens first": (lambda: Attention(False), numbers(5, 8)),
    "attention across": (lambda: Attention(True, batch_first=True), numbers(4, 8)),
    "attention with weights": (lambda: Attention(True, True, batch_first=True), numbers(4, 8)),
    "attention of other widths": (lambda: Attention(True, batch_first=True, kdim=6, vdim=6), numbers(4, 8)),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), numbers(4, 8)),
    "decoder-like encoder, norm first": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, norm_first=True),
        numbers(4, 8),
    ),
    "offset": (lambda: nn.Sequential(Offset(4, 6), nn.Tanh()), numbers(4, 6)),
    "a layer of one's own": (Scale, numbers(4, 6)),
    "a tensor in a tuple": (lambda: Gained(lambda gain: {"gain": (gain,)}), numbers(2, 6)),
    "a tensor in a list in a dict": (
        lambda: Gained(lambda gain: {"gain": {"gain": [gain], "name": "gain"}, "times": 2}),
        numbers(2, 6),
    ),
    "PReLU": (lambda: nn.Sequential(nn.Linear(6, 6), nn.PReLU(6)), numbers(6)),
    "one linear layer twice": (Twice, numbers(6)),
    "one linear layer twice, over tokens": (Twice, numbers(3, 6)),
    "one convolution twice": (lambda: TwiceConvolved(2), images(2, 9)),
    "one convolution twice, by Gram": (lambda: TwiceConvolved(16), images(16, 3)),
    "linear layer of GPT-2 in transformers": (lambda: nn.Sequential(Conv1D(24, 32)), numbers(3, 32)),
    "linear layer of GPT-2 in transformers, one token": (lambda: nn.Sequential(Conv1D(24, 32)), numbers(32)),
    "frozen parts": (FrozenBase, numbers(4, 6)),
    "frozen parts, one token": (FrozenBase, numbers(6)),
    "LoRA": (lambda: add_lora(nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 3)), rank=2), numbers(4, 6)),
}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(3)


def moved(model: nn.Module) -> nn.Module:
    """The model with parameters that are no special values."""
    for parameter in model.parameters():
        with torch.no_grad():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("name", MODELS)
def test_norms_and_sums_are_those_of_single_examples(name):
    make, x = MODELS[name]
    model = moved(make())
    true = one_by_one(model, x)
    scale = torch.rand(ROWS)
    columns, sums = booked(model, x, scale)
    norms = sum(each.double().flatten(1).square().sum(1) for each in true.values())
    assert relative_error(columns[:, 0], norms) < 1e-5
    assert sums.keys() == true.keys()
    for key, each in true.items():
        weighted = (each.double() * scale.double().reshape(-1, *[1] * (each.dim() - 1))).sum(0)
        assert relative_error(sums[key], weighted) < 1e-5, key


@pytest.mark.parametrize(
    "name",
    [
        "linear over tokens, by Gram matrices",
        "embedding tied to the head",
        "convolution",
        "encoder layer",
        "group norm",
        "a layer of one's own",
        "one linear layer twice",
    ],
)
def test_several_rows_of_a_unit_are_one_gradient(name):
    make, x = MODELS[name]
    x = torch.cat([x, x.flip(0)[: ROWS - 2]])[:8]
    model = moved(make())
    true = {key: each.reshape(4, 2, *each.shape[1:]).sum(1) for key, each in one_by_one(model, x).items()}
    private = private_for(model, x, units=[n // 2 for n in range(8)], rows_per_unit=2, units_per_pass=4)
    scale = torch.rand(4)
    columns, sums = booked(model, x, scale, private=private)
    norms = sum(each.double().flatten(1).square().sum(1) for each in true.values())
    assert relative_error(columns[:, 0], norms) < 1e-5
    for key, each in true.items():
        weighted = (each.double() * scale.double().reshape(-1, *[1] * (each.dim() - 1))).sum(0)
        assert relative_error(sums[key], weighted) < 1e-5, key


@pytest.mark.parametrize(
    "name",
    [
        "linear layers in a row",
        "linear over tokens, by Gram matrices",
        "embedding tied to the head",
        "convolution",
        "convolution, not materialized",
        "layer norm",
        "encoder layer",
        "group norm",
    ],
)
def test_in_bf16_they_are_so_up_to_its_rounding(name):
    make, x = MODELS[name]
    model = moved(make())

    def losses(model, x):
        with torch.autocast("cpu", torch.bfloat16):
            return sum_of_squares(model, x)

    exact = one_by_one(model, x)
    ordinary = one_by_one(model, x, losses)
    scale = torch.rand(ROWS)
    columns, sums = booked(model, x, scale, losses)
    norms = sum(each.double().flatten(1).square().sum(1) for each in exact.values())
    assert relative_error(columns[:, 0], norms) < 0.1
    for key, each in exact.items():
        along = scale.double().reshape(-1, *[1] * (each.dim() - 1))
        weighted, theirs = (each.double() * along).sum(0), (ordinary[key].double() * along).sum(0)
        assert sums[key].dtype == torch.float32
        assert relative_error(sums[key], weighted) < 2 * relative_error(theirs, weighted) + 2.0**-7, key


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)), "1 (BatchNorm1d): mixes the examples"),
        (nn.Sequential(nn.BatchNorm1d(6, affine=False), nn.Linear(6, 6)), "0 (BatchNorm1d): mixes the examples"),
        (nn.LSTM(6, 6), "model (LSTM): has no per-example gradients"),
        (nn.utils.parametrizations.weight_norm(nn.Linear(6, 6)), "parametrized"),
        (nn.Embedding(9, 6, scale_grad_by_freq=True), "scale_grad_by_freq"),
        (nn.Conv1d(6, 6, 3, padding=1, padding_mode="circular"), "pads by other values"),
        (nn.InstanceNorm1d(6, affine=True, track_running_stats=True), "keeps statistics of the data"),
    ],
)  # fmt: skip
def test_a_layer_that_is_not_supported_is_named(model, named):
    with pytest.raises(ParameterError) as caught:
        private_for(model, numbers(6))
    assert named in str(caught.value)


def step_once(private: Private, model: nn.Module, x) -> None:
    private.begin(Pass(list(range(len(x))), torch.ones(len(x), dtype=torch.bool), True))
    private.step(sum_of_squares(model, x))


def test_a_parameter_that_is_used_outside_of_its_layer_is_named():
    class Outside(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x):
            return F.linear(self.layer(x), self.layer.weight)

    model = Outside()
    with pytest.raises(ParameterError, match=r"layer.weight: is used outside"):
        step_once(private_for(model, numbers(6)), model, numbers(6))


def test_a_parameter_that_is_not_used_is_named():
    class Unused(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.other = nn.Linear(6, 6), nn.Linear(6, 6)

        def forward(self, x):
            return self.layer(x)

    model = Unused()
    with pytest.raises(ParameterError, match=r"other.weight: is trainable, but no supported layer used it"):
        step_once(private_for(model, numbers(6)), model, numbers(6))


def test_a_parameter_beside_other_layers_is_named():
    class Beside(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.gain = nn.Linear(6, 6), nn.Parameter(torch.ones(6))

        def forward(self, x):
            return self.layer(x) * self.gain

    with pytest.raises(ParameterError, match=r"uses its parameter 'gain' of shape \(6,\) beside other layers"):
        private_for(Beside(), numbers(6))


def test_examples_that_are_not_in_the_first_dimension_are_named():
    model = nn.Sequential(nn.Flatten(0, 1), nn.Linear(6, 6), nn.Unflatten(0, (ROWS, 4)))
    with pytest.raises(ParameterError, match=r"1 \(Linear\): has an input of shape \(20, 6\)"):
        step_once(private_for(model, numbers(4, 6)), model, numbers(4, 6))


@pytest.mark.parametrize(
    ("pack", "what"),
    [
        (lambda gain: {"gain": (gain.mean(0),)}, r"leaf \(Gain\): has an input of shape \(6,\), but the batch has"),
        (lambda gain: {"gain": gain, "times": gain.mean()}, r"has an input of shape \(\), but the batch has"),
        (lambda gain: {"gain": gain, "times": gain.detach().numpy()[0]}, "of the type ndarray, which may hold rows"),
    ],
)
def test_an_input_that_is_not_of_rows_is_named(pack, what):
    # A mean over the batch that goes to every row whole shows it the rows of all others.
    model, x = Gained(pack), numbers(2, 6)
    with pytest.raises(ParameterError, match=what):
        step_once(private_for(model, x), model, x)


@pytest.mark.parametrize("name", ["linear", "convolution", "layer norm", "group norm", "RMS norm", "offset", "PReLU"])
def test_a_gradient_of_a_gradient_is_refused(name):
    # Parameters are detached in a backward pass, so a gradient penalty would lack the terms of theirs.
    make, x = MODELS[name]
    model = moved(make())

    def penalty(model, x):
        x = x.clone().requires_grad_()
        (inner,) = torch.autograd.grad(sum_of_squares(model, x).sum(), x, create_graph=True)
        return inner.flatten(1).square().sum(1)

    private = private_for(model, x)
    private.begin(Pass(list(range(ROWS)), torch.ones(ROWS, dtype=torch.bool), True))
    with pytest.raises(ParameterError, match="losses: need the gradient of a gradient"):
        private.step(penalty(model, x))


def in_backward(change):
    """A model whose gradients between two layers are changed by a hook."""

    class Hooked(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 6)

        def forward(self, x):
            h = self.first(x)
            if h.requires_grad:
                h.register_hook(change)
            return self.last(h)

    return Hooked()


MIXED = {
    "examples are mixed": lambda: nn.Sequential(nn.Linear(6, 6), Mixing(), nn.Linear(6, 6)),
    "a parameter is taken for one example only": lambda: First(6),
    "gradients are divided by their norm over the batch": lambda: in_backward(lambda g: g / g.norm()),
    "gradients are cut at a norm over the batch": lambda: in_backward(lambda g: g * (50 / g.norm()).clamp(max=1)),
}


class Mixing(nn.Module):
    """Subtracts the mean of the batch."""

    def forward(self, x):
        return x - x.mean(0)


class First(nn.Module):
    """Takes the first row of a parameter for all examples."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer, self.shift = nn.Linear(width, width), nn.Parameter(torch.randn(1, width))

    def forward(self, x):
        return self.layer(x) * self.shift[0]


@pytest.mark.parametrize("name", MIXED)
def test_the_first_pass_finds_that(name):
    model = moved(MIXED[name]())
    x = numbers(6)
    with pytest.raises(ParameterError, match="gradients of single examples differ"):
        step_once(private_for(model, x, check=True), model, x)


@pytest.mark.parametrize("name", ["linear", "layer norm", "embedding tied to the head", "convolution"])
def test_the_first_pass_finds_a_wrong_norm(name, monkeypatch):
    make, x = MODELS[name]
    for function in ("outer_columns", "square_columns", "row_columns"):
        right = getattr(functions, function)
        monkeypatch.setattr(functions, function, lambda *given, right=right: 0.9 * right(*given))
    if "tied" in name:
        monkeypatch.undo()
        from tacit.learn.torch import clipping

        monkeypatch.setattr(clipping, "cross_columns", lambda *given: torch.zeros(ROWS, 3))
    model = moved(make())
    with pytest.raises(ParameterError, match="gradients of single examples differ"):
        step_once(private_for(model, x, check=True), model, x)


def test_a_hook_that_changes_each_gradient_by_itself_is_accepted():
    model, x = in_backward(lambda g: g / (g.norm(dim=1, keepdim=True) + 0.1)), numbers(6)
    step_once(private_for(model, x, check=True), model, x)


@pytest.mark.parametrize("name", ["linear", "embedding tied to the head", "encoder layer", "convolution", "LoRA"])
def test_the_first_pass_accepts_what_is_right(name):
    make, x = MODELS[name]
    model = moved(make())
    step_once(private_for(model, x, check=True), model, x)


def test_a_closed_model_is_the_model_again():
    model = moved(Tied())
    x = tokens(7)
    before = model(x)
    private = private_for(model, x)
    assert torch.equal(model(x), before)  # outside of a step it computes what it always did
    private.close()
    assert all("forward" not in module.__dict__ for module in model.modules())
    copy.deepcopy(model)
