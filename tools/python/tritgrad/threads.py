"""How many threads the library uses."""

import operator

from ._errors import check
from ._library import lib


def set_threads(threads: int) -> None:
    """Sets the threads that every step and every prediction uses from now on, 1 to 1024; 0 is one a
    core. It is a setting of the whole process: of all runs and models, in all threads of Python.
    Results do not depend on it. Raises ValueError for other numbers."""
    number = operator.index(threads)
    if not 0 <= number <= 1024:  # C's int would wrap around
        raise ValueError(f"threads: {number} found, 0 to 1024 expected")
    check(lib.tg_set_threads(number))
