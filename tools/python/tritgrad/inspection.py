"""Where the bytes of a model are."""

from typing import Any, Dict, List, Tuple

from . import _table

_HEADER = ("tensor", "shape", "format", "rule")


class Inspection:
    """The table of `tritgrad inspect`: bytes of every tensor by category. Notebooks show it as a
    table, print() as text; to_dict() is all of `tritgrad inspect --json`."""

    def __init__(self, found: Dict[str, Any]) -> None:
        self._found = found

    def to_dict(self) -> Dict[str, Any]:
        """Returns a dictionary with "parameters", "bytes_per_parameter", "tensors" and more."""
        return self._found

    def _table(self) -> Tuple[str, List[str], List[List[Any]]]:
        found = self._found
        per_parameter = found["bytes_per_parameter"]
        categories = list(per_parameter)
        rows: List[List[Any]] = []
        for tensor in found["tensors"]:
            shape = f"{tensor['rows']} x {tensor['cols']}"
            bytes_of = [tensor["bytes"][category] for category in categories]
            rows.append([tensor["name"], shape, tensor["format"], tensor["rule"], *bytes_of])
        live = found["live_bytes"]
        rows.append(["bytes", "", "", "", *(live[category] for category in categories)])
        rows.append(["bytes a parameter", "", "", "", *per_parameter.values()])
        caption = f"{found['model']}, {found['recipe']}: {found['parameters']} parameters"
        return caption, [*_HEADER, *categories], rows

    def _repr_html_(self) -> str:
        return _table.to_html(*self._table())

    def __repr__(self) -> str:
        return _table.to_text(*self._table())
