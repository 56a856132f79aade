"""Models: what they answer, kept in files and pickles, and closed."""

import copy
import gc
import pickle

import numpy as np
import pytest
import tritgrad
from blobs import blobs


@pytest.fixture(scope="module")
def model():
    return tritgrad.train({"epochs": 2, "model": "mlp:16", "recipe": "latent8"}, *blobs())


def test_classes_are_numbers_or_texts():
    X, y = blobs(rows=60)
    spec = {"epochs": 1, "model": "mlp:4", "all_rows": True}
    assert tritgrad.train(spec, X, y * 10 - 10).classes.tolist() == [-10, 0, 10]
    assert tritgrad.train(spec, X, y.astype(float)).classes.tolist() == [0, 1, 2]
    assert tritgrad.train(spec, X, y == 0).classes.tolist() == [0, 1]
    words = np.array(["b", "ä", "c"])[y]
    for labels in (words, words.astype(object), words.tolist(), np.char.encode(words, "utf-8")):
        found = tritgrad.train(spec, X, labels)
        assert found.classes.tolist() == ["b", "c", "ä"]
        assert set(found.predict(X)) <= set(words)
    assert tritgrad.train(spec, X, np.array(["01", "1", "x"])[y]).classes.dtype.kind == "U"


def test_files_and_pickles_hold_the_model(model, tmp_path):
    X, _ = blobs()
    path = tmp_path / "m.safetensors"
    model.save(path)
    model.save(path)  # replaces a checkpoint
    for other in (
        tritgrad.load(path),
        tritgrad.load(str(path)),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        tritgrad.Model.from_bytes(model.to_bytes()),
    ):
        assert (other.values(X) == model.values(X)).all()
        assert other.to_bytes() == model.to_bytes() == path.read_bytes()
        assert other.describe() == model.describe()
    assert list(tmp_path.iterdir()) == [path]


def test_a_model_replaces_no_other_file(model, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(ValueError):
        model.save(path)
    assert path.read_text() == "mine"


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="check the path"):
        tritgrad.load(tmp_path / "none")
    with pytest.raises(ValueError, match="zero byte"):
        tritgrad.load("a\0b")
    for data in (b"", b"x" * 100):
        with pytest.raises(ValueError):
            tritgrad.Model.from_bytes(data)


def test_a_closed_model_says_so():
    model = tritgrad.train({"epochs": 1, "model": "mlp:4"}, *blobs(rows=60))
    with model:
        model.predict(blobs()[0])
    model.close()
    assert "closed" in repr(model)
    for use in (lambda: model.predict(blobs()[0]), model.describe, model.to_bytes, model.inspect,
                lambda: pickle.dumps(model)):
        with pytest.raises(ValueError, match="model: it is closed"):
            use()
    del model
    gc.collect()


def test_inspection_is_a_table(model):
    found = model.inspect()
    about = found.to_dict()
    assert about["parameters"] > 0
    total = sum(tensor["bytes"]["total"] for tensor in about["tensors"])
    assert total == about["live_bytes"]["total"]
    html = found._repr_html_()
    assert html.count("<tr>") == len(about["tensors"]) + 3 and "layers.0.weight" in html
    assert "layers.0.weight" in repr(found)


def test_weights_are_trits_times_scales(model):
    weights = model.weights()
    assert list(weights) == ["layers.0", "head"]
    for layer in weights.values():
        assert layer.trits.dtype == np.int8 and set(np.unique(layer.trits)) <= {-1, 0, 1}
        groups = np.arange(layer.trits.shape[1]) // layer.group
        assert (layer.weight == layer.trits * layer.scales[:, groups]).all()
    dense = tritgrad.train({"epochs": 1, "model": "mlp:4", "recipe": "fp32"}, *blobs())
    assert dense.weights()["head"].trits is None
    assert tritgrad.Model.from_bytes(model.to_bytes()).weights()["head"].weight.shape == (3, 16)


def test_exports_are_written_and_checked(model, tmp_path):
    for ending in ("h", "npz", "js"):
        report = model.export(tmp_path / f"m.{ending}")
        assert report["bit_equal"] and (tmp_path / f"m.{ending}").stat().st_size > 0
    assert model.export(tmp_path / "two.h", trits="2bit")["bit_equal"]
    with pytest.raises(ValueError, match="trits"):
        model.export(tmp_path / "x.h", trits="9bit")
    with pytest.raises(ValueError):
        model.export(tmp_path / "x.unknown")


def test_a_loaded_model_is_exported_by_rows_that_are_given(model, tmp_path):
    X, _ = blobs()
    other = tritgrad.Model.from_bytes(model.to_bytes())
    assert other.export(tmp_path / "m.h", X=X)["rows"] == len(X)


def test_recipes_are_listed():
    names = [each["name"] for each in tritgrad.recipes()]
    assert "latent8" in names and len(names) == len(set(names))
