"""Since when a batch has been on a screen: its page says so itself, signed, and a page
made anew of the very same rows has been read since the first."""

from __future__ import annotations

from collections.abc import Mapping

from journal import canonical
from reviews.decisions import submission
from reviews.decisions.submission import Seen
from reviews.desk.batches.load import Loaded


def token(loaded: Loaded, before: str) -> str:
    """For a hidden field of the page; `before` is the one that was sent."""
    made = _made(loaded, loaded.marks)
    sent = submission.read_or_none(before)
    return (made.read_since(sent) if sent else made).token()


def took_ms(loaded: Loaded, marks: Mapping[str, str], sent: str) -> int | None:
    """How long a page with these rows was on the screen, in milliseconds; None where
    its token is not ours, or of another page."""
    page, ours = submission.read_or_none(sent), _made(loaded, marks)
    if page is None or not page.is_for(ours.person, ours.request):
        return None
    return page.took_ms(loaded.now) if page.digest == ours.digest else None


def _made(loaded: Loaded, marks: Mapping[str, str]) -> Seen:
    return Seen(
        person=loaded.person.public_id,
        request=loaded.batch.pk,
        version=0,  # a batch has none: its rows say what they are of
        action_hash="",
        digest=canonical.digest(canonical.encode(dict(marks))),
        rendered_at=loaded.now,
    )
