"""The built-in recipes."""

import json
from typing import Any, Dict, List

from ._errors import text
from ._library import lib


def recipes() -> List[Dict[str, Any]]:
    """Returns the built-in recipes, as `tritgrad recipes` lists them: a list that pandas.DataFrame
    takes, with "name", "about", "source", "format" and "rule" of the weights, "compute" and
    "bytes_per_parameter", by category."""
    return json.loads(text(lib.tg_recipes()))
