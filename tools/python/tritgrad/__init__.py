"""Neural networks in ternary and other low-precision weights, trained on CPUs.

    import tritgrad
    model = tritgrad.train({"data": "iris", "recipe": "latent8"})
    model.predict([[5.1, 3.5, 1.4, 0.2]])

With scikit-learn, from TernaryClassifier and TernaryRegressor on everything has its habits.
"""

from typing import Any

from . import _library
from ._errors import DivergedError
from ._observer import Progress
from ._recipes import recipes
from .comparison import Comparison, compare
from .inspection import Inspection
from .model import Model, load
from .threads import set_threads
from .training import train
from .weights import LayerWeights

__version__ = _library.version()
_ESTIMATORS = ("TernaryClassifier", "TernaryRegressor")
__all__ = [
    "Comparison",
    "DivergedError",
    "Inspection",
    "LayerWeights",
    "Model",
    "Progress",
    "compare",
    "load",
    "recipes",
    "set_threads",
    "train",
    *_ESTIMATORS,
]


def __getattr__(name: str) -> Any:
    """Imports the estimators when they are asked for: the rest works without scikit-learn."""
    if name not in _ESTIMATORS:
        raise AttributeError(f"module 'tritgrad' has no attribute '{name}'")
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"tritgrad.{name} needs scikit-learn, which is not installed; install python3-sklearn "
            "or scikit-learn, or use tritgrad.train()"
        ) from error
    from . import estimators

    return getattr(estimators, name)


def __dir__() -> list:
    return sorted([*globals(), *_ESTIMATORS])
