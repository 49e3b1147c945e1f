"""Whether each mail that was promised reached the mail server, and how many came twice:
the outbox promises at least once, for a worker may die between the server's 250 and its
own note of it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from journal import clock
from journal.models import OutboxMessage
from reviews.channels.lines import WHAT
from reviews.choices import AlarmStatus
from reviews.models import Alarm, Execution, Notice

from .receivers import Postbook

TASKS = "reviews.tasks.mail_"  # how the names begin of those that plan mails
KINDS = {"announced": "ran"}  # what they plan, where it has another name
Key = tuple[str, str, str]  # to whom, of what kind, about what
GATHERED = "gathered"  # many in one mail, about nothing alone
MANY = re.compile(r"\d+ (messages?|requests? waits?) for you")


@dataclass
class Mails:
    """Sentences about what is wrong, and numbers about the rest."""

    missing: list[str] = field(default_factory=list)
    unplanned: list[str] = field(default_factory=list)
    promises: int = 0  # kept, by the outbox
    planned: int = 0  # by them, one a person
    sent: int = 0
    let_go: int = 0
    later: int = 0  # one has had enough of them for an hour
    arrived: int = 0
    twice: int = 0


def look(book: Postbook) -> Mails:
    """Once all is quiet."""
    found, arrived = Mails(), Counter(_keys(book, kinds=_kinds()))
    found.arrived = arrived.total()
    rows = Notice.objects.select_related("person", "request", "execution", "alarm")
    notices = list(rows)
    _promises(found, notices)
    sent: Counter[Key] = Counter()
    for notice in notices:
        sent[_key(notice)] += _went(found, notice) and not notice.digest
    sent.update(_gathered(notices))
    for key in sent.keys() | arrived.keys():
        _compare(found, key, sent, arrived)
    return found


def _gathered(notices: list[Notice]) -> Counter[Key]:
    """Mails of many messages: these were sent to one person in one moment."""
    of = {(one.person.email, one.sent_at) for one in notices if one.digest}
    return Counter((email, GATHERED, "") for email, at in of if at is not None)


def _kinds() -> list[tuple[str, str]]:
    """What a subject begins with, the longest first."""
    words = ((what, kind) for kind, what in WHAT.items())
    return sorted(words, key=lambda one: -len(one[0]))


def _keys(book: Postbook, *, kinds: list[tuple[str, str]]) -> list[Key]:
    return [_read(one.recipient, one.subject, kinds) for one in book.mails()]


def _read(recipient: str, subject: str, kinds: list[tuple[str, str]]) -> Key:
    if MANY.fullmatch(subject):
        return recipient, GATHERED, ""
    kind = next((kind for what, kind in kinds if subject.startswith(what)), "")
    about = subject.rpartition("(")[2].removesuffix(")")
    return recipient, kind, about


def _key(notice: Notice) -> Key:
    about = notice.request_id or notice.execution_id or notice.alarm_id or ""
    return notice.person.email, notice.kind, str(about)


def _promises(found: Mails, notices: list[Notice]) -> None:
    """A promise that is kept has planned at least one person's mail."""
    about = {(notice.kind, _key(notice)[2]) for notice in notices}
    closed = Alarm.objects.filter(status=AlarmStatus.CLOSED)
    over = {str(pk) for pk in closed.values_list("pk", flat=True)}
    ran = dict(Execution.objects.values_list("proposal_id", "pk"))
    kept = OutboxMessage.objects.filter(task__startswith=TASKS, done_at__isnull=False)
    for task, subject in kept.values_list("task", "subject"):
        found.promises += 1
        name = task.removeprefix(TASKS)
        told = KINDS.get(name, name), ran.get(subject, subject)
        if subject not in over and told not in about:
            found.missing.append(f"{name} {subject}: nobody was written to")


def _went(found: Mails, notice: Notice) -> bool:
    """Whether it was sent; the clock may forbid it, or nothing is left to say."""
    found.planned += 1
    found.sent += notice.sent_at is not None
    found.let_go += bool(notice.let_go)
    if notice.sent_at is None and not notice.let_go:
        if notice.due_at > clock.now():
            found.later += 1
        else:
            found.missing.append(f"{notice.kind} of {_key(notice)[2]}: never sent")
    return notice.sent_at is not None


def _compare(found: Mails, key: Key, sent: Counter[Key], arrived: Counter[Key]) -> None:
    if key not in sent:
        found.unplanned.append(" ".join(key))
    if arrived[key] < sent[key]:
        said = f"{arrived[key]} of {sent[key]} arrived"
        found.missing.append(f"{' '.join(key)}: {said}")
    found.twice += max(arrived[key] - max(sent[key], 1), 0)
