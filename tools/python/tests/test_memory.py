"""Memory does not grow with the number of models."""

import os
import subprocess
import sys

CYCLES = """
import resource, sys
import numpy as np, tritgrad
draw = np.random.default_rng(0)
X, y = draw.normal(size=(400, 64)), np.arange(400) % 2
spec = {"epochs": 1, "model": "mlp:256", "recipe": "latent8"}

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

for cycle in range(200):
    model = tritgrad.train(spec, X, y, callback=lambda point: None)
    size = len(model.to_bytes())
    model.predict(X)
    if cycle == 19:
        before = resident()
del model
print(resident() - before, X.nbytes, size)
"""


def test_memory_is_flat_over_200_models():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    printed = subprocess.run([sys.executable, "-c", CYCLES], env=environment, check=True,
                             capture_output=True, text=True).stdout
    growth, data_bytes, model_bytes = map(int, printed.split())
    # The least that a cycle could leave behind is a checkpoint or a copy of the data as fp32; half
    # of that, 180 times, is far above what the allocator keeps in holes.
    smallest_leak = min(data_bytes // 2, model_bytes)
    assert growth < 180 * smallest_leak / 2
