"""What a recogniser reports."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """A place in the folded text, its kind, and the value in its normal form."""

    start: int
    end: int
    kind: str
    value: str
