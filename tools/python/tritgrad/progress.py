"""Progress on the screen."""

import sys
import time
from typing import Any, Optional

from ._observer import Progress


class _Line:
    """One line of standard error that is written again and again, ten times a second at most. Where
    no terminal and no notebook reads it, only its last state is written."""

    def __init__(self) -> None:
        self._text = ""
        self._next = 0.0
        self._again = sys.stderr.isatty() or "ipykernel" in sys.modules

    def update(self, at: Progress) -> None:
        share = 100 * at.step // max(at.total_steps, 1)
        self._text = f"step {at.step} of {at.total_steps} ({share} %), loss {at.loss:.4f}"
        now = time.monotonic()
        if self._again and now >= self._next:
            self._next = now + 0.1
            print(f"\r{self._text}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._text:
            print(f"\r{self._text}" if self._again else self._text, file=sys.stderr, flush=True)


class _Bar:
    """A bar of tqdm."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None

    def update(self, at: Progress) -> None:
        if self._bar is None:
            self._bar = self._tqdm(total=at.total_steps, unit="step")
        self._bar.set_postfix(loss=f"{at.loss:.4f}", refresh=False)
        self._bar.update(at.step - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class ProgressBar:
    """A watcher of runs: a bar where tqdm is installed, else one line."""

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._shown: Any = _Line()
        else:
            self._shown = _Bar(tqdm)

    def __call__(self, at: Progress) -> None:
        self._shown.update(at)

    def close(self) -> None:
        """Ends the line."""
        self._shown.close()


def bar_of(verbose: Any) -> Optional[ProgressBar]:
    """Returns a bar where something is to be shown: without `verbose` nothing is."""
    return ProgressBar() if verbose else None
