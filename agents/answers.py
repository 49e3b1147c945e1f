"""What one try of a letter came to, and when the next one is due. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

FIRST_REST, LONGEST_REST = timedelta(seconds=5), timedelta(hours=6)
LONGEST_ASKED = timedelta(hours=12)  # of a Retry-After
SLOW = 3.0  # seconds; whoever takes longer goes with those that fail
GONE = 410
ASKS_TO_WAIT = frozenset({429, 503})


@dataclass(frozen=True, slots=True)
class Answer:
    """What came. `status` is None when nobody answered; `error` is in our words, for
    an answer's own are not kept."""

    status: int | None
    error: str = ""
    retry_after: str = ""
    seconds: float = 0.0

    @property
    def well(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        return self.status == GONE

    @property
    def fails(self) -> bool:
        """Whether others must not wait for letters to this place."""
        return not self.well or self.seconds > SLOW

    def asked_rest(self, now: datetime) -> timedelta | None:
        """How long it asks to be left alone: seconds or a date (RFC 9110 10.2.3)."""
        text = self.retry_after.strip()
        if self.status not in ASKS_TO_WAIT:
            return None
        if text.isascii() and text.isdecimal() and len(text) < 10:
            return min(timedelta(seconds=int(text)), LONGEST_ASKED)
        try:
            until = parsedate_to_datetime(text)
        except (ValueError, OverflowError):  # a year that no clock shows
            return None
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return min(max(until - now, timedelta()), LONGEST_ASKED)


def heard(status: int, retry_after: str, seconds: float) -> Answer:
    """An answer came."""
    if 200 <= status < 300:
        return Answer(status, "", retry_after, seconds)
    error = f"it answered {status}"
    if 300 <= status < 400:
        error += "; redirects are not followed"
    return Answer(status, error, retry_after, seconds)


def later(attempts: int, answer: Answer, now: datetime) -> datetime:
    """The next try: after 5 s, doubling to 6 h; and never sooner than was asked for."""
    rest = min(FIRST_REST * 2 ** min(attempts - 1, 16), LONGEST_REST)
    asked = answer.asked_rest(now)
    wait: timedelta = max(rest, asked) if asked else rest
    return now + wait
