"""Nothing that a call can be given ends the interpreter."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("seed", [1, 2])
def test_500_random_calls_end_in_results_or_exceptions(seed, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                   "PYTHONFAULTHANDLER": "1"}
    program = Path(__file__).with_name("random_calls.py")
    done = subprocess.run([sys.executable, program, str(seed)], env=environment, cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    made, refused = map(int, done.stdout.split())
    assert made > 50 and refused > 50 and made + refused == 500
    assert not list(tmp_path.iterdir())  # what was refused has left no file
