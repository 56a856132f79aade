"""A run has the same bits from Python and from the command line."""

import command_line
import numpy as np
import pytest
import tritgrad
from blobs import blobs

RECIPES = ("fp32", "master", "votes", "latent8", "shared4", "eco")


@pytest.mark.parametrize("recipe", RECIPES)
def test_weights_of_arrays_are_those_of_files(recipe, tmp_path):
    X, y = blobs()
    data = command_line.saved(tmp_path, X, y)
    by_program = command_line.json_of(
        "train", "--data", data, "--model", "mlp:16", "--recipe", recipe, "--epochs", 3,
        "--seed", 7, "--lr", 0.01, "--val", 0.1, "--quiet",
    )
    model = tritgrad.train(
        {"model": "mlp:16", "recipe": recipe, "epochs": 3}, X, y, seed=7, lr=0.01, val=0.1
    )
    for key in ("weights_sha256", "optimizer_sha256", "curve", "test_accuracy", "steps"):
        assert model.result[key] == by_program[key], key
    assert model.describe()["weights_sha256"] == by_program["weights_sha256"]


@pytest.mark.parametrize("dtype", ["float16", "float32", ">f4", ">f8", "int8", "uint16", "int32",
                                   "int64", "uint8", "bool"])
def test_every_type_of_numbers_is_read_as_from_a_file(dtype, tmp_path):
    X, y = blobs()
    X = (10 * abs(X)).astype(dtype)
    data = command_line.saved(tmp_path, X, y.astype(">i4"))
    by_program = command_line.json_of("train", "--data", data, "--epochs", 1, "--quiet")
    model = tritgrad.train({"epochs": 1}, X, y.astype(">i4"))
    assert model.result["weights_sha256"] == by_program["weights_sha256"]


def test_images_are_those_of_a_file(tmp_path):
    draw = np.random.default_rng(1)
    X, y = draw.integers(0, 256, (60, 8, 8), dtype=np.uint8), np.arange(60) % 2
    data = command_line.saved(tmp_path, X, y)
    by_program = command_line.json_of(
        "train", "--data", data, "--model", "conv:4,M,4", "--epochs", 1, "--quiet"
    )
    model = tritgrad.train({"model": "conv:4,M,4", "epochs": 1}, X, y)
    assert model.result["weights_sha256"] == by_program["weights_sha256"]
    assert (model.predict(X) == model.predict(X.reshape(60, 64))).all()


def test_built_in_data_and_tables_are_those_of_the_command_line(root):
    for data in ("iris", root / "engine/data/wine.csv"):
        by_program = command_line.json_of("train", "--data", data, "--epochs", 2, "--quiet")
        model = tritgrad.train(data=data, epochs=2)
        assert model.result["weights_sha256"] == by_program["weights_sha256"]
        assert model.result["data"] == by_program["data"]


def test_an_estimator_is_a_run_of_the_command_line(tmp_path):
    X, y = blobs()
    data = command_line.saved(tmp_path, X, y)
    by_program = command_line.json_of(
        "train", "--data", data, "--model", "mlp:32,16:norm=rms:activation=tanh:dropout=0.1",
        "--recipe", "votes", "--epochs", 2, "--batch", 16, "--lr", 0.02, "--label-smoothing", 0.1,
        "--val", 0.1, "--seed", 5, "--all-rows", "--quiet",
    )
    estimator = tritgrad.TernaryClassifier(
        "votes", hidden=(32, 16), norm="rms", activation="tanh", dropout=0.1, epochs=2,
        batch_size=16, learning_rate=0.02, label_smoothing=0.1, validation_fraction=0.1,
        random_state=5,
    ).fit(X, y)
    assert estimator.model_.result["weights_sha256"] == by_program["weights_sha256"]
    assert estimator.history_ == by_program["curve"]
    assert estimator.bytes_per_parameter_ == by_program["bytes_per_parameter"]["total"]


def test_predictions_are_those_of_eval(tmp_path):
    X, y = blobs(rows=300)
    path = tmp_path / "m.safetensors"
    data = command_line.saved(tmp_path, X, y)
    command_line.run("train", "--data", data, "--epochs", 2, "--save", path, "--quiet")
    model = tritgrad.load(path)
    found = model.predict(X)
    # The program calls every one of these labels right, so that its predictions are the same.
    as_predicted = command_line.saved(tmp_path, X, found)
    scored = command_line.json_of("eval", path, "--data", as_predicted)
    assert (scored["test_accuracy"], scored["rows"]) == (1.0, 300)
    found[17] = (found[17] + 1) % 3
    with_one_other = command_line.saved(tmp_path, X, found)
    assert command_line.json_of("eval", path, "--data", with_one_other)["test_accuracy"] < 1.0


def test_predictions_do_not_depend_on_the_rows_beside():
    X, y = blobs(rows=97)
    model = tritgrad.train({"epochs": 2, "recipe": "latent8"}, X, y)
    at_once, order = model.values(X), np.random.default_rng(3).permutation(97)
    assert (np.concatenate([model.values(X[i : i + 1]) for i in range(97)]) == at_once).all()
    assert (model.values(X[order]) == at_once[order]).all()
    assert (model.predict_codes(X) == at_once.argmax(1)).all()
    assert model.predict_proba(X).shape == (97, 3)
