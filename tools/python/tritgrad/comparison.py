"""Comparisons of recipes."""

import json
from collections.abc import Sequence
from typing import Any, Callable, Dict, List, Mapping, Optional

from . import _data, _spec, _table, _task
from ._errors import text
from ._interrupt import Interrupt
from ._library import lib
from ._observer import Observer, Progress, watchers_of
from .progress import bar_of


class Comparison(Sequence):
    """The table of `tritgrad compare`, a dictionary for each recipe: pandas.DataFrame(comparison)
    takes it, notebooks and print() show it.

    Accuracies are shares in [0, 1], "delta_points" and "delta_interval" percentage points beside
    the baseline; of a regression there are RMSEs in the units of the targets instead. `rows` is
    the list of them, `runs` that of all runs, as `tritgrad train --json`
    describes one; to_dict() is all of `tritgrad compare --json`.
    """

    _COLUMNS = ("recipe", "seeds", "accuracy_mean", "accuracy_std", "delta_points", "rmse_mean",
                "rmse_std", "delta_rmse", "bits_per_byte_mean", "bits_per_byte_std",
                "delta_bits_per_byte", "bytes_per_parameter", "seconds_per_run")

    def __init__(self, found: Dict[str, Any]) -> None:
        self._found = found
        self._comparison = found["comparisons"][0]

    @property
    def rows(self) -> List[Dict[str, Any]]:
        return self._comparison["recipes"]

    @property
    def runs(self) -> List[Dict[str, Any]]:
        return self._comparison["runs"]

    def to_dict(self) -> Dict[str, Any]:
        return self._found

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def _table(self) -> Any:
        columns = [each for each in self._COLUMNS if any(each in row for row in self.rows)]
        rows = [[row.get(column) for column in columns] for row in self.rows]
        return self._comparison["dataset"], columns, rows

    def _repr_html_(self) -> str:
        return _table.to_html(*self._table())

    def __repr__(self) -> str:
        return _table.to_text(*self._table())


def compare(
    spec: Optional[Mapping[str, Any]] = None,
    X: Any = None,
    y: Any = None,
    *,
    callback: Optional[Callable[[Progress], Any]] = None,
    verbose: int = 0,
    **options: Any,
) -> Comparison:
    """Trains several recipes with several seeds on the same rows, as `tritgrad compare` does.

    spec, options: the options of `tritgrad compare --help`, as train() takes them: compare(data=
        "wdbc", recipes=["master", "latent8"], seeds=3, tune=3).
    X, y, callback, verbose: as in train(); the steps of a Progress are runs here.
    Finished runs are kept nowhere, unless "cache" names a folder.
    Ctrl-C, and a true value of the callback, end it with KeyboardInterrupt. Raises what train()
    raises; a run that diverges is a row's "diverged" instead.
    """
    bar = bar_of(verbose)
    watchers = watchers_of(callback, bar)
    data, of_comparison = _data.of(_task.chosen(_spec.merged(spec, options), X, y), X, y)
    with data, data._held() as pointer, Interrupt() as interrupt:
        observer = Observer(watchers, interrupt)
        try:
            found = lib.tg_compare(pointer, _spec.to_json(of_comparison), observer.function, None)
        finally:
            if bar is not None:
                bar.close()
        observer.reraise()
        if interrupt.asked or (found is None and observer.has_ended):
            raise KeyboardInterrupt("the comparison was ended by Ctrl-C or its callback")
        return Comparison(json.loads(text(found)))
