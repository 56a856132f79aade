"""PyTorch's part of tools/scripts/bench_vs_torch.py, in a process of its own; prints JSON.

    torch_step.py step KIND MODEL BATCH THREADS     a training step, median in milliseconds
    torch_step.py multiply                          a product of matrices, median in seconds

KIND is fp32, bf16, "ternary QAT" or BitLinear, MODEL its widths, such as 784-1024-1024-10.
"""

import ctypes
import json
import os
import pathlib
import statistics
import sys
import time

WARM_STEPS, LEAST_STEPS, MOST_STEPS, LEAST_SECONDS = 3, 5, 50, 1.0


def peak_rss_bytes():
    """Of this program; getrusage() would remember the process that started it, too."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def loaded_blas():
    """The libraries that this process really uses, and not what any setting promises."""
    paths = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
    real = {os.path.realpath(path) for path in paths if "blas" in os.path.basename(path)}
    return sorted(real)


def core_name():
    """Whose kernels OpenBLAS uses."""
    for library in loaded_blas():
        if "openblas" in library:
            name = ctypes.CDLL(library).openblas_get_corename
            name.restype = ctypes.c_char_p
            return name().decode()
    return None


def multiply():
    """256 x 1024 x 1024 on one thread."""
    import torch

    torch.set_num_threads(1)
    x, w = torch.randn(256, 1024), torch.randn(1024, 1024)
    seconds = []
    for _ in range(50):
        start = time.perf_counter()
        x @ w
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": statistics.median(seconds), "core": core_name()}))


def make_model(torch, widths, kind):
    functional = torch.nn.functional

    class TernaryLinear(torch.nn.Linear):
        def forward(self, x):
            scale = self.weight.abs().mean().clamp(min=1e-5)
            ternary = (self.weight / scale).round().clamp(-1, 1) * scale
            weight = self.weight + (ternary - self.weight).detach()
            if kind == "BitLinear":
                inverse = 127.0 / x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-5)
                x = x + ((x * inverse).round().clamp(-128, 127) / inverse - x).detach()
            return functional.linear(x, weight, self.bias)

    linear = TernaryLinear if kind in ("ternary QAT", "BitLinear") else torch.nn.Linear
    layers = []
    for inputs, outputs in zip(widths[:-2], widths[1:-1]):
        layers += [linear(inputs, outputs, bias=False), torch.nn.BatchNorm1d(outputs),
                   torch.nn.ReLU()]
    layers.append(linear(widths[-2], widths[-1]))
    return torch.nn.Sequential(*layers)


def work(kind, model, batch, threads):
    import torch

    torch.manual_seed(1)
    torch.set_num_threads(threads)
    widths = [int(width) for width in model.split("-")]
    network = make_model(torch, widths, kind)
    x = torch.randn(batch, widths[0])
    labels = torch.arange(batch) % widths[-1]
    if kind == "bf16":
        network, x = network.bfloat16(), x.bfloat16()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, foreach=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(network(x).float(), labels)
        loss.backward()
        optimizer.step()

    for _ in range(WARM_STEPS):
        step()
    seconds = []
    while len(seconds) < LEAST_STEPS or (sum(seconds) < LEAST_SECONDS
                                         and len(seconds) < MOST_STEPS):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"ms": 1e3 * statistics.median(seconds), "steps": len(seconds),
                      "peak_rss_bytes": peak_rss_bytes(), "torch": torch.__version__,
                      "blas": loaded_blas(), "core": core_name()}))


if __name__ == "__main__":
    if sys.argv[1:] == ["multiply"]:
        multiply()
    else:
        _, _, kind, model, batch, threads = sys.argv
        work(kind, model, int(batch), int(threads))
