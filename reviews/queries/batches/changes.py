"""What became of a batch since a page of it was made: said there, moving nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from journal import canonical
from journal.errors import FieldError
from reviews.batches import lists
from reviews.desk.batches.load import Loaded


@dataclass(frozen=True, slots=True)
class News:
    """The rows that are not as they were, and whether the batch is over."""

    rows: tuple[FieldError, ...]
    over: bool

    @property
    def by_request(self) -> dict[str, str]:
        """What to say of each."""
        return {one["path"]: one["message"] for one in self.rows}

    @property
    def said(self) -> str:
        """One sentence; empty when nothing changed."""
        if self.over:
            return "This batch is over. Nothing you press here is recorded."
        many = len(self.rows)
        if not many:
            return ""
        rows = "1 item" if many == 1 else f"{many} items"
        return f"{rows} changed, left or joined since this page was made."

    @property
    def etag(self) -> str:
        said = [self.said, *(f"{one['path']} {one['message']}" for one in self.rows)]
        return canonical.digest(canonical.encode(said)).removeprefix("sha256:")[:16]


def since(loaded: Loaded, marks: Mapping[str, str]) -> News:
    """By what each row was on the page."""
    if loaded.over:
        return News((), over=True)
    return News(tuple(lists.since(marks, [*loaded.members, *loaded.gone])), over=False)
