"""The members of a batch as rows of its table, one of them opened in it, and the
samples that must be opened before an approval.

The gate picks the samples by a keyed hash, so that neither the agent nor the reviewer
can predict them.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core import signing
from django.urls import reverse
from django.utils.dateparse import parse_datetime

from journal.errors import NotFound
from reviews.batches.membership import BatchMember
from reviews.effects import describe
from reviews.presenters import Presentation
from reviews.presenters.shapes import Cell, ValueRow

from ..components import states, undo
from ..components.undo import ReversedEffect
from .columns import BatchColumn, BatchTable, BatchTableEntry
from .load import LoadedBatch
from .selection import BatchSelection
from .table import build_subject, find_reading

OPENED_SALT = "reviews.opened"
SMALL_BATCH = 20  # items; a larger batch has more samples
OF_SMALL, OF_LARGE = 3, 5


def pick_samples(
    batch: str, requests: Sequence[str], outliers: Sequence[str]
) -> list[str]:
    """Pick the samples, in no particular order: outliers first, then by keyed hash."""
    count = OF_SMALL if len(requests) <= SMALL_BATCH else OF_LARGE
    odd = [request for request in outliers if request in requests]
    others = [request for request in requests if request not in odd]
    others.sort(key=lambda request: _compute_lot(batch, request))
    return [*odd, *others][:count]


def _compute_lot(batch: str, request: str) -> bytes:
    text = f"sample|{batch}|{request}".encode()
    return hmac.digest(settings.COUNTERSEAL.tag_key, text, "sha256")


def create_opened_token(
    *, batch: str, person: str, request: str, mark: str, at: datetime
) -> str:
    """Sign that a row was opened; the token is bound to person, batch and content."""
    content = [batch, person, request, mark, at.isoformat()]
    return signing.dumps(content, salt=OPENED_SALT)


def read_opened_tokens(
    tokens: Iterable[str], *, batch: str, person: str, marks: Mapping[str, str]
) -> dict[str, datetime]:
    """Read when the rows were first opened that still are as they were then."""
    opened: dict[str, datetime] = {}
    for token in tokens:
        try:
            of, by, request, mark, at = signing.loads(token, salt=OPENED_SALT)
        except (signing.BadSignature, ValueError, TypeError):
            continue
        moment = parse_datetime(str(at))
        if (of, by) == (batch, person) and moment and marks.get(request) == mark:
            opened.setdefault(request, moment)
    return opened


def build_opened_record(
    opened: Mapping[str, datetime], now: datetime
) -> dict[str, dict[str, Any]]:
    """Build the record for the decision: the seconds that each opened row was in view.

    A row counts until the next one was opened, or until the commit. The page cannot
    know any better how long somebody read it.
    """
    rows = sorted(opened.items(), key=lambda row: row[1])
    ends = [*(at for _, at in rows[1:]), now]
    return {
        request: {"opened": True, "seconds": max(int((end - at).total_seconds()), 0)}
        for (request, at), end in zip(rows, ends, strict=False)
    }


@dataclass(frozen=True, slots=True)
class BatchSamples:
    """The rows to open before an approval, and when each row was opened."""

    ids: Sequence[str]
    opened: Mapping[str, datetime]


def build_samples(
    loaded: LoadedBatch, tokens: Iterable[str], table: BatchTable
) -> BatchSamples:
    return BatchSamples(
        pick_samples(loaded.batch.pk, loaded.choosable, table.outliers),
        read_opened_tokens(
            tokens,
            batch=loaded.batch.pk,
            person=loaded.person.public_id,
            marks=loaded.marks,
        ),
    )


@dataclass(frozen=True, slots=True)
class BatchRow:
    id: str
    url: str
    sent: str  # what the form sends for it, as `format_sent_row` formats it
    before: str  # the mark that it had before it changed
    entry: BatchTableEntry
    reverses: ReversedEffect | None  # the effect that it undoes
    others: Sequence[tuple[BatchColumn, Cell]]
    changed: str
    blocked: str
    with_agent: str  # that people have sent it back to the agent; empty if not
    parent_ended: str  # that the call it is part of ended without running
    checked: bool
    sample: bool
    peek: BatchPeek | None  # None until it is opened


@dataclass(frozen=True, slots=True)
class BatchPeek:
    """Regions R1 to R3 of one member, opened in the table."""

    id: str
    url: str
    shown: Presentation | None
    rest: Sequence[tuple[str, Cell]]  # the arguments that are in no change
    at: datetime
    token: str

    @property
    def current(self) -> tuple[ValueRow, ...]:
        """The state from the reader that no argument refers to."""
        return (*self.shown.top, *self.shown.now) if self.shown else ()


def format_sent_row(member: BatchMember) -> str:
    """Format what the form sends for a row: request, mark, version and reading."""
    reading = member.reading.pk if member.reading else ""
    return f"{member.id}~{member.mark}~{member.version.number}~{reading}"


def build_peek(
    loaded: LoadedBatch, member: BatchMember, at: datetime | None = None
) -> BatchPeek:
    """Build the opened view of one member, with the token that it was opened. `at` is
    when; it defaults to now."""
    revision, at = member.version.revision, at or loaded.now
    shown = describe.build_presentation(revision, find_reading(member))
    subject = build_subject(revision, member.definition)
    changed = {change.path for change in shown.changes} if shown else set()
    return BatchPeek(
        id=member.id,
        url=reverse("reviews:request_detail", args=[member.id]),
        shown=shown,
        rest=[
            (subject.label(leaf.path), subject.cell(leaf))
            for leaf in subject.leaves
            if leaf.path not in changed
        ],
        at=at,
        token=create_opened_token(
            batch=loaded.batch.pk,
            person=loaded.person.public_id,
            request=member.id,
            mark=loaded.marks[member.id],
            at=at,
        ),
    )


def load_peek(loaded: LoadedBatch, request_id: str) -> BatchPeek:
    """Find a member by request and open it. Raises NotFound if it is no member."""
    for member in loaded.members:
        if member.id == request_id:
            return build_peek(loaded, member)
    raise NotFound


def build_rows(
    loaded: LoadedBatch,
    selection: BatchSelection,
    table: BatchTable,
    ticked: Collection[str],
    samples: BatchSamples,
) -> list[BatchRow]:
    """Build a row for every member: first the rows that changed, then the outliers,
    then the others in the order in which they will run. Two queries at most."""
    members = {member.id: member for member in loaded.members}
    proposals = [member.request.proposal for member in loaded.members]
    parents, reverses = (
        states.list_ended_parents(proposals),
        undo.group_reversals(proposals),
    )

    def build_row(entry: BatchTableEntry) -> BatchRow:
        member = members[entry.id]
        since, mark = member.request.with_agent_since, selection.before.get(entry.id)
        parent = parents.get(member.request.proposal.parent)
        return BatchRow(
            id=entry.id,
            url=reverse("reviews:batch_item", args=[loaded.batch.pk, entry.id]),
            sent=format_sent_row(member),
            before="" if mark is None else f"{entry.id}~{mark}",
            entry=entry,
            reverses=reverses.get(member.request.proposal_id),
            others=list(zip(table.columns, entry.cells, strict=True))[1:],
            changed=selection.changed.get(entry.id, ""),
            blocked=loaded.blocked(member),
            with_agent=states.format_with_agent(since) if since else "",
            parent_ended=f"The call that it is part of {parent.said}" if parent else "",
            checked=entry.id in ticked,
            sample=entry.id in samples.ids,
            peek=build_peek(loaded, member, samples.opened.get(entry.id))
            if entry.id in {*samples.opened, *selection.open_now}
            else None,
        )

    return [build_row(entry) for entry in selection.sort_entries(table.entries)]
