"""The estimators need nothing that scikit-learn 1.6 took away, and take what it brought.

Debian's is older, so that its classes are changed to what its list of changes for 1.6 says: the
function validate_data() in place of the method of BaseEstimator, tags as an object that
__sklearn_tags__() hands from base to mixin in place of _more_tags() and _get_tags(), and the kind
of an estimator as a tag in place of an attribute.
https://scikit-learn.org/stable/whats_new/v1.6.html
"""

import os
import subprocess
import sys

import pytest

pytest.importorskip("sklearn")

NEWER = """
import types
import numpy as np
import sklearn.base as base
import sklearn.utils.validation as validation

method, calls = base.BaseEstimator._validate_data, []

def validate_data(_estimator, /, X="no_validation", y="no_validation", reset=True, **how):
    calls.append(reset)
    return method(_estimator, X, y, reset=reset, **how)

def tags_of_base(self):
    return types.SimpleNamespace(estimator_type=None, required=False)

def tags_of_mixin(mixin, kind):
    def tags(self):
        found = super(mixin, self).__sklearn_tags__()
        found.estimator_type, found.required = kind, True
        return found
    return tags

if not hasattr(base.BaseEstimator, "__sklearn_tags__"):
    validation.validate_data = validate_data
    base.BaseEstimator.__sklearn_tags__ = tags_of_base
    for mixin, kind in ((base.ClassifierMixin, "classifier"), (base.RegressorMixin, "regressor")):
        mixin.__sklearn_tags__ = tags_of_mixin(mixin, kind)
        mixin._more_tags = None
        del mixin._more_tags, mixin._estimator_type
    for gone in ("_validate_data", "_get_tags", "_more_tags"):
        delattr(base.BaseEstimator, gone)
else:
    calls = [True, False, False, True, False]

import tritgrad

X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
classifier = tritgrad.TernaryClassifier(epochs=1, random_state=0).fit(X, y)
assert classifier.predict(X).shape == (60,) and classifier.predict_proba(X).shape == (60, 2)
regressor = tritgrad.TernaryRegressor(epochs=1, random_state=0).fit(X, X[:, 0])
assert regressor.predict(X).shape == (60,)
assert (classifier.n_features_in_, regressor.n_features_in_) == (3, 3)
assert calls == [True, False, False, True, False], calls
print(classifier.__sklearn_tags__().estimator_type, regressor.__sklearn_tags__().estimator_type)
"""


def test_what_scikit_learn_1_6_changed_is_no_obstacle():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", NEWER], env=environment,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["classifier", "regressor"]
