"""Data frames as the inputs of a model that was trained on a table, whose columns have names.

Columns are found as `tritgrad eval` finds them (engine/data/table_schema.cpp), so that the model's
answers are those of the command line.
"""

from typing import Any, List, Optional

import numpy as np

from . import _arrays, _frames
from ._cells import Column
from ._checkpoint import Header
from ._warnings import warn


class Inputs:
    """The columns that a model reads."""

    def __init__(self, header: Header) -> None:
        run, table = header.run, header.run.get("table")
        if table:
            columns = table["columns"]
        else:  # a built-in set has names of numbers alone
            columns = [{"name": name} for name in run.get("feature_names", [])]
        self._has_names = bool(columns) and (table is None or table["header"])
        # The library subtracts offsets where columns of numbers are all that there is.
        plain = not any("words" in each or each.get("indicator") for each in columns)
        offsets = [each.get("offset", 0.0) for each in columns]
        subtracted = [0.0] * len(columns) if plain else offsets
        missing = run.get("missing", "refuse")
        self._columns = [
            Column(about, missing, offset) for about, offset in zip(columns, subtracted)
        ]
        self._means = header.means.astype(np.float64)
        if plain and any(offsets):
            self._means += offsets

    @property
    def reads_frames(self) -> bool:
        """Whether a frame is more than an array of numbers to it: it knows names or words."""
        return self._has_names or any(each.words or each.width > 1 for each in self._columns)

    @property
    def names(self) -> Optional[List[str]]:
        """The names of the columns; None where they have none."""
        return [column.name for column in self._columns] if self._has_names else None

    def of_frame(self, frame: Any) -> np.ndarray:
        """Returns the inputs of each row, float64 [rows x inputs]."""
        places = self._places(frame)
        out = np.zeros((len(frame), sum(column.width for column in self._columns)))
        at = 0
        for column, place in zip(self._columns, places):
            features = slice(at, at + column.width)
            column.write(_frames.column(frame, place), self._means[features], out[:, features])
            at += column.width
        return out

    def _places(self, frame: Any) -> List[int]:
        """Returns the places of the columns: by name, in any order and beside others, or, where no
        name is known, as they stand."""
        found = list(frame.columns)
        names = [column.name for column in self._columns]
        lacking = [name for name in names if name not in found]
        if self._has_names and not lacking:
            return [found.index(name) for name in names]
        if self._has_names and len(lacking) < len(names):
            one = len(lacking) == 1
            raise ValueError(
                f"X: the model's {'column' if one else 'columns'} {_listed(lacking)} "
                f"{'is' if one else 'are'} not there; add or rename {'it' if one else 'them'}"
            )
        if len(found) != len(names):
            raise ValueError(
                f"X: {_arrays.counted(len(found), 'column')} found, but the model has {len(names)}"
                + (f", called {_listed(names)}" if self._has_names else "")
            )
        if self._has_names and _frames.names_of(frame) is not None:
            warn(
                f"X: its columns have other names than the model's ({_listed(names)}) and are "
                "taken in the order in which they stand"
            )
        return list(range(len(found)))


def _listed(names: List[str]) -> str:
    most = 8
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
