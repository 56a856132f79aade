"""Regressions: numbers in the units of the targets."""

import pickle

import command_line
import numpy as np
import pytest
import tritgrad

pytest.importorskip("sklearn")
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402


def targets(rows=300):
    """Returns X [rows x 5] and y, which depends on it, around 1,000 with a deviation near 20."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(rows, 5))
    return X, 1000 + 20 * (X @ [0.5, -0.5, 0.5, 0.3, 0.0]) + draw.normal(size=rows)


@parametrize_with_checks([tritgrad.TernaryRegressor()])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("recipe", ["master", "latent8"])
def test_weights_are_those_of_the_command_line(recipe, tmp_path):
    X, y = targets()
    data = command_line.saved(tmp_path, X, y)
    by_program = command_line.json_of(
        "train", "--data", data, "--task", "regress", "--recipe", recipe, "--epochs", 2, "--quiet"
    )
    model = tritgrad.train({"task": "regress", "recipe": recipe, "epochs": 2}, X, y)
    assert model.result["weights_sha256"] == by_program["weights_sha256"]
    assert model.predict(X).shape == (300,) and model.classes.size == 0


def test_pickles_predict_the_same():
    X, y = targets()
    estimator = tritgrad.TernaryRegressor(epochs=2, random_state=0).fit(X, y)
    assert (pickle.loads(pickle.dumps(estimator)).predict(X) == estimator.predict(X)).all()


def test_predictions_are_in_the_units_of_the_targets():
    X, y = targets()
    estimator = tritgrad.TernaryRegressor(random_state=0).fit(X, y)
    assert estimator.score(X, y) > 0.8
    assert abs(estimator.predict(X).mean() - 1000) < 10
    assert len(estimator.history_) == 60


def test_a_table_is_regressed_by_name_and_compared(root):
    spec = {"data": root / "engine/data/iris.csv", "label": "petal_width_cm", "epochs": 3}
    model = tritgrad.train(spec, task="regress")
    assert model.result["test_rmse"] < 1
    found = tritgrad.compare(spec, task="regress", recipes=["master", "votes"], seeds=1)
    assert found[1]["rmse_mean"] < 1 and "rmse_mean" in repr(found)


def test_a_regression_has_no_probabilities():
    X, y = targets()
    model = tritgrad.train({"task": "regress", "epochs": 2, "recipe": "latent8"}, X, y)
    for ask in (model.predict_proba, model.predict_codes):
        with pytest.raises(ValueError):
            ask(X)


def test_what_is_no_number_is_refused():
    X, y = targets()
    for wrong in (y.astype(str), y.astype(complex), y[:-1], np.where(y > 1000, np.nan, y)):
        with pytest.raises(ValueError):
            tritgrad.train({"task": "regress", "epochs": 1}, X, wrong)


@pytest.mark.parametrize("offset", [0.0, 1e9, 1.7e12])
def test_predictions_are_those_of_eval_however_large_the_numbers(offset, tmp_path):
    X, y = targets(200)
    y += offset
    path = str(tmp_path / "m.safetensors")
    data = command_line.saved(tmp_path, X, y)
    command_line.run("train", "--data", data, "--task", "regress", "--recipe", "latent8",
                     "--epochs", 5, "--quiet", "--save", path)
    rows = slice(0, 150)  # other data than those of the training, of which all rows are scored
    others = tmp_path / "others"
    others.mkdir()
    said = command_line.json_of("eval", path, "--data", command_line.saved(others, X[rows], y[rows]))
    errors = tritgrad.load(path).predict(X[rows]) - y[rows]
    rmse = np.sqrt(np.mean(errors**2))
    # The program's errors are of standardised numbers, which are rounded to fp32 (2^-24 of the
    # largest), ours of numbers in units, which are rounded to doubles (2^-52, before and after).
    spread = np.abs(y - y.mean()).max()
    bound = 2.0**-24 * 2 * spread + 2 * 2.0**-52 * np.abs(y).max()
    assert abs(rmse - said["test_rmse"]) <= bound
    assert rmse < 2 * y.std()


def test_a_model_of_arrays_is_exported_and_its_weights_are_read(tmp_path):
    X = np.random.RandomState(0).normal(size=(60, 3))
    model = tritgrad.train({"model": "mlp:4", "epochs": 2}, X, X[:, 0] + 1, task="regress")
    report = model.export(tmp_path / "m.h")
    # A run's errors are of standardised targets, which are rounded to fp32 (2^-24 of each).
    bound = 2.0**-24 * np.abs(X[:, 0] - X[:, 0].mean()).max()
    assert abs(report["rmse_before"] - model.result["test_rmse"]) <= bound
    assert report["differing_rows"] == 0
    assert "on 12 rows of arrays (test rows)" in (tmp_path / "m.h").read_text()
    assert model.export(tmp_path / "m.h", X=X)["rmse_after"] is None
    weights = model.weights()
    assert [layer.trits.shape for layer in weights.values()] == [(4, 3), (1, 4)]
    assert all(np.isin(layer.trits, (-1, 0, 1)).all() for layer in weights.values())
