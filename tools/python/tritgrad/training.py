"""Training."""

import json
from typing import Any, Callable, Mapping, Optional, Sequence

from . import _data, _frames, _spec, _task
from ._errors import INTERRUPTED, check, made, text
from ._handle import Handle
from ._interrupt import Interrupt
from ._library import lib
from ._observer import Observer, Progress, watchers_of
from ._warnings import warn
from .model import Model
from .progress import bar_of


class _Run(Handle):
    """A run; the data must outlive it."""

    _what = "run"
    _close = lib.tg_run_close

    def __init__(self, data: _data.Data, spec: Mapping[str, Any]) -> None:
        with data._held() as pointer:
            super().__init__(made(lib.tg_run_new(pointer, _spec.to_json(spec))))

    def make_all_steps(
        self, watchers: Sequence[Callable[[Progress], Any]], interrupt: Interrupt
    ) -> None:
        """Makes all steps, or those until a watcher or Ctrl-C ends the run."""
        with self._held() as pointer:
            observer = Observer(watchers, interrupt)
            check(lib.tg_run_observe(pointer, observer.function, None))
            status = lib.tg_run_all(pointer)
            observer.reraise()
            if status != INTERRUPTED:
                check(status)

    def finish(self) -> Model:
        """Returns the model as it is now, with the result of the run."""
        with self._held() as pointer:
            model = made(lib.tg_run_model(pointer))
            return Model(model, json.loads(text(lib.tg_run_finish(pointer))))


def train(
    spec: Optional[Mapping[str, Any]] = None,
    X: Any = None,
    y: Any = None,
    *,
    callback: Optional[Callable[[Progress], Any]] = None,
    verbose: int = 0,
    **options: Any,
) -> Model:
    """Trains a model, as `tritgrad train` does: equal options, data and seed make equal bits.

    spec, options: the command line's options by their names, as a dictionary or as keywords:
        train({"recipe": "latent8", "epochs": 20}, X, y), train(data="iris", micro_batches=2).
        `tritgrad train --help` lists them; `set` is a list. "save" writes a checkpoint after every
        epoch, "resume" goes on from one. Without `all_rows=True` a fifth of the rows is held back
        as a test, and model.result["test_accuracy"] is the accuracy on it.
    X: numbers [rows x features], or uint8 images [rows x height x width (x channels)]; every type
        of real numbers, layout and order of bytes. None where the spec names data. The model
        keeps the names of the columns of a data frame.
    y: the class of each row, whole numbers or texts; with task="regress" the number of each row
        that is to be predicted. Without a task, more than 20 different numbers are predicted if
        some are not whole or a number has fewer than 10 rows, and a warning says so.
    callback: is called after each step with a Progress. A true value ends the run, whose model is
        returned as it is then; an exception ends it too, and comes out of train().
    verbose: 1 shows progress on standard error, a bar where tqdm is installed; 0 shows nothing.

    Ctrl-C ends the run after its step: the model is returned as it is then, with a warning.
    Warnings of the run, and remarks on its data, are Python's (UserWarning).
    Raises ValueError for what cannot be trained, FileNotFoundError, DivergedError, MemoryError.
    """
    bar = bar_of(verbose)
    watchers = watchers_of(callback, bar)
    data, of_run = _data.of(_task.chosen(_spec.merged(spec, options), X, y), X, y)
    with data:
        model = run(data, of_run, watchers, bar)
    model.remember_columns(_frames.names_of(X))
    return model


def run(
    data: _data.Data,
    spec: Mapping[str, Any],
    watchers: Sequence[Callable[[Progress], Any]],
    bar: Any,
) -> Model:
    """Trains on data of the library; `bar`, if there is one, is among the watchers."""
    with _Run(data, spec) as training, Interrupt() as interrupt:
        try:
            training.make_all_steps(watchers, interrupt)
        finally:
            if bar is not None:
                bar.close()
        model = training.finish()
    result = model.result or {}
    for sentence in (*result.get("remarks", ()), *result.get("warnings", ())):
        warn(sentence)
    if interrupt.asked:
        warn(
            f"training was interrupted after {result['steps']} steps; the model is as it was then"
        )
    return model
