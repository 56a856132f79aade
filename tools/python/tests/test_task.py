"""Whether labels are classes or numbers to predict is decided as on the command line."""

import warnings

import command_line
import numpy as np
import pytest
import tritgrad
from blobs import blobs

SPEC = {"epochs": 1, "model": "mlp:4"}
SHORT = ["--epochs", 1, "--model", "mlp:4", "--quiet"]
X, _ = blobs(rows=240)
COUNTED = np.arange(240)
MEASURED = X[:, 0] * 3



@pytest.mark.parametrize("y, task", [
    (COUNTED % 3, "classify"),
    (COUNTED % 3 * 1.0, "classify"),
    (COUNTED % 20, "classify"),
    (COUNTED % 21, "classify"),  # 240 rows: more than 10 for each of 21 classes
    (COUNTED % 24, "classify"),
    (COUNTED % 25, "regress"),  # fewer than 10
    (COUNTED % 25 - 12.0, "regress"),
    (np.char.add("a", (COUNTED % 25).astype(str)), "classify"),
    (COUNTED % 21 / 2, "regress"),
    (MEASURED, "regress"),
    (MEASURED.astype(np.float32), "regress"),
])
def test_the_choice_is_that_of_the_command_line(y, task, tmp_path):
    data = command_line.saved(tmp_path, X, y)
    by_program = command_line.json_of("train", "--data", data, *SHORT)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = tritgrad.train(SPEC, X, y)
    assert model.result["weights_sha256"] == by_program["weights_sha256"]
    assert model.describe()["task"] == task
    said = [str(each.message) for each in told if "predicted as a number" in str(each.message)]
    assert len(said) == (task == "regress")
    if said:
        program_s = by_program["remarks"][0].replace(f"{tmp_path}/y.npy", "y")
        assert said[0].split(";")[0] == program_s.split(";")[0]


@pytest.mark.parametrize("y", [MEASURED.tolist(), MEASURED.astype(object),
                               MEASURED.reshape(-1, 1)])
def test_columns_and_lists_are_judged_alike(y):
    with pytest.warns(UserWarning, match="240 different numbers in 240 rows"):
        assert tritgrad.train(SPEC, X, y).describe()["task"] == "regress"


def test_whoever_says_the_task_is_not_told_of_it():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*predicted as a number")
        assert tritgrad.train(SPEC, X, MEASURED, task="regress").describe()["task"] == "regress"
        assert tritgrad.train(SPEC, X, COUNTED % 40, task="classify").classes.size == 40


def test_auto_and_none_are_the_default():
    for task in ("auto", None):
        model = tritgrad.train(SPEC, X, COUNTED % 3, task=task, data=None, label=None)
        assert model.describe()["task"] == "classify"
    assert tritgrad.train(SPEC, data="iris", task=None, label=None).describe()["inputs"] == 4
    with pytest.raises(ValueError, match="'task' is 'guess', one of auto, classify, regress"):
        tritgrad.train(SPEC, X, MEASURED, task="guess")
    with pytest.raises(ValueError, match="unknown key 'epoch'"):
        tritgrad.train(SPEC, X, COUNTED % 3, epoch=None)


def test_comparisons_choose_alike():
    with pytest.warns(UserWarning, match="predicted as a number"):
        found = tritgrad.compare(SPEC, X, MEASURED, recipes=["votes"], seeds=1)
    assert found[0]["rmse_mean"] > 0
