"""The weights of a model as arrays."""

from pathlib import Path
from typing import Dict, NamedTuple, Optional

import numpy as np


class LayerWeights(NamedTuple):
    """The matrix of a layer; of a convolution [outputs x 3 x 3 x channels] instead of [outputs x
    inputs]. Where weights are ternary, `weight` is trits times scales."""

    weight: np.ndarray  # float32 [outputs x inputs]
    trits: Optional[np.ndarray]  # int8 [outputs x inputs]: -1, 0, 1; None where weights are floats
    scales: Optional[np.ndarray]  # float32 [outputs x groups]
    group: Optional[int]  # inputs that share a scale, the last group perhaps fewer


def read(path: Path) -> Dict[str, LayerWeights]:
    """Reads what `tritgrad export --to FILE.npz` has written (docs/EXPORT_PYTHON.md)."""
    with np.load(path) as arrays:
        found = {}
        for name in arrays["layers"].tolist():
            if f"{name}.weight" not in arrays:
                continue  # pooling has none
            is_ternary = f"{name}.trits" in arrays
            found[name] = LayerWeights(
                arrays[f"{name}.weight"],
                arrays[f"{name}.trits"] if is_ternary else None,
                arrays[f"{name}.scales"] if is_ternary else None,
                int(arrays[f"{name}.group"]) if is_ternary else None,
            )
    return found
