"""What the library has made, and gets back."""

import threading
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional


class Handle:
    """A handle of the library. A handle is for one thread at a time, so that several threads of
    Python that use the same one take turns."""

    _what = "handle"  # in messages
    _close: Callable[[int], None]  # of the library

    _pointer: Optional[int] = None  # of an object whose making failed

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer
        self._lock = threading.RLock()
        self._uses = 0  # one within another, by functions that the library calls

    @contextmanager
    def _held(self) -> Iterator[int]:
        """Yields the pointer to the only thread that may use it meanwhile."""
        with self._lock:
            if self._pointer is None:
                raise ValueError(f"{self._what}: it is closed; make or load another one")
            self._uses += 1
            try:
                yield self._pointer
            finally:
                self._uses -= 1

    def close(self) -> None:
        """Gives the memory back; what is closed already stays so. Raises ValueError within a
        function that it calls, such as on_text."""
        if self._pointer is not None:
            with self._lock:
                if self._uses > 0:
                    raise ValueError(
                        f"{self._what}: it is at work; close it when the call has returned"
                    )
                pointer, self._pointer = self._pointer, None
                if pointer is not None:
                    type(self)._close(pointer)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
