"""How the library is found, and that only the right one is taken."""

import os
import re
import subprocess
import sys

import pytest
from tritgrad import _library


def test_the_version_of_the_interface_is_that_of_the_header(root):
    header = (root / "tools/c/tritgrad.h").read_text()
    assert int(re.search(r"#define TG_ABI_VERSION (\d+)", header)[1]) == _library.ABI_VERSION


def test_every_function_of_the_package_is_in_the_header(root):
    header = re.sub(r"/\*.*?\*/", "", (root / "tools/c/tritgrad.h").read_text(), flags=re.S)
    for name, (_, arguments) in _library._SIGNATURES.items():
        declared = re.search(rf"\b{name}\(([^;]*)\);", header)
        assert declared, name
        count = 0 if declared[1] == "void" else declared[1].count(",") + 1
        assert count == len(arguments), name


def test_another_version_of_the_interface_is_refused(tmp_path):
    source = tmp_path / "other.c"
    source.write_text("int tg_abi_version(void) { return 99; }\n")
    library = tmp_path / "libtritgrad_c.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    with pytest.raises(ImportError, match="has version 99 of the C interface, version"):
        _library.load(str(library))


def test_an_unfinished_library_is_refused(tmp_path):
    source = tmp_path / "other.c"
    source.write_text(f"int tg_abi_version(void) {{ return {_library.ABI_VERSION}; }}\n")
    library = tmp_path / "libtritgrad_c.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    with pytest.raises(ImportError, match="has no function tg_version"):
        _library.load(str(library))


def test_what_is_no_library_of_tritgrad_is_refused(tmp_path):
    with pytest.raises(ImportError, match="name libtritgrad_c.so by TRITGRAD_LIBRARY"):
        _library.load(str(tmp_path / "none.so"))
    with pytest.raises(ImportError, match="tg_abi_version"):
        _library.load("libc.so.6")


def test_a_developer_s_library_comes_before_the_package_s_and_that_before_the_system_s(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("TRITGRAD_LIBRARY", "/some/where.so")
    assert _library.find() == "/some/where.so"
    monkeypatch.delenv("TRITGRAD_LIBRARY")
    monkeypatch.setattr(_library, "__file__", str(tmp_path / "_library.py"))
    assert _library.find() == f"libtritgrad_c.so.{_library.ABI_VERSION}"
    (tmp_path / "libtritgrad_c.so").touch()
    assert _library.find() == str(tmp_path / "libtritgrad_c.so")


def run(code, **variables):
    """Runs code in a fresh interpreter; returns what it printed, and what it said."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                   **variables}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True,
                          capture_output=True, text=True)
    return done.stdout, done.stderr


def python(code):
    return run(code)[0]


@pytest.mark.parametrize("given, policy, spins", [
    ({}, "PASSIVE", "2000"),
    ({"GOMP_SPINCOUNT": "77"}, "PASSIVE", "77"),
    ({"OMP_WAIT_POLICY": "active", "GOMP_SPINCOUNT": "88"}, "ACTIVE", "88"),
])
def test_threads_wait_as_those_of_the_program(given, policy, spins, monkeypatch):
    for variable in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(variable, raising=False)
    code = "import os, tritgrad; print(sorted(v for v in os.environ if v[:4] in ('OMP_', 'GOMP')))"
    printed, said = run(code, OMP_DISPLAY_ENV="verbose", **given)
    assert f"OMP_WAIT_POLICY = '{policy}'" in said and f"GOMP_SPINCOUNT = '{spins}'" in said
    # Nothing is left behind for the processes that it starts.
    assert printed.strip() == str(sorted(["OMP_DISPLAY_ENV", *given]))


def test_importing_needs_numpy_alone():
    loaded = python(
        "import sys, tritgrad; print([n for n in ('sklearn', 'pandas', 'tqdm', 'scipy', "
        "'matplotlib') if n in sys.modules])"
    )
    assert loaded.strip() == "[]"


def test_estimators_without_scikit_learn_say_what_is_missing():
    said = python(
        "import sys; sys.modules['sklearn'] = None\n"
        "import tritgrad\n"
        "try: tritgrad.TernaryClassifier\n"
        "except ImportError as error: print(error)\n"
    )
    assert said.strip() == (
        "tritgrad.TernaryClassifier needs scikit-learn, which is not installed; install "
        "python3-sklearn or scikit-learn, or use tritgrad.train()"
    )
