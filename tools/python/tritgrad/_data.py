"""Data sets as the library holds them."""

import json
from typing import Any, Dict, Mapping, Optional, Tuple

import numpy as np

from . import _arrays, _spec
from ._errors import made, text
from ._handle import Handle
from ._library import lib


class Data(Handle):
    """Rows with a class or a number each. Those of arrays are borrowed where the library can read
    them as they are, so that the arrays are kept here for as long."""

    _what = "data"
    _close = lib.tg_data_close

    def __init__(self, pointer: int, rows: Optional[_arrays.Rows] = None) -> None:
        super().__init__(pointer)
        self._rows = rows

    def describe(self) -> Dict[str, Any]:
        """Returns name, rows, features, classes, feature_names and remarks."""
        with self._held() as pointer:
            return json.loads(text(lib.tg_data_describe(pointer)))


def _options(rows: _arrays.Rows, **others: Any) -> bytes:
    options = {"borrow": True, **others}
    if rows.image is not None:
        options["image"] = rows.image
    return _spec.to_json(options, "options")


def from_labels(rows: _arrays.Rows, labels: _arrays.Labels) -> Data:
    """Makes data of rows with a class each."""
    named = {} if labels.names is None else {"class_names": labels.names}
    options = _options(rows, **named)
    pointer = lib.tg_data_from_arrays(*rows.arguments(), *labels.arguments(), options)
    return Data(made(pointer), rows)


def from_targets(rows: _arrays.Rows, targets: np.ndarray) -> Data:
    """Makes data of rows with a number each, float64 [rows], which is to be predicted."""
    pointer = lib.tg_data_from_targets(*rows.arguments(), targets.ctypes.data, _options(rows))
    return Data(made(pointer), rows)


def of(spec: Mapping[str, Any], X: Any, y: Any) -> Tuple[Data, Dict[str, Any]]:
    """Returns the data that a spec names, or those of arrays, and what the spec says of the run."""
    of_data, of_run = _spec.split(spec)
    if X is None:
        if y is not None:
            raise ValueError("y: labels found, but no X; give both arrays, or data by a name")
        # A text is cut into windows as long as the context of the model.
        of_windows = {"model": of_run["model"]} if "model" in of_run else {}
        return Data(made(lib.tg_data_open(_spec.to_json({**of_data, **of_windows})))), of_run
    task = of_data.pop("task", "classify")
    if task not in ("classify", "regress"):
        raise ValueError(
            f"spec: 'task' is {task!r}, 'classify' or 'regress' expected where X is given"
        )
    if of_data:
        raise ValueError(
            f"spec: {next(iter(of_data))!r} is of data that are read, but X is given; leave one out"
        )
    rows = _arrays.as_rows(X)
    if task == "regress":
        return from_targets(rows, _arrays.as_targets(y, len(rows.values))), of_run
    return from_labels(rows, _arrays.as_labels(y, len(rows.values))), of_run
