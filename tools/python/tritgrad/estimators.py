"""TernaryClassifier and TernaryRegressor, with scikit-learn's habits."""

import numbers
from os import PathLike
from typing import Any, Dict, List, Optional, Sequence, Union

import numpy as np
from numpy.random import RandomState
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from . import _arrays, _data, training
from ._observer import watchers_of
from .model import Model
from .progress import bar_of
from .threads import set_threads

try:
    from sklearn.utils.validation import validate_data  # scikit-learn 1.6
except ImportError:

    def validate_data(estimator: BaseEstimator, /, *arrays: Any, **how: Any) -> Any:
        return estimator._validate_data(*arrays, **how)


_NUMBERS = [np.float64, np.float32, np.uint8]  # of any other type become float64


_WHOLE, _REAL = numbers.Integral, numbers.Real
_WIDTHS = Interval(_WHOLE, 1, 2**24, closed="both")  # of a layer


def _widths(estimator: BaseEstimator) -> List[int]:
    """Returns the widths of the hidden layers. Raises ValueError for an element that is none."""
    hidden = estimator.hidden
    widths = [hidden] if isinstance(hidden, _WHOLE) else list(hidden)
    if not all(_WIDTHS.is_satisfied_by(each) and not isinstance(each, bool) for each in widths):
        raise InvalidParameterError(
            f"The 'hidden' parameter of {type(estimator).__name__} must be widths of layers, each "
            f"{_WIDTHS}. Got {hidden!r} instead."
        )
    return [int(each) for each in widths]


class _Ternary(BaseEstimator):
    """What both have in common: a perceptron on the columns of X, which it standardises itself."""

    model_: Model

    # What scikit-learn's own check of parameters reads; what only the library can judge, such as
    # the name of a recipe, is refused by its sentence.
    _parameter_constraints: Dict[str, list] = {
        "recipe": [str, PathLike],
        "hidden": ["array-like", _WIDTHS],
        "norm": [StrOptions({"batch", "layer", "rms", "none"})],
        "activation": [StrOptions({"relu", "squared_relu", "tanh"})],
        "dropout": [Interval(_REAL, 0, 1, closed="left")],
        "epochs": [Interval(_WHOLE, 1, 10**6, closed="both"), None],
        "batch_size": [Interval(_WHOLE, 1, 10**6, closed="both"), None],
        "learning_rate": [Interval(_REAL, 0, 10**6, closed="left"), None],
        "validation_fraction": [Interval(_REAL, 0, 0.9, closed="both")],
        "random_state": [Interval(_WHOLE, 0, 2**64 - 1, closed="both"), RandomState, None],
        "n_threads": [Interval(_WHOLE, 0, 1024, closed="both"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        recipe: str = "latent8",
        *,
        hidden: Union[int, Sequence[int]] = (64, 64),
        norm: str = "batch",
        activation: str = "relu",
        dropout: float = 0.0,
        epochs: Optional[int] = None,
        batch_size: Optional[int] = None,
        learning_rate: Optional[float] = None,
        validation_fraction: float = 0.0,
        random_state: Any = None,
        n_threads: Optional[int] = None,
        verbose: int = 0,
    ) -> None:
        self.recipe = recipe
        self.hidden = hidden
        self.norm = norm
        self.activation = activation
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def _spec(self) -> Dict[str, Any]:
        """Returns the command line's options for these parameters, which are checked."""
        widths = ",".join(map(str, _widths(self)))
        options = f"norm={self.norm}:activation={self.activation}:dropout={self.dropout}"
        return {
            "model": f"mlp:{widths}:{options}",
            "recipe": self.recipe,
            "epochs": self.epochs,
            "batch": self.batch_size,
            "lr": self.learning_rate,
            "val": self.validation_fraction,
            "seed": self._seed(),
            "all_rows": True,
        }

    def _seed(self) -> int:
        """Returns a whole number as it is, so that the command line has the same run; of anything
        else what it draws."""
        if isinstance(self.random_state, numbers.Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _train(self, data: _data.Data) -> None:
        if self.n_threads is not None:
            set_threads(self.n_threads)
        bar = bar_of(self.verbose)
        with data:
            self.model_ = training.run(data, self._spec(), watchers_of(None, bar), bar)
        self.model_.remember_columns(getattr(self, "feature_names_in_", None))
        result = self.model_.result or {}
        self.history_ = result["curve"]
        self.bytes_per_parameter_ = result["bytes_per_parameter"]["total"]

    def _rows_to_predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=_NUMBERS)


class TernaryClassifier(ClassifierMixin, _Ternary):
    """A classifier with weights in ternary or other low precision, trained without masters.

    It is a perceptron on the columns of X, which it standardises itself.

    Parameters
    ----------
    recipe : str, default="latent8"
        One of tritgrad.recipes(), or the path of a .toml file.
    hidden : int or sequence of int, default=(64, 64)
        Widths of the hidden layers; without any, (), it is a linear model.
    norm : {"batch", "layer", "rms", "none"}, default="batch"
        What follows each product.
    activation : {"relu", "squared_relu", "tanh"}, default="relu"
    dropout : float in [0, 1), default=0.0
        The share of a hidden layer's outputs that a step leaves out.
    epochs : int, default=None
        Passes over the rows; None: 60, or 10 from 10,000 rows on.
    batch_size : int, default=None
        Rows a step; None: 32, or 128 from 10,000 rows on.
    learning_rate : float, default=None
        Of the weights; None: the recipe's.
    label_smoothing : float in [0, 0.9], default=None
        The share of the target that is spread over all classes; None: 0.
    validation_fraction : float in [0, 0.9], default=0.0
        The share of the rows that is held out and watched: see history_.
    random_state : int, RandomState or None, default=None
        A whole number is the command line's --seed, so that the run has the same bits.
    n_threads : int, default=None
        Threads, 0: one a core. It is set for the whole process (tritgrad.set_threads) when fit()
        begins, and stays; None leaves it. Results do not depend on it.
    verbose : int or bool, default=0
        1 shows progress on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has names of columns that are all texts.
    history_ : list of dict
        Of every epoch: "epoch", "train_loss", "train_accuracy", and "val_accuracy" where
        validation_fraction is not 0.
    bytes_per_parameter_ : float
        The bytes that a trained parameter took while training, everything counted.
    model_ : tritgrad.Model
        What was trained, to be inspected, exported and saved.

    Notes
    -----
    There is no partial_fit: columns are standardised by, and rates scheduled over, all of the rows.
    Ctrl-C ends fit() after a step, with a warning; the estimator is then fitted as far as it was.
    Pickles hold the checkpoint, and load wherever tritgrad is installed.
    """

    _parameter_constraints: Dict[str, list] = {
        **_Ternary._parameter_constraints,
        "label_smoothing": [Interval(_REAL, 0, 0.9, closed="both"), None],
    }

    def __init__(
        self,
        recipe: str = "latent8",
        *,
        hidden: Union[int, Sequence[int]] = (64, 64),
        norm: str = "batch",
        activation: str = "relu",
        dropout: float = 0.0,
        epochs: Optional[int] = None,
        batch_size: Optional[int] = None,
        learning_rate: Optional[float] = None,
        label_smoothing: Optional[float] = None,
        validation_fraction: float = 0.0,
        random_state: Any = None,
        n_threads: Optional[int] = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            recipe,
            hidden=hidden,
            norm=norm,
            activation=activation,
            dropout=dropout,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            validation_fraction=validation_fraction,
            random_state=random_state,
            n_threads=n_threads,
            verbose=verbose,
        )
        self.label_smoothing = label_smoothing

    def _spec(self) -> Dict[str, Any]:
        return {**super()._spec(), "label_smoothing": self.label_smoothing}

    def fit(self, X: Any, y: Any) -> "TernaryClassifier":
        """Trains on all rows.

        X: array of shape (n_samples, n_features), finite numbers.
        y: array of shape (n_samples,), labels of at least two classes.
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=_NUMBERS)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y holds {len(y)} labels of one class, {classes[0]!r}; a classifier needs rows of "
                "at least two classes"
            )
        names = [str(label) for label in classes]
        labels = _arrays.Labels(np.ascontiguousarray(codes, dtype=np.int64), names)
        self._train(_data.from_labels(_arrays.as_rows(X), labels))
        self.classes_ = classes
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Returns the label of each row, of shape (n_samples,)."""
        X = self._rows_to_predict(X)
        return self.classes_[self.model_.predict_codes(X)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Returns probabilities in the order of classes_, float32, (n_samples, n_classes)."""
        X = self._rows_to_predict(X)
        return self.model_.predict_proba(X)


class TernaryRegressor(RegressorMixin, _Ternary):
    """A regressor with weights in ternary or other low precision, trained without masters.

    Targets are standardised, their squared error is minimised, and predictions are in their units.
    Parameters and attributes are those of TernaryClassifier, without label_smoothing and classes_;
    history_ has "train_rmse" and "val_rmse", in the units of y, in place of accuracies.
    """

    def fit(self, X: Any, y: Any) -> "TernaryRegressor":
        """Trains on all rows.

        X: array of shape (n_samples, n_features), finite numbers.
        y: array of shape (n_samples,), finite numbers of which at least two differ.
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=_NUMBERS, y_numeric=True, ensure_min_samples=2)
        self._train(_data.from_targets(_arrays.as_rows(X), _arrays.as_targets(y, len(X))))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Returns a number for each row in the units of y, of shape (n_samples,)."""
        X = self._rows_to_predict(X)
        return self.model_.values(X)
