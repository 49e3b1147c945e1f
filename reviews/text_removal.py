"""The retention rule for what people and agents wrote: each class of it leaves the
database after the days of its setting. Hashes, votes and the log's proofs stay, the
pages say what was removed, and a record of the log says how much.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import Exists, Model, OuterRef, QuerySet

from journal import clock, log, sweeps
from journal.models import LogPayload, LogRecord
from journal.operations import operation

from . import locks
from .choices import OPEN, UNFINISHED, QuestionStatus
from .models import (
    ApprovalRequest,
    Decision,
    Execution,
    Message,
    Note,
    Question,
    Revision,
    SearchEntry,
    Snapshot,
    StateReading,
)
from .models.base import format_removal

CHUNK = 200
RETENTION_ACTOR = log.Actor("system", "retention")
# What the bytes of a removed action become; the database accepts nothing else.
NO_ARGUMENTS = b'{"args":{},"preconditions":{}}'
NO_FORM: dict[str, Any] = {"propertyOrder": [], "required": [], "properties": {}}
_KEPT_OF_EVIDENCE = ("kind", "source", "at", "file")
NOTHING: dict[str, Any] = {
    "canonical": NO_ARGUMENTS,
    **dict.fromkeys(["rationale", "expected_outcome", "reversal"], ""),
    "alternatives": [],
    "reading": {},
    "facts": {},
}

Row = TypeVar("Row", bound=Model)


def remove_old_texts() -> int:
    """Remove what is older than its setting, in chunks; return how many rows."""
    gone = 0
    for step in (
        remove_arguments,
        remove_questions,
        remove_messages,
        remove_notes,
        remove_log_texts,
    ):
        gone += sweeps.delete_in_chunks(step, whole=CHUNK)
    return gone


@operation(
    locks="revisions (skip locked)",
    writes="Revision, StateReading, Snapshot, SearchEntry",
    logs="texts.removed",
)
def remove_arguments() -> int:
    """Remove the arguments of up to 200 old revisions, what their agents wrote and what
    pages showed of them; return how many. Their hashes stay. One with a request that
    waits or an effect that has not ended keeps all of it."""
    days = settings.COUNTERSEAL.keep_arguments_days
    over = _compute_end(days)
    waiting = ApprovalRequest.with_canaries.filter(status__in=OPEN)
    under_way = Execution.objects.filter(status__in=UNFINISHED)
    old = Revision.objects.filter(
        *(
            ~Exists(rows.filter(proposal=OuterRef("proposal")))
            for rows in (
                waiting,
                under_way,
                Revision.objects.filter(created_at__gte=over),
            )
        ),
        ~Exists(StateReading.objects.filter(revision=OuterRef("pk"), at__gte=over)),
        ~Exists(
            Decision.objects.filter(
                request__proposal=OuterRef("proposal"), at__gte=over
            )
        ),
    )

    def remove(rows: list[Revision]) -> None:
        for row in rows:
            Revision.objects.filter(pk=row.pk).update(
                **NOTHING,
                evidence=[_strip_item(item, days) for item in row.evidence],
                removed_after=days,
            )
        StateReading.objects.filter(revision__in=rows).update(reading={})
        SearchEntry.objects.filter(revision__in=rows).delete()
        pages = Snapshot.objects.filter(
            decision__request__proposal__in={row.proposal_id for row in rows},
            removed_after=None,
        )
        pages.update(html=b"", inputs={}, removed_after=days)

    return _remove_texts("arguments", days, old, "created_at", remove)


def _strip_item(item: dict[str, Any], days: int) -> dict[str, Any]:
    """An item of evidence without its text and its table; the file's hash stays."""
    stays = {name: item[name] for name in _KEPT_OF_EVIDENCE if name in item}
    return {**stays, "removed_after": days}


@operation(locks="questions (skip locked)", writes="Question", logs="texts.removed")
def remove_questions() -> int:
    """Remove up to 200 old questions of agents with their forms and answers; return how
    many. Who answered stays."""
    days = settings.COUNTERSEAL.keep_questions_days

    def remove(rows: list[Question]) -> None:
        for answered in (True, False):
            some = Question.objects.filter(
                pk__in=[row.pk for row in rows], answer__isnull=not answered
            )
            some.update(
                text=format_removal("Text", days),
                schema=NO_FORM,
                answer={} if answered else None,
                note="",
                removed_after=days,
            )

    settled = Question.objects.exclude(status=QuestionStatus.OPEN)
    return _remove_texts("questions", days, settled, "settled_at", remove)


@operation(locks="messages (skip locked)", writes="Message", logs="texts.removed")
def remove_messages() -> int:
    """Remove the texts of up to 200 old messages between people and agents; return how
    many."""
    days = settings.COUNTERSEAL.keep_questions_days
    return _remove_remarks("messages", Message, days)


@operation(locks="notes (skip locked)", writes="Note", logs="texts.removed")
def remove_notes() -> int:
    """Remove the texts of up to 200 old notes of people; return how many."""
    return _remove_remarks("notes", Note, settings.COUNTERSEAL.keep_notes_days)


def _remove_remarks(what: str, model: type[Note | Message], days: int) -> int:
    def remove(rows: list[Any]) -> None:
        some = model.objects.filter(pk__in=[row.pk for row in rows])
        some.update(text=format_removal("Text", days), removed_after=days)

    settled = model.objects.exclude(request__status__in=OPEN)
    return _remove_texts(what, days, settled, "at", remove)


def _remove_texts(
    what: str,
    days: int,
    rows: QuerySet[Row],
    since: str,
    remove: Callable[[list[Row]], None],
) -> int:
    """Lock the oldest of these rows, remove what they say, and log how many."""
    if not days:
        return 0
    old = rows.filter(removed_after=None, **{f"{since}__lt": _compute_end(days)})
    locked = list(locks.lock_due_rows(old.order_by(since))[:CHUNK])
    return _log_removal(what, days, len(sweeps.apply_to_all(remove, locked)))


@operation(writes="LogPayload", logs="texts.removed")
def remove_log_texts() -> int:
    """Delete the texts and the salts of up to 200 old records of the log; return how
    many. The records stay, with the HMACs of the texts."""
    days = settings.COUNTERSEAL.keep_log_texts_days
    if not days:
        return 0
    oldest = LogPayload.objects.order_by("pk").values_list("pk", flat=True)
    pks = list(oldest[:CHUNK])
    if not pks:
        return 0
    records = LogRecord.objects.filter(  # the range leaves few partitions in the plan
        pk__gte=pks[0], pk__lte=pks[-1], pk__in=pks, at__lt=_compute_end(days)
    )
    old = list(records.values_list("pk", flat=True))
    texts = LogPayload.objects.filter(pk__gte=pks[0], pk__lte=pks[-1], pk__in=old)
    return _log_removal("log", days, texts.delete()[0])


def _compute_end(days: int) -> datetime:
    return clock.now() - timedelta(days=days)


def _log_removal(what: str, days: int, count: int) -> int:
    if count:
        log.append(
            "texts.removed",
            actor=RETENTION_ACTOR,
            at=clock.now(),
            data={"what": what, "count": count, "days": days},
        )
    return count
