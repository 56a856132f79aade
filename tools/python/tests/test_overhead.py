"""The script that measures what a run costs from Python (docs/PYTHON.md) measures equal runs."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from blobs import blobs

pytest.importorskip("sklearn")


def write_idx(path, array):
    head = struct.pack(f">BBBB{array.ndim}i", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(head + array.astype("u1").tobytes())


def measured(root, tmp_path, *options):
    X, y = blobs(rows=200, features=16)
    write_idx(tmp_path / "train-images-idx3-ubyte",
              np.clip(40 * X + 128, 0, 255).reshape(200, 4, 4))
    write_idx(tmp_path / "train-labels-idx1-ubyte", y)
    script = root / "tools/scripts/python_overhead.py"
    return subprocess.run([sys.executable, script, "--data", tmp_path, "--epochs", "1",
                           "--rounds", "1", "--hidden", "8", *options],
                          capture_output=True, text=True)


def test_the_script_finds_equal_weights(root, tmp_path):
    build = Path(os.environ["TRITGRAD_PROGRAM"]).parent
    if Path(os.environ["TRITGRAD_LIBRARY"]).parent != build:
        pytest.skip("program and library are of different builds")
    done = measured(root, tmp_path, "--build", build)
    assert done.returncode == 0, done.stderr + done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()[1:4]] == ["program", "fit", "train"]
    assert "weights are equal" in done.stdout


def test_what_is_not_there_is_told(root, tmp_path):
    done = measured(root, tmp_path, "--data", tmp_path / "none")
    assert done.returncode == 2 and "fetch it first: tritgrad data fetch mnist" in done.stderr
