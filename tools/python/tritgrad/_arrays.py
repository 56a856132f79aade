"""Arrays of all kinds as the library takes them: row after row, in the machine's order of bytes.

Widths are those that `tritgrad --data X.npy,Y.npy` computes with, so that equal arrays make equal
bits: numbers of at most 16 bits are exact in float32, all others become float64.
"""

from typing import Any, List, NamedTuple, Optional, Tuple

import numpy as np

_TYPES = {"float32": 0, "float64": 1, "uint8": 2, "int32": 3, "int64": 4}  # tg_type


class Rows(NamedTuple):
    """Rows of features."""

    values: np.ndarray  # [rows x features], C order, float32, float64 or uint8
    image: Optional[Tuple[int, int, int]]  # height, width, channels of each row

    def arguments(self) -> Tuple[int, int, int, int]:
        """Returns values, type, rows and features for the library; the array must outlive it."""
        rows, features = self.values.shape
        return self.values.ctypes.data, _TYPES[self.values.dtype.name], rows, features


class Labels(NamedTuple):
    """A class for each row."""

    codes: np.ndarray  # int64, int32 or uint8 [rows]
    names: Optional[List[str]]  # of the codes 0, 1, ...; None: classes are called by their numbers

    def arguments(self) -> Tuple[int, int]:
        """Returns labels and their type for the library; the array must outlive the call."""
        return self.codes.ctypes.data, _TYPES[self.codes.dtype.name]


def _array(given: Any, name: str) -> np.ndarray:
    if hasattr(given, "toarray") and hasattr(given, "nnz"):
        raise ValueError(
            f"{name}: a sparse matrix found, a dense array expected; give {name}.toarray()"
        )
    if np.ma.is_masked(given):
        raise ValueError(f"{name}: masked numbers found; fill or remove their rows")
    try:
        return np.asarray(given)
    except ValueError as error:
        raise ValueError(f"{name}: no array can be made of it: {error}") from None


def _number_type(dtype: np.dtype, name: str) -> str:
    """Returns the type that holds these numbers."""
    if dtype.kind in "US":
        raise ValueError(
            f"{name}: texts found, numbers expected; give {name}.astype('float32') if they are "
            "numbers"
        )
    if dtype.kind not in "bfiu":
        kind = {"O": "objects", "c": "complex numbers"}.get(dtype.kind, str(dtype))
        raise ValueError(
            f"{name}: an array of {kind} found, real numbers expected; give "
            f"{name}.astype('float64') if they are such"
        )
    if dtype.kind == "b" or dtype == np.uint8:
        return "uint8"
    return "float32" if dtype.itemsize <= (4 if dtype.kind == "f" else 2) else "float64"


def as_rows(given: Any, name: str = "X") -> Rows:
    """Converts an array [rows x features], or uint8 images [rows x height x width (x channels)].

    Copies only where type, order of bytes or layout are not the library's. Raises ValueError for
    what holds no real numbers, or has another number of axes."""
    array = _array(given, name)
    kept = _number_type(array.dtype, name)
    is_image = array.ndim in (3, 4) and array.dtype == np.uint8
    if array.ndim != 2 and not is_image:
        axes = "1 axis" if array.ndim == 1 else f"{array.ndim} axes"
        advice = (
            f"{name}.reshape(-1, 1) if each row has one feature"
            if array.ndim < 2
            else f"{name}.reshape(len({name}), -1), or images as {name}.astype('uint8')"
        )
        raise ValueError(
            f"{name}: an array of {axes} found, rows x features (or uint8 images: rows x height x "
            f"width) expected; give {advice}"
        )
    image = (*array.shape[1:], 1)[:3] if is_image and array.size else None
    features = int(np.prod(array.shape[1:], dtype=np.int64))
    with np.errstate(over="ignore"):  # what is larger than float64 becomes inf, which is refused
        values = np.ascontiguousarray(array, dtype=kept)
    return Rows(values.reshape(len(array), features), image)


def one_axis(given: Any, rows: int, name: str = "y", what: str = "label") -> np.ndarray:
    """Returns an array [rows] of labels or targets; axes of length 1 do not count."""
    if given is None:
        raise ValueError(f"{name}: None found, a {what} for each row expected")
    array = _array(given, name)
    if sum(extent > 1 for extent in array.shape) > 1:
        shape = " x ".join(map(str, array.shape))
        advice = (
            f"numpy.argmax({name}, axis=1) of one-hot labels"
            if array.ndim == 2 and len(array) == rows
            else "an array of one axis"
        )
        raise ValueError(
            f"{name}: an array of shape {shape} found, one {what} per row expected; give {advice}"
        )
    if array.size != rows:
        raise ValueError(
            f"X holds {counted(rows, 'row')} but {name} holds {counted(array.size, what)}; give "
            "arrays that belong together"
        )
    return array.reshape(rows)


def as_targets(given: Any, rows: int, name: str = "y") -> np.ndarray:
    """Converts numbers to predict to float64 [rows]. Raises ValueError for what holds none."""
    array = one_axis(given, rows, name, "target")
    if array.dtype.kind == "O":
        array = _of_objects(array, name)
    _number_type(array.dtype, name)
    return np.ascontiguousarray(array, dtype=np.float64)


def counted(count: int, noun: str) -> str:
    """Returns "1 row" or "3 rows"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def as_labels(given: Any, rows: int, name: str = "y") -> Labels:
    """Finds the classes as numpy.unique does. Whole numbers name them as they are, as they do in a
    .npy file; texts are counted in their order. Raises ValueError for what names no class."""
    array = one_axis(given, rows, name)
    if array.dtype.kind == "O":
        array = _of_objects(array, name)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind == "U":
        return _of_texts(array, name)
    if array.dtype.kind not in "bfiu":
        raise ValueError(f"{name}: {array.dtype} found, whole numbers or texts expected")
    return Labels(_whole(array, name), None)


def _of_objects(array: np.ndarray, name: str) -> np.ndarray:
    """Returns texts or numbers; a column of pandas is an array of objects."""
    kinds = ((str, np.str_), (bool, int, np.integer, np.bool_), (float, np.floating))
    for row, label in enumerate(array):
        if not isinstance(label, sum(kinds, ())) or label != label:
            raise ValueError(
                f"{name}: the label of row {row} is {label!r}, a text or a number expected; "
                "fill or remove the row"
            )
    if all(isinstance(label, kinds[0]) for label in array):
        return array.astype(str)
    if any(isinstance(label, kinds[0]) for label in array):
        raise ValueError(f"{name}: texts among numbers found; give {name}.astype(str)")
    if all(isinstance(label, kinds[1]) for label in array):
        return np.array([int(label) for label in array])
    return array.astype(float)


def _of_texts(array: np.ndarray, name: str) -> Labels:
    empty = np.flatnonzero(array == "")
    if empty.size:
        raise ValueError(
            f"{name}: the label of row {empty[0]} is empty; fill or remove the row"
        )
    classes, codes = np.unique(array, return_inverse=True)
    if len(classes) == 1:
        rows = "the one row has" if len(array) == 1 else f"all {len(array)} rows have"
        raise ValueError(
            f'{name}: {rows} the label "{classes[0]}", at least two classes are needed; give the '
            "array that holds the classes"
        )
    return Labels(np.ascontiguousarray(codes, dtype=np.int64), [str(each) for each in classes])


def _whole(array: np.ndarray, name: str) -> np.ndarray:
    """Returns int64, or int32 and uint8 as they are; raises ValueError for the first number that is
    not whole."""
    if array.dtype.kind == "f":
        wrong = np.flatnonzero(~((np.abs(array) < 2.0**53) & (array == np.floor(array))))
        if wrong.size:
            value = array[wrong[0]]
            advice = (
                "number the classes: give numpy.unique(y, return_inverse=True)[1], or predict the "
                'numbers (task="regress")'
                if np.isfinite(value)
                else "fill or remove the row"
            )
            raise ValueError(
                f"{name}: the label of row {wrong[0]} is {value:g}, integers below 2^53 expected; "
                f"{advice}"
            )
    if array.dtype.kind == "u" and array.size and array.max() >= 2**63:
        raise ValueError(f"{name}: {array.max()} found, whole numbers below 2^63 expected")
    kept = array.dtype.name if array.dtype.name in ("int32", "uint8") else "int64"
    return np.ascontiguousarray(array, dtype=kept)
