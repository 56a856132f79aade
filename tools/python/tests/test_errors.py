"""What goes wrong in a run is an exception that Python programs expect."""

import os
import subprocess
import sys

import pytest
import tritgrad
from blobs import blobs


def test_a_run_whose_loss_is_not_finite_diverges():
    deep = "mlp:64,64,64,64,64,64:norm=none:activation=squared_relu"
    with pytest.raises(tritgrad.DivergedError, match="lower the learning rate") as found:
        tritgrad.train({"recipe": "fp32", "lr": 9e5, "model": deep}, *blobs())
    assert isinstance(found.value, RuntimeError)


TOO_LARGE = """
import resource
import tritgrad
resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
try:
    tritgrad.train({"data": "iris", "model": "mlp:1000000,1000000"})
except MemoryError as error:
    print(error)
"""


def test_a_model_that_memory_cannot_hold_is_refused():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", TOO_LARGE], env=environment, check=True,
                          capture_output=True, text=True)
    assert "memory" in done.stdout
