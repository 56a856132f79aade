"""The shared library behind the package: where it is found, and what its functions take.

One library serves every Python: nothing here knows a Python's own interface. The signatures are
those of tools/c/tritgrad.h.
"""

import ctypes
import os
from contextlib import contextmanager
from ctypes import c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Iterator

ABI_VERSION = 1  # TG_ABI_VERSION of the header that the signatures below are from
_SONAME = f"libtritgrad_c.so.{ABI_VERSION}"


class ProgressStruct(ctypes.Structure):
    """tg_progress."""

    _fields_ = [
        ("step", c_int64),
        ("total_steps", c_int64),
        ("epoch", c_int64),
        ("loss", c_double),
    ]


WRITER = ctypes.CFUNCTYPE(c_int, ctypes.POINTER(ctypes.c_char), c_size_t, c_void_p)
OBSERVER = ctypes.CFUNCTYPE(c_int, ctypes.POINTER(ProgressStruct), c_void_p)

_ROWS = (c_void_p, c_int, c_int64, c_int64)  # values, type, rows, features
_SIGNATURES = {  # name: (what it returns, what it takes)
    "tg_abi_version": (c_int, ()),
    "tg_version": (c_char_p, ()),
    "tg_error": (c_char_p, ()),
    "tg_error_status": (c_int, ()),
    "tg_set_threads": (c_int, (c_int,)),
    "tg_recipes": (c_char_p, ()),
    "tg_data_from_arrays": (c_void_p, (*_ROWS, c_void_p, c_int, c_char_p)),
    "tg_data_from_targets": (c_void_p, (*_ROWS, c_void_p, c_char_p)),
    "tg_data_open": (c_void_p, (c_char_p,)),
    "tg_data_describe": (c_char_p, (c_void_p,)),
    "tg_data_close": (None, (c_void_p,)),
    "tg_run_new": (c_void_p, (c_void_p, c_char_p)),
    "tg_run_observe": (c_int, (c_void_p, OBSERVER, c_void_p)),
    "tg_run_all": (c_int, (c_void_p,)),
    "tg_run_is_over": (c_int, (c_void_p,)),
    "tg_run_save": (c_int, (c_void_p, c_char_p)),
    "tg_run_model": (c_void_p, (c_void_p,)),
    "tg_run_finish": (c_char_p, (c_void_p,)),
    "tg_run_close": (None, (c_void_p,)),
    "tg_model_open": (c_void_p, (c_char_p,)),
    "tg_model_from_bytes": (c_void_p, (c_void_p, c_size_t)),
    "tg_model_describe": (c_char_p, (c_void_p,)),
    "tg_model_bytes": (c_void_p, (c_void_p, ctypes.POINTER(c_size_t))),
    "tg_model_inspect": (c_char_p, (c_void_p, c_char_p)),
    "tg_model_predict": (c_int, (c_void_p, *_ROWS, c_void_p, c_void_p, c_void_p)),
    "tg_model_check_rows": (c_int, (c_void_p, *_ROWS, c_void_p, c_void_p)),
    "tg_model_export": (c_char_p, (c_void_p, c_char_p, c_char_p)),
    "tg_model_generate": (c_int, (c_void_p, c_char_p, c_size_t, c_char_p, WRITER, c_void_p)),
    "tg_model_close": (None, (c_void_p,)),
    "tg_compare": (c_char_p, (c_void_p, c_char_p, OBSERVER, c_void_p)),
}


def find() -> str:
    """Returns what to load: the file that TRITGRAD_LIBRARY names, else the one beside this module
    (a wheel), else whatever the system's loader knows by name (a Debian package)."""
    named = os.environ.get("TRITGRAD_LIBRARY")
    if named:
        return named
    beside = Path(__file__).with_name("libtritgrad_c.so")
    return str(beside) if beside.exists() else _SONAME


# The waiting of the program (tools/cli/process_start.cpp): threads of OpenMP spin for some
# microseconds before they sleep. As it comes the run-time spins for so long that a run takes ten
# times as long beside other processes.
_WAITING = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "2000"}


@contextmanager
def _waiting_as_the_program() -> Iterator[None]:
    """Sets what the run-time of OpenMP reads when it is loaded, which the library does unless
    another one in this process has done so. Users who set a policy themselves keep theirs."""
    if "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    added = [variable for variable in _WAITING if variable not in os.environ]
    os.environ.update({variable: _WAITING[variable] for variable in added})
    try:
        yield
    finally:
        for variable in added:
            del os.environ[variable]


def load(path: str) -> ctypes.CDLL:
    """Loads a library. Raises ImportError where there is none, or one of another interface."""
    try:
        with _waiting_as_the_program():
            library = ctypes.CDLL(path)
        library.tg_abi_version.restype = c_int
        found = library.tg_abi_version()
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"the library of tritgrad cannot be loaded ({error}); install the package again, or "
            "name libtritgrad_c.so by TRITGRAD_LIBRARY"
        ) from error
    if found != ABI_VERSION:
        raise ImportError(
            f"{path} has version {found} of the C interface, version {ABI_VERSION} expected; "
            "install library and package from one release of tritgrad"
        )
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name, None)
        if function is None:
            raise ImportError(
                f"{path} has no function {name}; install library and package from one release of "
                "tritgrad"
            )
        function.restype = result
        function.argtypes = arguments
    return library


lib = load(find())


def version() -> str:
    """Returns the version of the library, such as "0.1.0"."""
    return lib.tg_version().decode()
