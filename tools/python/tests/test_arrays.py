"""Arrays of all kinds, and what is refused of them, with the sentences of the command line."""

import command_line
import numpy as np
import pytest
import tritgrad
from blobs import blobs

SPEC = {"epochs": 1, "model": "mlp:4"}


def sha(X, y):
    return tritgrad.train(SPEC, X, y).result["weights_sha256"]


def test_layout_and_order_of_bytes_do_not_matter():
    X, y = blobs()
    wide = np.zeros((400, 12))
    wide[::2, ::2] = X
    backwards = X[::-1].copy()[::-1]
    for same in (np.asfortranarray(X), wide[::2, ::2], backwards, X.astype(">f8"), X.tolist(),
                 np.array(X, dtype=np.longdouble)):
        assert sha(same, y) == sha(X, y)
    texts = list(map(str, y))
    for labels in (y.astype(">i2"), y.astype(float), y.reshape(-1, 1), y.tolist(), texts):
        assert sha(X, labels) == sha(X, y)
    for kept in ("uint8", "int32", ">i4", "int16", "uint64"):
        assert sha(X, y.astype(kept)) == sha(X, y)


def test_read_only_arrays_and_maps_of_files_are_read(tmp_path):
    X, y = blobs()
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    y = y.copy()
    y.flags.writeable = False
    assert sha(mapped, y) == sha(X, y)


X, Y = blobs(rows=20)


def with_number(number):
    changed = X.copy()
    changed[3, 1] = number
    return changed


# The names of the arrays, what is done with them, and what only files or only Python have.
THEIR_WORDS = {"x.npy": "X", "y.npy": "y", "array.": "X.", "len(array)": "len(X)",
               "save ": "give ", "files": "arrays", "grey images": "images",
               "--task regress": 'task="regress"',
               ", else put words and labels into a CSV file": ""}
OUR_WORDS = {"values:": "X:", "labels:": "y:", "save ": "give "}


def in_words(sentence, words):
    for theirs, ours in words.items():
        sentence = sentence.replace(theirs, ours)
    return sentence


@pytest.mark.parametrize("x, y", [
    (with_number(np.nan), Y),
    (with_number(np.inf), Y),
    (with_number(1e300), Y),
    (X, Y * 0),
    (X[:1], Y[:1]),
    (X[:0], Y[:0]),
    (X[:, :0], Y),
    (X[:, 0], Y),
    (X.reshape(20, 3, 2), Y),
    (X, Y[:-1]),
    (X, np.eye(3)[Y]),
    (X, Y + 0.5),
    (X, np.where(Y == 1, np.nan, Y)),
    (X.astype(str), Y),
    (X, np.where(Y == 1, "", "a")),
    (X, np.full(20, "a")),
])
def test_the_sentence_is_that_of_the_command_line(x, y, tmp_path):
    with pytest.raises(ValueError) as found:
        tritgrad.train(SPEC, x, y)
    data = command_line.saved(tmp_path, x, y)
    expected = command_line.refusal("train", "--data", data, "--epochs", 1)
    assert in_words(str(found.value), OUR_WORDS) == in_words(
        expected.replace(f"{tmp_path}/", ""), THEIR_WORDS
    )


class Sparse:
    nnz = 3

    def toarray(self):
        raise AssertionError


@pytest.mark.parametrize("x, y, sentence", [
    (X.astype(object), Y, "X: an array of objects found"),
    (X.astype(complex), Y, "X: an array of complex numbers found"),
    (X.astype("M8[s]"), Y, "X: an array of datetime64"),
    (Sparse(), Y, "X: a sparse matrix found"),
    (np.ma.masked_less(X, 0), Y, "X: masked numbers"),
    ([[1, 2], [3]], [0, 1], "X: no array can be made"),
    (5, [0], "X: an array of 0 axes found"),
    (X, None, "y: None found"),
    (None, Y, "y: labels found, but no X"),
    (X, Y.astype(complex), "y: complex128 found"),
    (X, np.array([None, *Y[1:]], dtype=object), "label of row 0 is None"),
    (X, np.array(["a", *Y[1:]], dtype=object), "texts among numbers"),
    (X, Y.astype("u8") + 2**63, "whole numbers below"),
])
def test_what_only_python_has_is_refused(x, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        tritgrad.train(SPEC, x, y)


def test_rows_to_predict_are_checked():
    model = tritgrad.train(SPEC, *blobs())
    with pytest.raises(ValueError, match="features: 3 found, the model has 6 inputs"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="row 3, column 1 is nan"):
        model.predict(with_number(np.nan))
    with pytest.raises(ValueError, match="1 axis"):
        model.predict(X[0])
    assert model.predict(X[:0]).shape == (0,)
    assert model.predict_proba(X[:0]).shape == (0, 3)


@pytest.mark.parametrize("spec, options", [
    ({"recipe": "latnt8"}, ["--recipe", "latnt8"]),
    ({"recipe": "no.toml"}, ["--recipe", "no.toml"]),
    ({"model": "mlp:x"}, ["--model", "mlp:x"]),
    ({"data": "no.csv"}, ["--data", "no.csv"]),
    ({"data": "iris", "label": "colour"}, ["--data", "iris", "--label", "colour"]),
    ({"resume": "none"}, ["--resume", "none"]),
    ({"set": ["weight.x=3"]}, ["--set", "weight.x=3"]),
    ({"save": "/none/m"}, ["--save", "/none/m"]),
])
def test_specs_are_refused_in_the_words_of_the_command_line(spec, options):
    with pytest.raises((ValueError, FileNotFoundError)) as found:
        tritgrad.train({"data": "iris", "epochs": 1, **spec})
    defaults = ["--data", "iris"] if "data" not in spec else []
    refusal = command_line.refusal("train", *defaults, *options)
    assert str(found.value) == refusal.removeprefix("--save: ")
    missing = ("no.toml", "no.csv", "none", "/none/m")
    named = str([*spec.values()][-1]) in missing
    assert isinstance(found.value, FileNotFoundError) == named


@pytest.mark.parametrize("spec, sentence", [
    ({"epoch": 3}, "unknown key 'epoch'"),
    ({"epochs": 0}, "'epochs' is 0"),
    ({"epochs": 10**30}, "'epochs' is"),
    ({"epochs": "3"}, "'epochs' is"),
    ({"lr": float("nan")}, "'lr'"),
    ({"lr": object()}, "'lr'"),
    ({"seed": -1}, "'seed' is -1"),
    ({3: 4}, "unknown key '3'"),
    ([1], "a dictionary"),
    ("iris", "a dictionary"),
])
def test_specs_that_only_python_can_have_are_refused(spec, sentence):
    with pytest.raises(ValueError, match=sentence):
        tritgrad.train(spec, X, Y)


def test_numbers_of_numpy_and_paths_are_values(tmp_path):
    spec = {"epochs": np.int64(1), "lr": np.float32(0.5), "val": np.float64(0.1),
            "all_rows": np.bool_(True), "save": tmp_path / "m.safetensors"}
    assert tritgrad.train(spec, X, Y).result["lr"] == 0.5
    assert tritgrad.load(tmp_path / "m.safetensors").describe()["steps"] > 0


def test_what_is_given_twice_is_refused():
    with pytest.raises(ValueError, match="'epochs' is given twice"):
        tritgrad.train({"epochs": 1}, X, Y, epochs=2)
    with pytest.raises(ValueError, match="'data' is of data that are read"):
        tritgrad.train({"data": "iris"}, X, Y)
