"""Data frames whose columns have names, as pandas has them."""

from typing import Any, List, Optional, Sequence

import numpy as np


def is_frame(given: Any) -> bool:
    """Whether its columns can be taken one by one."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def names_of(given: Any) -> Optional[List[str]]:
    """Returns the names of a frame's columns; None for what is no frame, and for a frame whose
    columns are not all called by texts."""
    names = list(given.columns) if is_frame(given) else []
    return names if names and all(isinstance(name, str) for name in names) else None


def _listed(title: str, names: Sequence[str]) -> str:
    most = 5
    lines = [f"- {name}\n" for name in sorted(names)]
    return title + "".join(lines[:most]) + ("- ...\n" if len(lines) > most else "") if lines else ""


def check_names(fitted: Sequence[str], found: Sequence[str]) -> None:
    """Raises ValueError in scikit-learn's words unless both are the same, in the same order."""
    if list(fitted) == list(found):
        return
    said = "The feature names should match those that were passed during fit.\n"
    unseen, missing = set(found) - set(fitted), set(fitted) - set(found)
    said += _listed("Feature names unseen at fit time:\n", list(unseen))
    said += _listed("Feature names seen at fit time, yet now missing:\n", list(missing))
    if not unseen and not missing:
        said += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(said)


def column(frame: Any, place: int) -> np.ndarray:
    """Returns the cells of one column [rows]; of texts and of mixed types as objects."""
    name = list(frame.columns)[place]
    if sum(bool(each == name) for each in frame.columns) > 1:
        raise ValueError(
            f"X: two columns are called '{name}', which the model reads; rename one of them"
        )
    return np.asarray(frame[name])
