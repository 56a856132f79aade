"""Ctrl-C while the library works."""

import signal
import threading
from typing import Any


class Interrupt:
    """Within it Ctrl-C is a wish, `asked`, that is kept for the end of the step; whoever holds it
    looks at it once more at the end, since it may come when no step is left.

    Python runs handlers of signals between instructions of its own, so that a KeyboardInterrupt
    would be raised inside the callback of C, at its edge even where nothing could catch it. Only
    Python's own handler is replaced, and only in the main thread, which is the one that gets
    signals."""

    asked = False

    def _ask(self, *signal_and_frame: Any) -> None:
        self.asked = True

    def __enter__(self) -> "Interrupt":
        self._replaced = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._replaced:
            signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *error: object) -> None:
        if self._replaced:
            signal.signal(signal.SIGINT, signal.default_int_handler)
