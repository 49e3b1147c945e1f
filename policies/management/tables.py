"""Rows of a command's output, in columns or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.core.management.base import CommandParser, OutputWrapper


def add_json_option(parser: CommandParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, in ASCII")


def format_json(value: Any) -> str:
    """JSON that nothing in it can act on a terminal by."""
    return json.dumps(value, indent=2, default=str).replace("\x7f", "\\u007f")


def write_rows(
    out: OutputWrapper, rows: Sequence[Mapping[str, Any]], *, in_json: bool, empty: str
) -> None:
    """Write a list as JSON or as a table; `empty` in place of a table without rows. The
    caller has made the texts of a table inert."""
    if in_json:
        out.write(format_json(rows))
        return
    for line in format_table(rows):
        out.write(line)
    if not rows:
        out.write(empty)


def format_table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows, each a line below a line of their names. The caller has made the texts
    inert."""
    if not rows:
        return
    lines = [[name.replace("_", " ") for name in rows[0]]]
    lines += [[format_cell(value) for value in row.values()] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "  ".join(cells).rstrip()


def format_fields(row: Mapping[str, Any]) -> Iterator[str]:
    """One row, a line for each of its values. The caller makes the lines inert."""
    for label, value in row.items():
        yield f"{label.replace('_', ' ')}: {format_cell(value)}"


def format_cell(value: Any) -> str:
    """A value as one cell. A list is joined by commas, what is empty or null is a
    dash."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    return "-" if value is None or value == "" else str(value)
