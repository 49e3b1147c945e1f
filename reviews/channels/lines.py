"""What a message says in a word, and which messages ask for something."""

from __future__ import annotations

from reviews.models import Notice
from reviews.notifications import email

WHAT = {
    "opened": "Waits for you",
    "escalated": "Escalated to you",
    "returned": "Returned with guidance",
    "due_soon": "Expires soon",
    "assigned": "Given to you",
    "freed": "Free again",
    "offered": "Offered to you",
    "broken": "Your hold was ended",
    "handed_over": "Taken over from you",
    "revoked": "Asked again: an approval was revoked",
    "settled": "Settled",
    "ran": "Ran without asking",
    "unknown": "Nobody knows whether this ran",
    "cancelled": "Does not run: its approval was revoked",
    "alarm": "Alarm",
}
# Of these there is nothing to say any more once it is decided.
WAITING = frozenset(
    {"opened", "escalated", "returned", "due_soon", "assigned", "freed", "offered"}
    | {"broken", "handed_over", "revoked"}
)
# These are said because somebody else is at it.
WHILE_HELD = frozenset({"offered", "broken", "handed_over"})


def line(notice: Notice) -> email.Line:
    """As a mail says it."""
    about = notice.request or notice.execution or notice.alarm
    assert about is not None  # the database says so
    ends = f", {about.status}" if notice.kind == "settled" else ""
    return email.Line(f"{WHAT[notice.kind]}{ends}", about, notice.kind in WAITING)
