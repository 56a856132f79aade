"""The text that a language model writes, on its way from C."""

import codecs
import ctypes
from typing import Any, Callable, List, Optional

from . import _library
from ._interrupt import Interrupt

Reader = Callable[[str], Any]


class TextWriter:
    """Joins bytes to text, and shows it to a reader, whose true value, like Ctrl-C, ends it.

    No exception can pass through C: the first one ends the text, and reraise() raises it."""

    def __init__(self, reader: Optional[Reader], interrupt: Interrupt) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._reader = reader
        self._interrupt = interrupt
        self._pieces: List[str] = []
        self._error: Optional[BaseException] = None
        self.function = _library.WRITER(self._write)

    def _write(self, found: Any, size: int, context: Any) -> int:
        try:
            ends = self._add(self._decoder.decode(ctypes.string_at(found, size)))
        except BaseException as raised:
            self._error = raised
            return 1
        return int(ends or self._interrupt.asked)

    def _add(self, piece: str) -> bool:
        self._pieces.append(piece)
        return bool(piece and self._reader is not None and self._reader(piece))

    def reraise(self) -> None:
        """Raises the very exception that the reader raised, if it did."""
        if self._error is not None:
            raise self._error

    def text(self) -> str:
        """Returns all of the text. Bytes that are no UTF-8 are replaced by U+FFFD."""
        self._add(self._decoder.decode(b"", final=True))
        return "".join(self._pieces)
