"""Cells of one column of a data frame as features of a model that was trained on a table.

What becomes of cells is what `tritgrad eval` does (engine/data/table_dataset.cpp), by what the
checkpoint knows of the column (`table` in docs/FORMATS.md).
"""

from typing import Any, Dict, List

import numpy as np

from . import _arrays
from ._warnings import warn

# Texts that stand for a missing cell and that pandas leaves as they are.
_MISSING = ("", "?")
_LARGEST = float(np.finfo(np.float32).max)


def _is_missing(cell: Any) -> bool:
    try:
        return cell is None or bool(cell != cell)
    except TypeError:  # pandas.NA, whose comparisons are neither true nor false
        return True


def _text_of(cell: Any) -> str:
    """Returns a cell as a CSV file has it."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip(" \t")


class Column:
    """One column of the table: a number, or a feature for each of its words, and perhaps one more
    that is 1 where the cell is missing."""

    def __init__(self, about: Dict[str, Any], missing: str, offset: float) -> None:
        self.name: str = about["name"]
        self.words: List[str] = about.get("words", [])
        self.has_indicator: bool = about.get("indicator", False)
        self.width = max(1, len(self.words)) + self.has_indicator
        self._missing = missing
        self._fill = about.get("fill")
        self._offset = offset

    def write(self, cells: np.ndarray, means: np.ndarray, out: np.ndarray) -> None:
        """Writes the features [rows x width] of these cells [rows]; `means` are those of the
        features."""
        read = self._words_of if self.words else self._numbers_of
        missing = read(cells, out)
        if not missing.any():
            return
        if self._missing == "mean":
            out[missing] = means
            if self.has_indicator:
                out[missing, -1] = 1.0
        elif self._missing == "mode" and self._fill is not None:
            filled = np.zeros((1, self.width))
            read(np.array([self._fill], dtype=object), filled)
            out[missing] = filled
        else:
            raise ValueError(
                f"X: row {missing.argmax()}, column '{self.name}': the cell is missing, "
                f"{'words' if self.words else 'numbers'} expected; fill or remove the row"
            )

    def _numbers_of(self, cells: np.ndarray, out: np.ndarray) -> np.ndarray:
        if cells.dtype.kind in "bfiu":
            numbers = cells.astype(np.float64)
        elif cells.dtype.kind not in "OUS":
            raise ValueError(f"X: column '{self.name}' is of {cells.dtype}, numbers expected")
        else:
            numbers = np.array([self._number(row, cell) for row, cell in enumerate(cells.tolist())])
        wrong = np.flatnonzero(np.abs(numbers) > _LARGEST)
        if wrong.size:
            self._refuse(wrong[0], float(numbers[wrong[0]]), "a finite fp32 number")
        out[:, 0] = numbers - self._offset
        return np.isnan(numbers)

    def _number(self, row: int, cell: Any) -> float:
        if _is_missing(cell) or (isinstance(cell, str) and cell.strip() in _MISSING):
            return np.nan
        try:
            return float(cell)
        except (TypeError, ValueError):
            return self._refuse(row, cell, "a number")

    def _refuse(self, row: int, cell: Any, expected: str) -> float:
        raise ValueError(
            f"X: row {row}, column '{self.name}' is {cell!r}, {expected} expected; mend or remove "
            "the row"
        )

    def _words_of(self, cells: np.ndarray, out: np.ndarray) -> np.ndarray:
        places = {word: place for place, word in enumerate(self.words)}
        # pandas reads a column of true and false, in whatever letters, as truth values.
        by_letters = {word.lower(): place for word, place in places.items()}
        missing = np.zeros(len(cells), dtype=bool)
        unknown: List[str] = []
        for row, cell in enumerate(cells.tolist()):
            text = _text_of(cell)
            place = by_letters.get(text.lower()) if isinstance(cell, bool) else places.get(text)
            if place is not None:
                out[row, place] = 1.0
            elif _is_missing(cell) or text in _MISSING:
                missing[row] = True
            else:
                unknown.append(text)
        if unknown:
            warn(
                f"X: {len(unknown)} of {_arrays.counted(len(cells), 'cell')} of column "
                f"'{self.name}' {'holds' if len(unknown) == 1 else 'hold'} words that the model "
                f'does not know, such as "{unknown[0]}"; it reads them as none of its words'
            )
        return missing
