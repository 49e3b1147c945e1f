"""The log in a terminal: the same records as the pages show an auditor, as lines of
inert text or as JSON Lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from django.db.models import QuerySet

from journal import clock
from journal.models import LogPosition, LogRecord
from policies.calendars import parse_duration
from reviews import permissions
from reviews.presenters import inert

from ..components import log_lines
from .exports import format_json_lines
from .filters import LogFilters, select_records

POLL_S = 1.0  # the sequencer places records once a second
CHUNK = 500  # records read at once while following


def parse_since(text: str) -> str:
    """A time of the past as the log's filter takes it: `90s`, `1h` or `7d` ago, or a
    date or time itself. Raises ValueError."""
    try:
        return (clock.now() - parse_duration(text)).isoformat()
    except OverflowError:
        raise ValueError("that is before the years that the log has") from None
    except ValueError:
        filters = LogFilters.read({"after": text})
        if not filters.after:
            raise ValueError(
                "write a duration such as 1h, a date such as 2026-11-28, or a time"
                " such as 2026-11-28T14:05:00Z"
            ) from None
        return filters.after


def list_newest_records(filters: LogFilters, most: int) -> list[LogRecord]:
    """The newest records that fit, the oldest of them first."""
    records = select_records(permissions.build_auditor(), filters)
    return list(reversed(records[:most]))


def follow_records(filters: LogFilters, most: int) -> Iterator[list[LogRecord]]:
    """The newest records that fit, then new ones as they come, without end. They come
    in the order of the log, so that none is left out whichever transaction ends first:
    a record comes once the sequencer has placed it."""
    seen = _find_newest_place()
    newest = _select_placed(filters).filter(position__seq__lte=seen)
    yield list(reversed(newest.order_by("-position__seq")[:most]))
    while True:
        last = _find_newest_place()
        new = _select_placed(filters).filter(
            position__seq__gt=seen, position__seq__lte=last
        )
        rows = list(new.order_by("position__seq")[:CHUNK])
        seen = rows[-1].position.seq if len(rows) == CHUNK else last
        if rows:
            yield rows
        else:
            time.sleep(POLL_S)


def _find_newest_place() -> int:
    positions = LogPosition.objects.order_by("-seq").values_list("seq", flat=True)
    newest = positions.first()
    return -1 if newest is None else newest


def _select_placed(filters: LogFilters) -> QuerySet[LogRecord]:
    records = select_records(permissions.build_auditor(), filters)
    return records.filter(position__isnull=False)


def format_records(rows: list[LogRecord], *, as_json: bool) -> Iterator[str]:
    """Each record as one line without its line break, in ASCII where `as_json`."""
    lines = log_lines.build_log_lines(permissions.build_auditor(), rows)
    if as_json:
        for text in format_json_lines(zip(rows, lines, strict=True)):
            yield text.rstrip("\n").replace("\x7f", "\\u007f")
        return
    for line in lines:
        yield _format_line(line)


def _format_line(line: log_lines.LogLine) -> str:
    wording = "".join(part.text for part in line.wording)
    effect = "".join(part.text for part in line.effect)
    number = "not placed yet" if line.seq is None else f"{line.seq}"
    details = [line.ended, line.answer, ", ".join(line.flags)]
    said = ": ".join(text for text in (wording, effect) if text)
    more = "; ".join(text for text in details if text)
    about = line.proposal or line.kind
    text = f"{said}{f' ({more})' if more else ''}  [{about}]"
    return f"{format_time(line.at)}  {number:>6}  {inert.format_line(text)}"


def format_time(at: datetime) -> str:
    """A time with its zone, which is UTC for every reader of a terminal."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
