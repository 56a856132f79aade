"""PyTorch's part of tools/scripts/bench_vs_torch.py, in a process of its own; prints JSON.

    torch_step.py step KIND LAYOUT MODEL BATCH THREADS     a training step, median in milliseconds
    torch_step.py multiply                                 a product of matrices, median in seconds

KIND is fp32, bf16, "ternary QAT" or BitLinear, MODEL a network of torch_networks.py; BATCH counts
rows, or windows of a text. LAYOUT is planes or channels-last, of images, and of others planes.
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


def work(kind, layout, model, batch, threads):
    import torch
    from torch_networks import make_network

    torch.manual_seed(1)
    torch.set_num_threads(threads)
    network, x, labels = make_network(model, kind, batch)
    if kind == "bf16":
        network = network.bfloat16()
        x = x.bfloat16() if x.is_floating_point() else x
    if layout == "channels-last":
        network = network.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
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
        _, _, kind, layout, model, batch, threads = sys.argv
        work(kind, layout, model, int(batch), int(threads))
