"""The estimators do what scikit-learn expects of estimators."""

import pickle

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


@pytest.mark.parametrize("wrong, sentence", [
    ({"recipe": "latnt8"}, "did you mean 'latent8'"),
    ({"hidden": -3}, "mlp:-3"),
    ({"norm": "bath"}, "norm"),
    ({"dropout": 1.5}, "dropout"),
    ({"epochs": 0}, "'epochs' is 0"),
    ({"batch_size": 2.5}, "'batch' is 2.5"),
    ({"learning_rate": float("nan")}, "'lr'"),
    ({"validation_fraction": 2}, "'val' is 2"),
    ({"random_state": -1}, "'seed' is -1"),
    ({"n_threads": -1}, "threads: -1 found"),
])
def test_parameters_out_of_range_are_refused_when_fitting(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        tritgrad.TernaryClassifier(**wrong).fit(*blobs(rows=60))


@pytest.mark.parametrize("hidden", ["64", "64,64", None, 2.5, True, (8, 2.5)])
def test_hidden_is_a_width_or_widths(hidden):
    with pytest.raises(ValueError, match="^hidden: "):
        tritgrad.TernaryClassifier(hidden=hidden, epochs=1).fit(np.eye(4), [0, 1, 0, 1])


def test_no_recipe_is_no_default():
    with pytest.raises(ValueError, match="^recipe: None found"):
        tritgrad.TernaryClassifier(recipe=None, epochs=1).fit(np.eye(4), [0, 1, 0, 1])
