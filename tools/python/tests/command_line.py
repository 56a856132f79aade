"""The command line, beside which the package is tested."""

import json
import os
import subprocess

import numpy as np


def run(*arguments, check=True):
    """Runs the program; returns what it has printed, and what it has said."""
    program = os.environ["TRITGRAD_PROGRAM"]
    done = subprocess.run(
        [program, *map(str, arguments)], capture_output=True, encoding="utf-8", errors="replace"
    )
    assert not check or done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def json_of(*arguments):
    """Returns what `--json -` prints."""
    return json.loads(run(*arguments, "--json", "-")[0])


def refusal(*arguments):
    """Returns the sentence by which the program refuses something."""
    output, said = run(*arguments, check=False)
    assert not output
    return said.strip().split("tritgrad: ", 1)[-1].removeprefix("error: ")


def saved(folder, X, y):
    """Writes arrays; returns what --data takes for them."""
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", y)
    return f"{folder / 'x.npy'},{folder / 'y.npy'}"
