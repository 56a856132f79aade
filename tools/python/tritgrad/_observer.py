"""Those who watch a run: callbacks of Python that C calls."""

from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from . import _library
from ._interrupt import Interrupt


class Progress(NamedTuple):
    """What a callback is told after each step."""

    step: int  # steps made, of all that were made before a run was resumed too
    total_steps: int  # of the whole run
    epoch: int  # that the step belongs to, from 1
    loss: float  # mean over the epoch so far


Watcher = Callable[[Progress], Any]


class Observer:
    """Calls watchers after each step; one that returns a true value ends the run.

    No exception can pass through C: the first one ends the run, and reraise() raises it."""

    def __init__(self, watchers: Sequence[Watcher], interrupt: Interrupt) -> None:
        self._errors: List[BaseException] = []
        self._ends: List[bool] = []
        # Not self: a cycle would keep the callback until the next collection.
        errors, ends = self._errors, self._ends

        def observe(progress: Any, context: Any) -> int:
            try:
                at = progress.contents
                point = Progress(at.step, at.total_steps, at.epoch, at.loss)
                wishes = [bool(watcher(point)) for watcher in watchers]
                if not any(wishes) and not interrupt.asked:
                    return 0
            except BaseException as raised:
                errors.append(raised)
            ends.append(True)
            return 1

        self.function = _library.OBSERVER(observe)

    def reraise(self) -> None:
        """Raises the very exception that a watcher raised, if one did."""
        if self._errors:
            raise self._errors.pop(0)

    @property
    def has_ended(self) -> bool:
        """Whether somebody wanted the end."""
        return bool(self._ends)


def watchers_of(callback: Optional[Watcher], *others: Optional[Watcher]) -> Sequence[Watcher]:
    """Returns those that are there. Raises TypeError for a callback that cannot be called."""
    if callback is not None and not callable(callback):
        raise TypeError(
            f"callback: {type(callback).__name__} found, a function of a tritgrad.Progress expected"
        )
    return [each for each in (callback, *others) if each is not None]
