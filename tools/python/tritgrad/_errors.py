"""What the library refuses, as Python's exceptions, with the library's own sentence."""

import re
from typing import NoReturn, Optional

from ._library import lib

OK, INVALID, INTERRUPTED, DIVERGED, MEMORY = range(5)

# A function that returns NULL tells no code, so that these two are known by their words.
_NO_FILE = re.compile(r': no such file or directory\b|: there is no such file\b'
                      r'|^no data set or file "|: there is no folder ', re.IGNORECASE)
_NO_MEMORY = re.compile(r"^there is not enough memory$|^out of memory: ")


class DivergedError(RuntimeError):
    """A loss, a gradient or a weight is no longer finite: the run has come to nothing."""


def raise_error(status: int = INVALID) -> NoReturn:
    """Raises what the last failure of this thread is in Python."""
    sentence = lib.tg_error().decode("utf-8", "replace")
    sentence = sentence.replace("give rows by tg_model_check_rows()", "export(path, X=rows)")
    sentence = re.sub(r"\(--task (\w+)\)", r"(task='\1')", sentence)
    if status == DIVERGED:
        raise DivergedError(sentence)
    if status == MEMORY or _NO_MEMORY.search(sentence):
        raise MemoryError(sentence)
    if status == INTERRUPTED:
        raise RuntimeError(sentence)
    if _NO_FILE.search(sentence):
        raise FileNotFoundError(sentence)
    raise ValueError(sentence)


def check(status: int) -> None:
    """Raises unless the status is TG_OK."""
    if status != OK:
        raise_error(status)


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
