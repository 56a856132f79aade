"""Warnings name the line that a person wrote."""

import warnings

import pytest
import tritgrad
from blobs import blobs

NOTHING_MOVES = {"recipe": "latent8", "epochs": 1, "lr": 1e-9}


def told(call):
    """Returns the places of the warnings that a call gives, one of which there is."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert any("raise the learning rate" in str(warning.message) for warning in found)
    return {(warning.filename, warning.lineno) for warning in found}


def line_of(function):
    return __file__, function.__code__.co_firstlineno


def test_warnings_of_train_are_of_the_caller_s_line():
    call = lambda: tritgrad.train(NOTHING_MOVES, *blobs())  # noqa: E731
    assert told(call) == {line_of(call)}


def test_remarks_on_data_are_warnings(root):
    table = root / "engine/data/diabetes.csv"
    with pytest.warns(UserWarning, match="progression.*is predicted as a number"):
        tritgrad.train(data=table, epochs=1)


def test_warnings_of_fit_are_of_the_caller_s_line():
    pytest.importorskip("sklearn")
    for estimator in (tritgrad.TernaryClassifier, tritgrad.TernaryRegressor):
        model = estimator(epochs=1, learning_rate=1e-9, random_state=0)
        call = lambda: model.fit(*blobs())  # noqa: B023, E731
        assert told(call) == {line_of(call)}
