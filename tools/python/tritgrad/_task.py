"""What y of arrays holds: classes, or numbers to predict.

The rule is that of `tritgrad train --task auto` (look_measured() in engine/data/targets.cpp), so
that equal arrays make equal runs.
"""

from typing import Any, Dict, Mapping, Optional

import numpy as np

from . import _arrays, _spec
from ._warnings import warn

_TASKS = ("auto", "classify", "regress")
_MOST_CLASSES = 20  # that nobody has to ask for
_ROWS_OF_CLASS = 10


def _numbers(y: Any) -> Optional[np.ndarray]:
    """Returns the finite numbers of y, float64; None where it does not hold one number a row."""
    try:
        array = np.asarray(y)
        if array.dtype.kind == "O" and not any(isinstance(each, (str, bytes)) for each in array):
            array = array.astype(float)
    except (TypeError, ValueError):
        return None
    if array.dtype.kind not in "bfiu" or sum(extent > 1 for extent in array.shape) > 1:
        return None
    numbers = array.reshape(-1).astype(float)
    return numbers[np.isfinite(numbers)]


def _look_measured(numbers: np.ndarray) -> bool:
    different = len(np.unique(numbers))
    if different <= _MOST_CLASSES:
        return False
    whole = bool((numbers == np.floor(numbers)).all())
    return not whole or len(numbers) < _ROWS_OF_CLASS * different


def _of(y: Any) -> str:
    """Chooses a task, and says so where it is not that of classes."""
    numbers = _numbers(y)
    if numbers is None or not _look_measured(numbers):
        return "classify"
    warn(
        f"the label, y, has {len(np.unique(numbers))} different numbers in "
        f"{_arrays.counted(len(numbers), 'row')} and is predicted as a number; if they are "
        "classes, say task='classify', and task='regress' if they are not"
    )
    return "regress"


def chosen(spec: Mapping[str, Any], X: Any, y: Any) -> Dict[str, Any]:
    """Returns the spec with the task of arrays, unless it says which. Of the options of data,
    those that are None are not given. Raises ValueError for a task that there is not."""
    given = {
        key: value
        for key, value in spec.items()
        if value is not None or key not in _spec.DATA_KEYS
    }
    task = given.get("task", "auto")
    if X is None or task in ("classify", "regress"):
        return given
    if task != "auto":
        raise ValueError(f"spec: 'task' is {task!r}, one of {', '.join(_TASKS)} expected")
    return {**given, "task": _of(y)}
