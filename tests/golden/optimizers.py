"""Writes optimizers.json: what PyTorch's optimizers make of one fp32 parameter.

    apt-get install --no-install-recommends python3-torch    # Debian 12
    /usr/bin/python3 tests/golden/optimizers.py

Only for making the file; neither the build nor the tests need PyTorch. The committed file was
made by Debian's python3-torch 1.13.1+dfsg-4 (torch.__version__ 1.13.0a0) on CPython 3.11.2.

Initial values and gradients come from an integer generator and are exact in fp32, so
tests/optim/test_golden_optimizers.cpp makes the same ones, bit for bit.
"""

import json
import os
import pathlib
import platform

# The same instructions on every x86-64 machine; read when torch is loaded.
os.environ["ATEN_CPU_CAPABILITY"] = "default"
import torch  # noqa: E402

STEPS = 100
RECORDED = (1, 2, 10, 100)
LR = 0.01

SGD = {"rule": "sgd", "weight_decay": 0.0, "momentum": 0.0, "dampening": 0.0, "nesterov": False}
ADAM = {"rule": "adam", "weight_decay": 0.0, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
ADAMW = {**ADAM, "rule": "adamw"}

# torch fills the momentum with the whole first gradient, dampening counts from the second on.
# "zero": the momentum is zero before the first step, so that the first gradient is dampened too.
CASES = {
    "sgd": SGD,
    "sgd momentum": {**SGD, "momentum": 0.9},
    "sgd momentum 0.8": {**SGD, "momentum": 0.8},
    "sgd dampening": {**SGD, "momentum": 0.9, "dampening": 0.5, "momentum_start": "zero"},
    "sgd dampening, torch's start": {
        **SGD, "momentum": 0.9, "dampening": 0.5, "momentum_start": "gradient"},
    "sgd nesterov": {**SGD, "momentum": 0.9, "nesterov": True},
    "sgd decay": {**SGD, "weight_decay": 0.1},
    "sgd momentum decay": {**SGD, "momentum": 0.9, "weight_decay": 0.1},
    "sgd nesterov decay": {**SGD, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "adam": ADAM,
    "adam decay": {**ADAM, "weight_decay": 0.1},
    "adamw": ADAMW,
    "adamw decay": {**ADAMW, "weight_decay": 0.1},
    "adamw beta1 0.8": {**ADAMW, "beta1": 0.8},
    "adamw beta2 0.95": {**ADAMW, "beta2": 0.95},
    "adamw eps 1e-6": {**ADAMW, "eps": 1e-6},
    "adamw all": {**ADAMW, "beta1": 0.95, "beta2": 0.99, "eps": 1e-4, "weight_decay": 0.2},
}  # no Lion: this version of PyTorch has none


class Numbers:
    """Multiples of 2^-10 in [-1, 1) from a linear congruential generator."""

    def __init__(self):
        self.state = 12345

    def next(self):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return ((self.state >> 21) - 1024) / 1024


def initial_values(numbers):
    """Of size 2 to 3, so that no element crosses zero, where decay would have a kink."""
    drawn = [numbers.next() for _ in range(12)]
    return [x + 2.0 if x >= 0.0 else x - 2.0 for x in drawn]


def gradient(numbers, t):
    g = [numbers.next() for _ in range(12)]
    g[7] = 0.0  # never a gradient
    g[8] = 2.0**-20  # tiny: eps counts
    g[9] *= 1024.0  # large
    g[10] = 0.5 if t % 2 == 1 else -0.5  # momentum cancels
    if t % 8 != 1:
        g[11] = 0.0  # rare
    return g


def make_optimizer(parameter, case):
    if case["rule"] == "sgd":
        optimizer = torch.optim.SGD([parameter], lr=LR, **{
            key: case[key] for key in ("weight_decay", "momentum", "dampening", "nesterov")})
        if case.get("momentum_start") == "zero":
            optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        return optimizer
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[case["rule"]]
    return kind([parameter], lr=LR, betas=(case["beta1"], case["beta2"]), eps=case["eps"],
                weight_decay=case["weight_decay"])


def exact(tensor):
    """fp32 values as the shortest decimals of 9 digits that round to them."""
    numbers = [float(f"{x:.9g}") for x in tensor.tolist()]
    assert torch.equal(torch.tensor(numbers), tensor)
    return numbers


def run(case):
    numbers = Numbers()
    parameter = torch.nn.Parameter(torch.tensor(initial_values(numbers)))
    optimizer = make_optimizer(parameter, case)
    after = {}
    for t in range(1, STEPS + 1):
        parameter.grad = torch.tensor(gradient(numbers, t))
        optimizer.step()
        if t in RECORDED:
            after[str(t)] = exact(parameter.detach())
    return after


def main():
    numbers = Numbers()
    initial = initial_values(numbers)
    gradients = [gradient(numbers, t) for t in range(1, STEPS + 1)]
    golden = {
        "made_by": "tests/golden/optimizers.py",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "lr": LR,
        "initial": initial,
        "gradients": {str(t): gradients[t - 1] for t in RECORDED},
        "cases": [{"name": name, **case, "after": run(case)} for name, case in CASES.items()],
    }
    text = json.dumps(golden, indent=1)
    # One line for each list of numbers.
    lines = []
    for line in text.split("\n"):
        number = line.strip()
        if number[0] in "-0123456789" or (number[0] == "]" and lines[-1][-1] in "0123456789"):
            lines[-1] += ("" if lines[-1][-1] == "[" or number[0] == "]" else " ") + number
        else:
            lines.append(line)
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
