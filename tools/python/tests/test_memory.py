"""Memory does not grow with the number of models."""

import importlib.util
import os
import subprocess
import sys

import pytest

CYCLES = """
import resource
import numpy as np, tritgrad
draw = np.random.default_rng(0)
X, y = draw.normal(size=(400, 64)), np.arange(400) % 2
spec = {{"epochs": 1, "model": "mlp:128", "recipe": "latent8"}}
warm = 20
tritgrad.set_threads(1)  # as small as it is, threads would only wait for each other

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

for cycle in range(warm + 200):
    {make}
    size = len(model.to_bytes())
    {ask}
    del made, model
    if cycle == warm - 1:
        before = resident()
print(resident() - before, X.nbytes, size)
"""
TRAIN = {"make": "made = model = tritgrad.train(spec, X, y, callback=lambda point: None)",
         "ask": "model.predict(X)"}
FIT = {"make": "made = tritgrad.TernaryClassifier(hidden=128, epochs=1, random_state=0).fit(X, y); "
               "model = made.model_",
       "ask": "made.predict(X); made.predict_proba(X)"}


@pytest.mark.parametrize("made_by", [TRAIN, FIT], ids=["train", "fit"])
def test_memory_is_flat_over_200_models_that_are_made_and_deleted(made_by):
    if made_by is FIT and importlib.util.find_spec("sklearn") is None:
        pytest.skip("scikit-learn is not installed")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    printed = subprocess.run([sys.executable, "-W", "ignore", "-c", CYCLES.format(**made_by)],
                             env=environment, check=True, capture_output=True, text=True).stdout
    growth, data_bytes, model_bytes = map(int, printed.split())
    # The least that a cycle could leave behind is a checkpoint (a byte and more for each of 8,192
    # weights) or a copy of the data as fp32. Half of that, 200 times, is far above what the
    # allocator keeps in holes, whose number does not grow with the cycles.
    smallest_leak = min(data_bytes // 2, model_bytes)
    assert smallest_leak > 8192
    assert growth < 200 * smallest_leak / 2
