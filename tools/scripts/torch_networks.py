"""The networks that are compared with PyTorch's, in the forms that PyTorch 1.13 computes fastest.

A network is named by the widths of a perceptron, such as 784-1024-1024-10, as a convolutional
network, such as conv:32x32x3-32-M-64-M-10 (convolution_text.py), or as a transformer, such as
llama:4,256:ff=512:context=128 (transformer_text.py).
"""

import math

import torch
from convolution_text import parse_convolutional
from torch.nn import functional
from transformer_text import parse_transformer

BYTES = 256  # the vocabulary
RMS_EPSILON, ROTARY_BASE = 1e-6, 10000.0


def ternary(weight, matrices=1):
    """Straight-through absmean: a scale for each of the matrices that stand above each other."""
    parts = weight.view((matrices, -1) + weight.shape[1:])  # whatever the order in memory
    axes = tuple(range(1, parts.dim()))
    scale = parts.abs().mean(axes, keepdim=True).clamp(min=1e-5)
    rounded = (parts / scale).round().clamp(-1, 1) * scale
    return (parts + (rounded - parts).detach()).view_as(weight)


class TernaryLinear(torch.nn.Linear):
    """With the activations rounded too, if asked."""

    def __init__(self, inputs, outputs, bias=True, matrices=1, rounds_inputs=False):
        super().__init__(inputs, outputs, bias)
        self.matrices, self.rounds_inputs = matrices, rounds_inputs

    def forward(self, x):
        if self.rounds_inputs:
            inverse = 127.0 / x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-5)
            x = x + ((x * inverse).round().clamp(-128, 127) / inverse - x).detach()
        return functional.linear(x, ternary(self.weight, self.matrices), self.bias)


def make_linear(kind, inputs, outputs, bias=True, matrices=1):
    if kind in ("ternary QAT", "BitLinear"):
        return TernaryLinear(inputs, outputs, bias, matrices, kind == "BitLinear")
    return torch.nn.Linear(inputs, outputs, bias)


def make_perceptron(widths, kind):
    layers = []
    for inputs, outputs in zip(widths[:-2], widths[1:-1]):
        layers += [make_linear(kind, inputs, outputs, bias=False),
                   torch.nn.BatchNorm1d(outputs), torch.nn.ReLU()]
    layers.append(make_linear(kind, widths[-2], widths[-1]))
    return torch.nn.Sequential(*layers)


# ---- the convolutional network -------------------------------------------------------------------


class TernaryConv2d(torch.nn.Conv2d):
    def forward(self, x):
        return functional.conv2d(x, ternary(self.weight), None, self.stride, self.padding)


def make_convolution(kind, channels, width, stride=1):
    """Windows of 3 x 3 pixels and batch norm."""
    convolution = TernaryConv2d if kind == "ternary QAT" else torch.nn.Conv2d
    return [convolution(channels, width, 3, stride, padding=1, bias=False),
            torch.nn.BatchNorm2d(width)]


class Residual(torch.nn.Module):
    """Two convolutions, the second one without rectifier, and a sum (He et al. 2016)."""

    def __init__(self, kind, channels):
        super().__init__()
        self.inner = torch.nn.Sequential(*make_convolution(kind, channels, channels),
                                         torch.nn.ReLU(),
                                         *make_convolution(kind, channels, channels))

    def forward(self, x):
        return torch.relu(x + self.inner(x))


def make_convolutional(spec, kind):
    """The layers of a spec of parse_convolutional(), the mean over all pixels where no dense layer
    stands behind them, and a linear head. Images are [n, channels, height, width]."""
    height, width, channels = spec["image"]
    layers = []
    for letter, outputs, stride in spec["layers"]:
        if letter == "M":
            layers.append(torch.nn.MaxPool2d(2))
            height, width = height // 2, width // 2
        elif letter == "R":
            layers.append(Residual(kind, channels))
        elif letter == "F":
            layers += [torch.nn.Flatten(),
                       make_linear(kind, channels * height * width, outputs, bias=False),
                       torch.nn.BatchNorm1d(outputs), torch.nn.ReLU()]
            height, width, channels = 1, 1, outputs
        else:
            layers += make_convolution(kind, channels, outputs, stride) + [torch.nn.ReLU()]
            height, width, channels = -(-height // stride), -(-width // stride), outputs
    if spec["layers"][-1][0] != "F":
        layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()]
    layers.append(make_linear(kind, channels, spec["outputs"]))
    return torch.nn.Sequential(*layers)


# ---- the transformer -----------------------------------------------------------------------------


class RmsNormFunction(torch.autograd.Function):
    """x / rms(x) * gain; half the passes that autograd would make."""

    @staticmethod
    def forward(context, x, gain):
        mean_square = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(x.shape[-1])
        inverse = mean_square.add_(RMS_EPSILON).rsqrt_()
        normed = x * inverse
        context.save_for_backward(normed, inverse, gain)
        return normed * gain

    @staticmethod
    def backward(context, dy):
        normed, inverse, gain = context.saved_tensors
        product = dy * normed
        dgain = product.sum(0)
        mean = torch.mv(product, gain).div_(gain.shape[0]).unsqueeze_(1)
        return (dy * gain).addcmul_(normed, mean, value=-1).mul_(inverse), dgain


class RmsNorm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return RmsNormFunction.apply(x, self.gain)


def rotary_turns(tokens, size):
    """cos + i sin of every position and pair, [tokens, 1, size / 2]."""
    frequencies = ROTARY_BASE ** (-torch.arange(0, size, 2) / size)
    angles = torch.arange(tokens).unsqueeze(1) * frequencies
    return torch.polar(torch.ones_like(angles), angles).unsqueeze(1)


def rotary(x, turns):
    """x [windows, tokens, heads, size], whose neighbours (2 i, 2 i + 1) are turned."""
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))  # of bf16 there are none
    return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


class Attention(torch.nn.Module):
    """Query, key and value are one product; so are gate and up of FeedForward."""

    def __init__(self, spec, kind):
        super().__init__()
        self.heads, self.tokens, width = spec["heads"], spec["context"], spec["width"]
        self.size = width // self.heads
        self.norm = RmsNorm(width)
        self.inputs = make_linear(kind, width, 3 * width, bias=False, matrices=3)
        self.output = make_linear(kind, width, width, bias=False)
        mask = torch.full((self.tokens, self.tokens), -math.inf).triu_(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, h, turns):
        shape = (-1, self.tokens, self.heads, self.size)
        turned, value = self.inputs(self.norm(h)).split((2 * h.shape[1], h.shape[1]), dim=1)
        turned = rotary(turned.view(-1, self.tokens, 2 * self.heads, self.size), turns)
        query, key = (self.by_heads(part) for part in turned.chunk(2, dim=2))
        value = self.by_heads(value.view(shape))
        scores = torch.baddbmm(self.mask, query, key.transpose(1, 2), alpha=self.size**-0.5)
        mixed = torch.bmm(scores.softmax(-1), value).view(-1, self.heads, self.tokens, self.size)
        return self.output(mixed.transpose(1, 2).reshape_as(h))

    def by_heads(self, x):
        """[windows, tokens, heads, size] -> [windows * heads, tokens, size]"""
        return x.transpose(1, 2).reshape(-1, self.tokens, self.size)


class FeedForward(torch.nn.Module):
    def __init__(self, spec, kind):
        super().__init__()
        self.norm = RmsNorm(spec["width"])
        self.inputs = make_linear(kind, spec["width"], 2 * spec["ff"], bias=False, matrices=2)
        self.down = make_linear(kind, spec["ff"], spec["width"], bias=False)

    def forward(self, h):
        gate, up = self.inputs(self.norm(h)).chunk(2, dim=1)
        return self.down(functional.silu(gate) * up)


class Transformer(torch.nn.Module):
    def __init__(self, spec, kind):
        super().__init__()
        self.embedding = torch.nn.Embedding(BYTES, spec["width"])
        self.layers = torch.nn.ModuleList()
        for _ in range(spec["layers"]):
            self.layers.append(torch.nn.ModuleList((Attention(spec, kind),
                                                    FeedForward(spec, kind))))
        self.norm = RmsNorm(spec["width"])
        self.head = torch.nn.Linear(spec["width"], BYTES, bias=False)
        self.turns = rotary_turns(spec["context"], spec["width"] // spec["heads"])

    def forward(self, tokens):
        """tokens [windows, context] -> logits [windows * context, vocabulary]"""
        h = self.embedding(tokens.flatten())
        for attention, feed_forward in self.layers:
            h = h + attention(h, self.turns)
            h = h + feed_forward(h)
        return self.head(self.norm(h))


def make_network(model, kind, batch):
    """A network, a batch of made-up inputs for it, and labels."""
    spec = parse_transformer(model)
    if spec:
        tokens = torch.randint(BYTES, (batch, spec["context"]))
        return Transformer(spec, kind), tokens, torch.arange(tokens.numel()) % BYTES
    spec = parse_convolutional(model)
    if spec:
        height, width, channels = spec["image"]
        return (make_convolutional(spec, kind), torch.randn(batch, channels, height, width),
                torch.arange(batch) % spec["outputs"])
    widths = [int(width) for width in model.split("-")]
    return (make_perceptron(widths, kind), torch.randn(batch, widths[0]),
            torch.arange(batch) % widths[-1])
