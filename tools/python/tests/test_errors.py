"""What goes wrong in a run is an exception that Python programs expect."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tritgrad
from blobs import blobs


def test_a_run_whose_loss_is_not_finite_diverges():
    deep = "mlp:64,64,64,64,64,64:norm=none:activation=squared_relu"
    with pytest.raises(tritgrad.DivergedError, match="lower the learning rate") as found:
        tritgrad.train({"recipe": "fp32", "lr": 9e5, "model": deep}, *blobs())
    assert isinstance(found.value, RuntimeError)


def test_what_is_not_there_is_told_from_what_is_wrong(tmp_path):
    (tmp_path / "text.csv").write_text("no such file or directory")
    for missing in ("none.csv", tmp_path / "none.npz", "none.npy,none.npy", "mnst"):
        with pytest.raises(FileNotFoundError):
            tritgrad.train({"data": missing, "epochs": 1})
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        tritgrad.train({"data": "iris", "epochs": 1, "save": tmp_path / "none" / "m"})
    for wrong in (tmp_path / "text.csv", tmp_path):
        with pytest.raises(ValueError):
            tritgrad.train({"data": wrong, "epochs": 1})


def test_values_of_any_length_and_any_characters_are_told_in_a_sentence():
    with pytest.raises(ValueError, match="'data' is .*\\.\\.\\., a text expected") as found:
        tritgrad.train({"data": np.zeros((100, 100))})
    assert len(str(found.value)) < 300
    with pytest.raises(ValueError, match="a text without zero characters expected"):
        tritgrad.train({"data": "iris", "model": "mlp:4\0"})
    with pytest.raises(FileNotFoundError) as found:
        tritgrad.train({"data": "\x1b[31m\n" + 10**6 * "\u00e9"})
    sentence = str(found.value)
    assert sentence.startswith('no data set or file "?[31m?') and len(sentence) <= 1000
    assert sentence.isprintable()


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
