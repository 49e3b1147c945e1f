"""The rows that must be opened before a batch is approved: picked by us, so that nobody
who proposes or approves can tell beforehand which (ux.md 4.3)."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core import signing
from django.utils.dateparse import parse_datetime

SALT = "reviews.opened"
SMALL = 20  # up to so many items
OF_SMALL, OF_LARGE = 3, 5


def picked(batch: str, requests: Sequence[str], outliers: Sequence[str]) -> list[str]:
    """Which rows to open, in no order: those that stand out first, then by lot."""
    count = OF_SMALL if len(requests) <= SMALL else OF_LARGE
    odd = [one for one in outliers if one in requests]
    others = [one for one in requests if one not in odd]
    others.sort(key=lambda one: _lot(batch, one))
    return [*odd, *others][:count]


def _lot(batch: str, request: str) -> bytes:
    text = f"sample|{batch}|{request}".encode()
    return hmac.digest(settings.HOLDPOINT.tag_key, text, "sha256")


@dataclass(frozen=True, slots=True)
class Opened:
    """One row that was opened: as it was then, and when."""

    request: str
    mark: str
    at: datetime


def token(*, batch: str, person: str, request: str, mark: str, at: datetime) -> str:
    """What an opened row leaves on the page: bound to person, batch and content."""
    said = [batch, person, request, mark, at.isoformat()]
    return signing.dumps(said, salt=SALT)


def read(
    tokens: Iterable[str], *, batch: str, person: str, marks: Mapping[str, str]
) -> dict[str, Opened]:
    """The rows that were opened as they are now, the first time each was."""
    found: dict[str, Opened] = {}
    for text in tokens:
        one = _read(text, batch, person)
        if one is not None and marks.get(one.request) == one.mark:
            found.setdefault(one.request, one)
    return found


def _read(text: str, batch: str, person: str) -> Opened | None:
    try:
        of, by, request, mark, at = signing.loads(text, salt=SALT)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    moment = parse_datetime(str(at))
    if (of, by) != (batch, person) or moment is None:
        return None
    return Opened(request, mark, moment)


def recorded(opened: Mapping[str, Opened], now: datetime) -> dict[str, dict[str, Any]]:
    """For the decision: each opened row and the seconds until the next was opened, or
    until the commit. No page can know more of how long it was read."""
    rows = sorted(opened.values(), key=lambda one: one.at)
    ends = [*(one.at for one in rows[1:]), now]
    return {
        one.request: {"opened": True, "seconds": _seconds(end - one.at)}
        for one, end in zip(rows, ends, strict=False)
    }


def _seconds(span: timedelta) -> int:
    return max(int(span.total_seconds()), 0)
