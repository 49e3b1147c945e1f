"""What leaves the desk, mails and exported files: whether it holds a word of an agent's
that it must not, or anything that is obeyed or cannot be seen."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Sequence

from django.core import mail
from django.core.mail import EmailMessage

from desk.log import exports
from hitl import tasks
from journal.models import OutboxMessage
from notifications import events
from notifications.channels import content, email
from notifications.channels.contract import MessageLine
from policies.models import Person
from reviews.models import ApprovalRequest, Execution
from tests.browser.hostile import MARK
from tests.browser.naughty import check_shown, is_seen

BEGINS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def mails(chosen: Sequence[str]) -> int:
    """Mails hold facts and no word of the agent's; nothing in them is unseen."""
    messages = OutboxMessage.objects.filter(task="hitl.tasks.notify_people").order_by(
        "pk"
    )
    for message in messages:
        getattr(tasks, message.task.rsplit(".", 1)[1])(message.pk)
    _gather()
    assert mail.outbox
    # A plain word or number is what mails may say of an argument.
    long = [t for t in chosen if len(t) > 12 and not content.PLAIN_VALUE.fullmatch(t)]
    for one in mail.outbox:
        _check_mail(one, long)
    return len(mail.outbox)


def _gather() -> None:
    """One mail about all of them, and one of every kind about the newest."""
    person = Person.objects.get(username="sue")
    waiting = [MessageLine("Waits", one, True) for one in ApprovalRequest.objects.all()]
    email.send_digest_mail(person, waiting)
    request = ApprovalRequest.objects.latest("opened_at")
    execution = Execution.objects.latest("queued_at")
    for kind, what in events.NOTICE_TITLES.items():
        about = execution if kind in ("ran", "unknown") else request
        email.send_mail(person, MessageLine(what, about))


def _check_mail(one: EmailMessage, long: Sequence[str]) -> None:
    raw = f"{one.subject}{one.body}"
    assert MARK not in raw
    assert [text for text in long if text in raw] == []
    assert is_seen(raw)
    assert "\n" not in one.subject
    assert "http://evil.example" not in raw
    assert one.content_subtype == "plain"
    assert not getattr(one, "alternatives", None)


def files(auditor: Person, chosen: Sequence[str]) -> int:
    """The whole log as it is exported; how many cells."""
    for row in _exported(auditor, "jsonl").splitlines():
        assert row.isascii()
        assert row.isprintable()
        assert json.loads(json.loads(row)["leaf"])
    rows = list(csv.reader(io.StringIO(_exported(auditor, "csv").lstrip("\ufeff"))))
    for cell in itertools.chain(*rows):
        assert is_seen(cell), cell
        assert "\n" not in cell
        assert cell.lstrip(" ")[:1] not in BEGINS
    check_shown(chosen, "\n".join(row[7] for row in rows), redacted=False)
    return sum(map(len, rows))


def _exported(auditor: Person, file_format: str) -> str:
    person = Person.objects.get(pk=auditor.pk)
    export = exports.create_export(person=person, file_format=file_format, query="")
    while not exports.write_export(export.pk):
        pass
    done = exports.load_finished_export(person, export.pk)
    return b"".join(done.parts.stream_bodies()).decode()
