"""What the library refuses, as Python's exceptions, with the library's own sentence."""

import re
from typing import NoReturn, Optional

from ._library import lib

OK, INVALID, INTERRUPTED, DIVERGED, MEMORY, NOT_FOUND = range(6)  # tg_status


class DivergedError(RuntimeError):
    """A loss, a gradient or a weight is no longer finite: the run has come to nothing."""


_EXCEPTIONS = {
    INTERRUPTED: RuntimeError,
    DIVERGED: DivergedError,
    MEMORY: MemoryError,
    NOT_FOUND: FileNotFoundError,
}


def raise_error() -> NoReturn:
    """Raises what the last failure of this thread is in Python."""
    sentence = lib.tg_error().decode("utf-8", "replace")
    sentence = sentence.replace("give rows by tg_model_check_rows()", "export(path, X=rows)")
    sentence = re.sub(r"\(--task (\w+)\)", r"(task='\1')", sentence)
    raise _EXCEPTIONS.get(lib.tg_error_status(), ValueError)(sentence)


def check(status: int) -> None:
    """Raises unless the status is TG_OK."""
    if status != OK:
        raise_error()


def made(pointer: Optional[int]) -> int:
    """Returns the handle that a function has made, or raises where it made none."""
    if not pointer:
        raise_error()
    return pointer


def text(found: Optional[bytes]) -> str:
    """Returns the text that a function has returned, or raises where it returned none."""
    if found is None:
        raise_error()
    return found.decode("utf-8", "replace")
