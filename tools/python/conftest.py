"""Tests of the package: `pytest tools/python` from the root of the repository.

They run on the sources beside this file, on the library that TRITGRAD_LIBRARY names and against the
program that TRITGRAD_PROGRAM names; else on those that were built last under build/."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _newest(name):
    found = sorted(ROOT.glob(f"build/*/{name}"), key=lambda path: path.stat().st_mtime)
    return str(found[-1]) if found else ""


for variable, file in (("LIBRARY", "libtritgrad_c.so"), ("PROGRAM", "tritgrad")):
    if not os.environ.get(f"TRITGRAD_{variable}") and _newest(file):
        os.environ[f"TRITGRAD_{variable}"] = _newest(file)


@pytest.fixture(scope="session")
def root():
    """The root of the repository."""
    return ROOT
