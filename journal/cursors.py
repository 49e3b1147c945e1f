"""Cursors of paged lists: they name the last row by its key rather than an offset, so
that pages do not shift."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from django.db.models import Model, Q, QuerySet

from journal import clock
from journal.errors import InvalidInput, build_field_error

_ID = re.compile(r"[a-z]+-[a-z0-9]+")
M = TypeVar("M", bound=Model)
_PART = re.compile(r"[a-z]*")


def count_rest(queryset: QuerySet[Any], shown: Sequence[Any], most: int) -> int:
    """How many rows of `found` a list that shows at most `most` leaves out; without a
    query unless the list is full."""
    return max(queryset.count() - most, 0) if len(shown) == most else 0


class CursorPosition(NamedTuple):
    """The last row of a page; `part` names the list on a page that joins several."""

    at: datetime
    pk: str
    part: str = ""


def encode_cursor(place: CursorPosition) -> str:
    """The opaque text that a caller sends back for the next page."""
    text = f"{place.at.isoformat()}|{place.pk}|{place.part}"
    return base64.urlsafe_b64encode(text.encode()).decode()


def parse_cursor(cursor: str) -> CursorPosition | None:
    """The position in a cursor; None for an empty one, where the list begins. Raises
    InvalidInput for a cursor that the gate did not issue."""
    if not cursor:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor).decode()
        instant, _, rest = text.partition("|")
        moment = clock.check_usable(datetime.fromisoformat(instant).astimezone(UTC))
        pk, _, part = rest.partition("|")
        if not (_ID.fullmatch(pk) and _PART.fullmatch(part)):
            raise ValueError(rest)
    except (ValueError, OverflowError):
        raise InvalidInput(
            errors=[build_field_error("cursor", "not a cursor of ours")]
        ) from None
    return CursorPosition(moment, pk, part)


def select_after(
    rows: QuerySet[M],
    place: CursorPosition | None,
    field: str,
    *,
    newest_first: bool = False,
) -> QuerySet[M]:
    """The rows after a position, in the order of a time and the key; all of them where
    the list begins. `field` is the attribute with the row's time."""
    sign, side = ("-", "lt") if newest_first else ("", "gt")
    ordered = rows.order_by(f"{sign}{field}", f"{sign}pk")
    if place is None:
        return ordered
    same_time = Q(**{field: place.at, f"pk__{side}": place.pk})
    return ordered.filter(Q(**{f"{field}__{side}": place.at}) | same_time)


def build_next_cursor(
    rows: Sequence[Any], size: int, field: str, part: str = ""
) -> str | None:
    """The cursor after the first `size` of these rows; None where no more follow.
    `field` is the attribute with the row's time."""
    if len(rows) <= size:
        return None
    last = rows[size - 1]
    return encode_cursor(CursorPosition(getattr(last, field), last.pk, part))
