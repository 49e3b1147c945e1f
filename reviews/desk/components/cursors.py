"""Where a page of a list ends: by key and not by offset, so that pages stay put."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from journal.errors import Invalid
from journal.errors import at as errors_at

_ID = re.compile(r"[a-z]-[a-z0-9]+")
_PART = re.compile(r"[a-z]*")


class Place(NamedTuple):
    """The last row of a page; `part` where a list is of several, one after another."""

    at: datetime
    pk: str
    part: str = ""


def write(place: Place) -> str:
    """The place as a caller sends it back."""
    text = f"{place.at.isoformat()}|{place.pk}|{place.part}"
    return base64.urlsafe_b64encode(text.encode()).decode()


def read(cursor: str) -> Place | None:
    """The place, None where the list begins. Raises Invalid for a cursor that the gate
    never gave."""
    if not cursor:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor).decode()
        said, _, rest = text.partition("|")
        moment = datetime.fromisoformat(said).astimezone(UTC)
        pk, _, part = rest.partition("|")
        if not (_ID.fullmatch(pk) and _PART.fullmatch(part)):
            raise ValueError(rest)
    except (ValueError, OverflowError):
        raise Invalid(errors=[errors_at("cursor", "not a cursor of ours")]) from None
    return Place(moment, pk, part)


def after(found: Sequence[Any], size: int, field: str, part: str = "") -> str | None:
    """The cursor behind the first `size` of these rows; None where no more follow."""
    if len(found) <= size:
        return None
    last = found[size - 1]
    return write(Place(getattr(last, field), last.pk, part))
