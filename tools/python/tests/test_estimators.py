"""The estimators do what scikit-learn expects of estimators."""

import pickle
import re
import warnings

import numpy as np
import pytest
import tritgrad
from blobs import blobs

sklearn = pytest.importorskip("sklearn")
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402


@parametrize_with_checks([tritgrad.TernaryClassifier(), tritgrad.TernaryClassifier("votes")])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_labels_of_every_type_come_back():
    X, y = blobs()
    for labels in (np.array(["b", "a", "c"])[y], y * 0.5, y == 1, np.array(["b", "1.0", "nan"])[y]):
        try:
            estimator = tritgrad.TernaryClassifier(epochs=3, random_state=0).fit(X, labels)
        except ValueError as error:  # halves are no classes for scikit-learn
            assert labels.dtype == float and "continuous" in str(error)
            continue
        assert estimator.classes_.tolist() == sorted(set(labels.tolist()))
        assert estimator.predict(X).dtype == labels.dtype
        assert estimator.score(X, labels) > 0.8


def test_data_frames_have_names():
    pandas = pytest.importorskip("pandas")
    X, y = blobs()
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    estimator = tritgrad.TernaryClassifier(epochs=3, random_state=0).fit(frame, pandas.Series(y))
    assert estimator.feature_names_in_.tolist() == list("abcdef")
    assert (estimator.predict(frame) == estimator.predict(frame)).all()
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame[list("fedcba")])


def test_pickles_predict_the_same():
    X, y = blobs()
    estimator = tritgrad.TernaryClassifier(epochs=2, random_state=0).fit(X, y)
    other = pickle.loads(pickle.dumps(estimator))
    assert (other.predict_proba(X) == estimator.predict_proba(X)).all()
    assert other.history_ == estimator.history_ and len(other.history_) == 2
    assert clone(estimator).get_params() == estimator.get_params()


def test_a_pipeline_is_searched_over_recipes():
    X, y = blobs()
    pipeline = make_pipeline(StandardScaler(), tritgrad.TernaryClassifier(epochs=3, random_state=0))
    search = GridSearchCV(pipeline, {"ternaryclassifier__recipe": ["votes", "latent8"]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.8
    assert cross_val_score(tritgrad.TernaryClassifier(epochs=3), X, y, n_jobs=2, cv=2).min() > 0.7


def test_parameters_reach_the_run():
    X, y = blobs()
    estimator = tritgrad.TernaryClassifier(
        "votes", hidden=8, norm="layer", activation="tanh", dropout=0.1, epochs=2, batch_size=50,
        validation_fraction=0.2, n_threads=1, random_state=np.random.RandomState(0),
    ).fit(X, y)
    result = estimator.model_.result
    assert result["model"].startswith("mlp:8:norm=layer:activation=tanh:dropout=0.1")
    assert (result["batch"], result["epochs"], result["recipe"]) == (50, 2, "votes")
    assert estimator.history_[-1]["val_accuracy"] > 0.3
    tritgrad.set_threads(0)


AN_INT = "must be an int in the range"
A_FLOAT = "must be a float in the range"


@pytest.mark.parametrize("wrong, sentence", [
    ({"recipe": None}, "must be an instance of 'str' or"),
    ({"recipe": 3}, "must be an instance of 'str' or"),
    ({"norm": "bath"}, "must be a str among"),
    ({"norm": None}, "must be a str among"),
    ({"activation": "RELU"}, "must be a str among"),
    ({"dropout": 1.0}, A_FLOAT),
    ({"dropout": "a"}, A_FLOAT),
    ({"dropout": None}, A_FLOAT),
    ({"epochs": 0}, AN_INT),
    ({"epochs": "3"}, AN_INT),
    ({"batch_size": 2.5}, AN_INT),
    ({"learning_rate": -0.1}, A_FLOAT),
    ({"learning_rate": float("nan")}, A_FLOAT),
    ({"learning_rate": float("inf")}, A_FLOAT),
    ({"label_smoothing": 0.95}, A_FLOAT),
    ({"validation_fraction": 2}, A_FLOAT),
    ({"validation_fraction": None}, A_FLOAT),
    ({"random_state": -1}, AN_INT),
    ({"random_state": "one"}, AN_INT),
    ({"n_threads": -1}, AN_INT),
    ({"n_threads": 1025}, AN_INT),
    ({"verbose": "yes"}, AN_INT),
    ({"verbose": -1}, AN_INT),
    ({"verbose": None}, AN_INT),
    ({"hidden": "64"}, "must be an array-like or an int"),
    ({"hidden": None}, "must be an array-like or an int"),
    ({"hidden": 2.5}, "must be an array-like or an int"),
    ({"hidden": -3}, "must be an array-like or an int"),
    ({"hidden": True}, "must be widths of layers, each an int"),
    ({"hidden": (8, 2.5)}, "must be widths of layers, each an int"),
    ({"hidden": (8, 0)}, "must be widths of layers, each an int"),
    ({"hidden": ["8"]}, "must be widths of layers, each an int"),
    ({"hidden": [[8]]}, "must be widths of layers, each an int"),
])
def test_parameters_are_refused_in_scikit_learn_s_words(wrong, sentence):
    (name, value), = wrong.items()
    estimator = tritgrad.TernaryClassifier(**wrong)  # is made, as scikit-learn expects
    with pytest.raises(ValueError) as found:
        estimator.fit(*blobs(rows=60))
    said = str(found.value)
    assert said.startswith(f"The {name!r} parameter of TernaryClassifier {sentence}"), said
    assert said.endswith(f" Got {value!r} instead."), said
    assert not hasattr(estimator, "classes_")


def test_the_attributes_are_those_of_the_page(root):
    page = (root / "docs/PYTHON.md").read_text()
    listed = set(re.findall(r"`(\w+_)`", page.split("| attribute |")[1].split("\n\n")[0]))
    estimator = tritgrad.TernaryClassifier(epochs=1, validation_fraction=0.1).fit(*blobs())
    found = {name for name in vars(estimator) if name.endswith("_")}
    assert found | {"feature_names_in_"} == listed
    history = {"epoch", "train_loss", "train_accuracy", "val_accuracy"}
    assert set(estimator.history_[0]) == history
    X, _ = blobs()
    regressor = tritgrad.TernaryRegressor(epochs=1, validation_fraction=0.1).fit(X, X[:, 0])
    assert set(regressor.history_[0]) == {"epoch", "train_loss", "train_rmse", "val_rmse"}


def test_every_parameter_is_checked():
    for estimator in (tritgrad.TernaryClassifier(), tritgrad.TernaryRegressor()):
        assert set(estimator._parameter_constraints) == set(estimator.get_params())
    with pytest.raises(ValueError, match="The 'epochs' parameter of TernaryRegressor must be"):
        tritgrad.TernaryRegressor(epochs=0).fit(*blobs(rows=60))


def test_a_recipe_that_there_is_not_is_refused_by_the_library():
    with pytest.raises(ValueError, match="did you mean 'latent8'"):
        tritgrad.TernaryClassifier("latnt8").fit(*blobs(rows=60))


def test_limits_themselves_are_accepted():
    for good in ({"dropout": 0}, {"learning_rate": 0.0}, {"random_state": 2**64 - 1},
                 {"validation_fraction": 0.9}, {"label_smoothing": 0.9}, {"verbose": False},
                 {"hidden": np.array([4, 2])}, {"hidden": range(3, 5)}, {"hidden": np.int64(4)}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tritgrad.TernaryClassifier(**{"epochs": 1, **good}).fit(*blobs())


def test_without_hidden_layers_it_is_a_linear_model():
    linear = tritgrad.TernaryClassifier("fp32", hidden=(), epochs=1).fit(*blobs())
    assert list(linear.model_.weights()) == ["head"]
