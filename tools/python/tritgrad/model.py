"""Trained models."""

import ctypes
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

import numpy as np

from . import _arrays, _checkpoint, _frames, _spec, weights
from ._atomic_file import replace_file
from ._errors import check, made, text
from ._handle import Handle
from ._inputs import Inputs
from ._interrupt import Interrupt
from ._library import lib
from ._text_writer import TextWriter
from .inspection import Inspection

PathLike = Union[str, "os.PathLike[str]"]


def path_bytes(path: PathLike) -> bytes:
    """Returns a path for C. Raises ValueError for a zero byte, at which C would end it."""
    found = os.fsencode(path)
    if b"\0" in found:
        raise ValueError(f"path: a zero byte found in {path!r}, the name of a file expected")
    return found


class Model(Handle):
    """A trained model, made by train() or load().

    Closes by itself, at the end of a `with` block, or by close(); what is asked of a closed one
    raises ValueError. Several threads may share a model, and take turns. Pickles and copies through
    the bytes of its checkpoint.

    result: what `tritgrad train --json` prints of the run that made it (a dictionary with "curve",
        "test_accuracy", "bytes_per_parameter", ...); None for a model that was loaded.
    """

    _what = "model"
    _close = lib.tg_model_close

    def __init__(self, pointer: int, result: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(pointer)
        self.result = result
        self._about = self.describe()
        self._frame_names: Optional[List[str]] = None
        self._inputs: Optional[Inputs] = None

    @classmethod
    def from_bytes(cls, data: bytes, result: Optional[Dict[str, Any]] = None) -> "Model":
        """Reads the bytes of a checkpoint. Raises ValueError for others."""
        return cls(made(lib.tg_model_from_bytes(data, len(data))), result)

    @classmethod
    def _unpickled(
        cls, data: bytes, result: Optional[Dict[str, Any]], frame_names: Optional[List[str]]
    ) -> "Model":
        model = cls.from_bytes(data, result)
        model.remember_columns(frame_names)
        return model

    def describe(self) -> Dict[str, Any]:
        """Returns "model", "recipe", "inputs", "classes", "steps", "weights_sha256" and more."""
        with self._held() as pointer:
            return json.loads(text(lib.tg_model_describe(pointer)))

    @property
    def feature_names(self) -> Optional[List[str]]:
        """The names of the columns that it reads: of the data frame, or of the table, that it was
        trained on. None where they had none."""
        return self._frame_names or self._columns().names

    def remember_columns(self, names: Optional[Sequence[str]]) -> None:
        """Keeps the names of the data frame that it was trained on, in order: from now on others
        are refused. Pickles have them, checkpoints have not."""
        self._frame_names = None if names is None else list(names)

    @property
    def classes(self) -> np.ndarray:
        """The classes in the order of the columns of predict_proba() [classes]: whole numbers where
        all names are such, else texts. Of a regression there are none."""
        names: List[str] = self._about["classes"]
        if names and all(_is_whole(name) for name in names):
            return np.array([int(name) for name in names], dtype=np.int64)
        return np.array(names, dtype=str)

    def predict(self, X: Any) -> np.ndarray:
        """Returns the class of each row [rows]; of a regression its number, in the units of the
        targets.

        X: numbers [rows x inputs], or uint8 images; converted as train() does. A row's answer does
            not depend on the other rows. Of a data frame the columns are compared with those that
            the model was trained on, as scikit-learn does; a model that was trained on a table
            finds its columns by name, in any order and beside others, and encodes their words and
            missing cells as it has learned.
        Raises ValueError for another number of inputs, other columns, NaN and infinite numbers.
        """
        if self._is_regression():
            return self.values(X)
        return self.classes[self.predict_codes(X)]

    def predict_codes(self, X: Any) -> np.ndarray:
        """Returns the place of each row's class among `classes`, int64 [rows]."""
        self._check_has_classes()
        rows = self._rows(X)
        codes = np.empty(len(rows.values), dtype=np.int64)
        self._predict(rows, codes, None, None)
        return codes

    def predict_proba(self, X: Any) -> np.ndarray:
        """Returns the probability of each class, float32 [rows x classes]; they sum up to 1."""
        self._check_has_classes()
        rows = self._rows(X)
        probabilities = np.empty((len(rows.values), self._outputs()), dtype=np.float32)
        self._predict(rows, None, probabilities, None)
        return probabilities

    def values(self, X: Any) -> np.ndarray:
        """Returns what the network computes, float64: logits [rows x classes], or, of a regression,
        numbers in the units of the targets [rows]."""
        rows = self._rows(X)
        shape = (len(rows.values),) + (() if self._is_regression() else (self._outputs(),))
        values = np.empty(shape, dtype=np.float64)
        self._predict(rows, None, None, values)
        return values

    def generate(
        self,
        prompt: Union[str, bytes],
        *,
        length: int = 256,
        temperature: float = 0.8,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 1,
        on_text: Optional[Callable[[str], Any]] = None,
    ) -> str:
        """Returns the text that a language model writes behind the prompt, as `tritgrad generate`
        does: the same arguments give the same text.

        prompt: at least one token, at most the model's context.
        length: tokens to write.
        temperature: logits are divided by it; 0: always the most likely token.
        top_k: draw from so many of the most likely tokens; 0: from all.
        top_p: draw from the most likely tokens that together have this probability, in (0, 1]
            (Holtzman et al. 2020).
        on_text: called with each piece of text as it is written; a true value ends it, as Ctrl-C
            does.
        Raises ValueError for a model of another kind and for numbers out of range.
        """
        if on_text is not None and not callable(on_text):
            found = type(on_text).__name__
            raise TypeError(f"on_text: {found} found, a function of a str expected")
        given = prompt.encode() if isinstance(prompt, str) else prompt
        if not isinstance(given, bytes):
            raise TypeError(f"prompt: {type(prompt).__name__} found, a str or bytes expected")
        options = _spec.to_json(
            {
                "length": length,
                "temperature": temperature,
                "top_k": top_k,
                "top_p": top_p,
                "seed": seed,
            },
            "options",
        )
        with self._held() as pointer, Interrupt() as interrupt:
            writer = TextWriter(on_text, interrupt)
            status = lib.tg_model_generate(
                pointer, given, len(given), options, writer.function, None
            )
            writer.reraise()
            check(status)
            return writer.text()

    def inspect(self) -> Inspection:
        """Returns where every byte is, by tensor and category, as `tritgrad inspect` prints it."""
        with self._held() as pointer:
            return Inspection(json.loads(text(lib.tg_model_inspect(pointer, None))))

    def weights(self) -> Dict[str, weights.LayerWeights]:
        """Returns the matrices by the names of their layers, in the order of the network."""
        with tempfile.TemporaryDirectory() as folder, Model.from_bytes(self.to_bytes()) as copy:
            path = Path(folder) / "model.npz"
            copy.export(path, X=np.zeros((1, self._about["inputs"]), dtype=np.float32))
            return weights.read(path)

    def export(self, path: PathLike, *, X: Any = None, **options: Any) -> Dict[str, Any]:
        """Writes the model for other programs, by the ending: .h, .onnx, .js, .html, .npz or
        .safetensors, as `tritgrad export` does.

        X: rows on which the file is compared with the model before it is written, from now on.
            None: of those that train() or fit() was given at most 1,000 that it held back as a
            test, else for validation, else rows of the training, as the file says; or the test rows
            of the data that the spec named. A model of arrays that was loaded or unpickled has
            none, and needs X.
        options: those of `tritgrad export --help`, such as trits="2bit".
        Returns the report of `tritgrad export --json`, whose score is None on rows of X, which have
        no labels. Raises ValueError for what cannot be written.
        """
        name = path_bytes(path)
        rows = None if X is None else self._rows(X)
        with self._held() as pointer:
            if rows is not None:
                check(lib.tg_model_check_rows(pointer, *rows.arguments(), None, None))
            found = lib.tg_model_export(pointer, name, _spec.to_json(options, "options"))
            return json.loads(text(found))

    def save(self, path: PathLike) -> None:
        """Writes the checkpoint, which `tritgrad eval`, `train --resume` and load() read. It
        replaces another checkpoint, and no other file (ValueError). Whatever happens meanwhile, the
        file holds the old bytes or the new ones (OSError where they cannot be written)."""
        target = Path(os.fsdecode(path_bytes(path)))
        if not target.parent.is_dir():
            raise FileNotFoundError(f"there is no folder '{target.parent}'; make it first")
        _check_replaceable(target)
        with self._held() as pointer:
            replace_file(target, _bytes_of(pointer))

    def to_bytes(self) -> bytes:
        """Returns the bytes of the checkpoint, as save() writes them."""
        with self._held() as pointer:
            return bytes(_bytes_of(pointer))

    def __reduce__(self) -> Any:
        return Model._unpickled, (self.to_bytes(), self.result, self._frame_names)

    def __repr__(self) -> str:
        if self._pointer is None:
            return "<tritgrad.Model, closed>"
        return "<tritgrad.Model {model}, {recipe}>".format(**self._about)

    def _columns(self) -> Inputs:
        if self._inputs is None:
            with self._held() as pointer:
                self._inputs = Inputs(_checkpoint.read(_bytes_of(pointer)))
        return self._inputs

    def _rows(self, X: Any) -> _arrays.Rows:
        """Converts rows to predict."""
        if _frames.is_frame(X):
            names = _frames.names_of(X)
            if self._frame_names is not None and names is not None:
                _frames.check_names(self._frame_names, names)
            elif self._frame_names is None and self._columns().reads_frames:
                return _arrays.as_rows(self._columns().of_frame(X))
        return _arrays.as_rows(X)

    def _is_regression(self) -> bool:
        return self._about["task"] == "regress"

    def _check_has_classes(self) -> None:
        if self._is_regression():
            raise ValueError("model: it predicts numbers and knows no classes; call predict()")

    def _outputs(self) -> int:
        return len(self._about["classes"])

    def _predict(
        self,
        rows: _arrays.Rows,
        codes: Optional[np.ndarray],
        probabilities: Optional[np.ndarray],
        values: Optional[np.ndarray],
    ) -> None:
        written = (codes, probabilities, values)
        outputs = [None if each is None else each.ctypes.data for each in written]
        with self._held() as pointer:
            check(lib.tg_model_predict(pointer, *rows.arguments(), *outputs))


def _bytes_of(pointer: int) -> memoryview:
    """Returns the checkpoint where the library has it, as long as the model lives."""
    size = ctypes.c_size_t()
    found = made(lib.tg_model_bytes(pointer, ctypes.byref(size)))
    return memoryview((ctypes.c_ubyte * size.value).from_address(found)).cast("B")


def _check_replaceable(target: Path) -> None:
    """Raises ValueError for a file that is neither empty nor a checkpoint, as `train --save` does."""
    if not target.is_file() or target.stat().st_size == 0:
        return
    try:
        load(target).close()
    except ValueError:
        raise ValueError(
            f"'{target}' is there and is no checkpoint, or a damaged one; delete it, or name "
            "another file"
        ) from None


def load(path: PathLike) -> Model:
    """Reads a checkpoint that save(), or `tritgrad train --save`, has written.

    Raises FileNotFoundError where there is none, ValueError for other files.
    """
    return Model(made(lib.tg_model_open(path_bytes(path))))


def _is_whole(name: str) -> bool:
    """Whether the name of a class is a whole number of 64 bits as Python writes it."""
    digits = name[1:] if name.startswith("-") else name
    return (
        digits.isascii()
        and digits.isdigit()
        and str(int(name)) == name
        and -(2**63) <= int(name) < 2**63
    )
