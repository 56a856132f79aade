"""Specs: dictionaries with the command line's keys, as JSON for the library."""

import json
import os
from typing import Any, Dict, Mapping, Optional, Tuple

import numpy as np

# Options of the data, which `tritgrad train --help` lists first; all others are of the run.
DATA_KEYS = ("data", "task", "label", "header", "missing", "max_categories", "columns", "drop",
             "words", "tokens", "resize")


def _plain(value: Any) -> Any:
    """Turns NumPy's numbers and arrays, and paths, into what JSON has."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError


def to_json(spec: Mapping[str, Any], what: str = "spec") -> bytes:
    """Returns JSON, or raises ValueError that names the key whose value JSON does not have."""
    texts = []
    for key, value in spec.items():
        try:
            text = json.dumps(value, default=_plain, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise ValueError(
                f"{what}: {key!r} is of type {type(value).__name__}, or holds what JSON has not; a "
                "finite number, a text, True, False, None or a list of these expected"
            ) from None
        texts.append(f"{json.dumps(str(key))}: {text}")
    return ("{" + ", ".join(texts) + "}").encode()


def merged(spec: Optional[Mapping[str, Any]], options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the keys of a spec and those that were given as keywords."""
    if spec is not None and not isinstance(spec, Mapping):
        raise ValueError(
            f'spec: {type(spec).__name__} found, a dictionary such as {{"recipe": "latent8"}} '
            "expected"
        )
    both = sorted(set(spec or ()) & set(options))
    if both:
        raise ValueError(f"spec: {both[0]!r} is given twice, in the dictionary and by its name")
    return {**(spec or {}), **options}


def split(spec: Mapping[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Returns the options of the data, and those of the run."""
    of_data = {key: value for key, value in spec.items() if key in DATA_KEYS}
    return of_data, {key: value for key, value in spec.items() if key not in DATA_KEYS}
