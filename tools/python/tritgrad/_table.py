"""Tables, as HTML for notebooks and as text for terminals."""

from html import escape
from typing import Any, Sequence


def cell_text(value: Any) -> str:
    """Returns a cell: numbers short, what is absent as a dash."""
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def to_html(caption: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns one <table> with every text escaped."""

    def row_html(tag: str, cells: Sequence[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell_text(c))}</{tag}>" for c in cells) + "</tr>"

    lines = [f"<caption>{escape(caption)}</caption>", f"<thead>{row_html('th', header)}</thead>"]
    lines += ["<tbody>", *(row_html("td", row) for row in rows), "</tbody>"]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def to_text(caption: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns lines with columns of equal width, the first aligned to the left."""
    cells = [list(header), *([cell_text(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]

    def line(row: Sequence[str]) -> str:
        first, *others = row
        padded = [first.ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(others, widths[1:])]
        return "  ".join(padded).rstrip()

    return "\n".join([caption, *map(line, cells)])
