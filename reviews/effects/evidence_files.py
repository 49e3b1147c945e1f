"""What a page says of a file of evidence, from the revision alone.

The name is the agent's and untrusted, and so are the cells of a table; everything else
is the gate's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.template.defaultfilters import filesizeformat

_TYPES = {
    "application/pdf": "PDF",
    "text/csv": "CSV",
    "application/json": "JSON",
}


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file of evidence, as the revision names it."""

    name: str
    media_type: str
    size: int
    sha256: str
    sensitive: bool
    problem: str
    finds: str
    pictures: Sequence[tuple[int, int]]  # width and height in pixels
    count: int  # pages or frames of the file
    unit: str
    rows: int
    columns: int
    cut: bool
    table: Mapping[str, Any] | None

    @property
    def type_name(self) -> str:
        """`PDF`, `CSV`, `PNG`."""
        known = _TYPES.get(self.media_type)
        return known or self.media_type.removeprefix("image/").upper()

    @property
    def hash_prefix(self) -> str:
        return self.sha256[:19]

    @property
    def why_not(self) -> str:
        """Why a reviewer sees nothing of it; empty if they see something."""
        if self.problem:
            return f"This file cannot be shown, because {self.problem}."
        if not self.sensitive:
            return ""
        cause = f" Its text contains: {self.finds}." if self.finds else ""
        return f"Sensitive.{cause} Hidden until a person reveals it with a reason."

    @property
    def notes(self) -> list[str]:
        """How much of the file is shown, and what was not checked."""
        notes = []
        if len(self.pictures) < self.count:
            notes.append(
                f"{self.unit.capitalize()}s 1 to {len(self.pictures)} of"
                f" {self.count:,} are shown. The others are not."
            )
        if self.table is not None:
            notes += self._list_cuts(self.table)
        if self.finds:
            notes.append(f"Its text contains: {self.finds}. A picture is not redacted.")
        elif self.pictures and self.media_type != "application/pdf":
            notes.append("A picture is not checked for personal data or secrets.")
        return notes

    def _list_cuts(self, table: Mapping[str, Any]) -> list[str]:
        rows, columns = len(table["rows"]), len(table["columns"])
        cuts = []
        if rows < self.rows:
            cuts.append(f"Rows 1 to {rows} of {self.rows:,} are shown.")
        if columns < self.columns:
            cuts.append(f"Columns 1 to {columns} of {self.columns:,} are shown.")
        if self.cut:
            cuts.append("Long cells are cut; … marks where.")
        return cuts

    @property
    def texts(self) -> list[str]:
        """Everything in it that is untrusted text."""
        table = self.table or {"columns": [], "rows": []}
        cells = [cell for row in (table["columns"], *table["rows"]) for cell in row]
        return [self.name, *cells]

    @property
    def line(self) -> str:
        """The file on one line, for a reader who sees no pictures."""
        size = filesizeformat(self.size)
        return f"{self.name} ({self.type_name}, {size}, {self.sha256})"


def parse_file(item: Mapping[str, Any]) -> ShownFile | None:
    """The file of a stored item of evidence; None for an item without one."""
    file = item.get("file")
    if not file:
        return None
    return ShownFile(
        name=str(file["name"]),
        media_type=str(file["media_type"]),
        size=int(file["size"]),
        sha256=str(file["sha256"]),
        sensitive=bool(file["sensitive"]),
        problem=str(file["problem"]),
        finds=str(file["finds"]),
        pictures=[(int(w), int(h)) for w, h in file.get("pictures", [])],
        count=int(file.get("count", 0)),
        unit=str(file.get("unit", "page")),
        rows=int(file.get("rows", 0)),
        columns=int(file.get("columns", 0)),
        cut=bool(file.get("cut")),
        table=item.get("table"),
    )
