"""Texts beside a verdict: drafts and notes.

A draft holds what a person typed into one panel and did not send; no other panel shows
it. It is kept for a day, so that a refusal, an expiry or a new sign-in loses nothing. A
password is never part of it.

A note is a text on a request's record. It decides nothing. The log holds only a proof
of its text, so that the text can be erased.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from journal import clock, log
from journal.errors import NotFound, TextMissing
from journal.operations import operation
from policies import tools
from policies.models import Person
from policies.people import build_actor
from reviews import permissions, transitions
from reviews.choices import REASON_LABELS, NoteKind
from reviews.models import ApprovalRequest, Draft, Note

DRAFT_LIFETIME = timedelta(hours=24)
TEXT_LENGTH = 2000
EDITS_LENGTH = 64 * 1024  # the limit on one proposal's arguments
ARGUMENT_PREFIX = "arg."


def save_draft(
    *,
    person: Person,
    request_id: str,
    version: int,
    panel: str,
    reason_code: str = "",
    reason: str = "",
    edits: Mapping[str, str] | None = None,
) -> None:
    """Replace this person's draft of the panel; an empty one deletes it.

    `panel` is a verdict or the name of a message's panel. `edits` are form fields as
    typed. Fields that the tool marks sensitive are left out, and so are all edits when
    they are too long.
    """
    edits = _filter_storable_edits(request_id, edits or {})
    if not (reason.strip() or reason_code or edits):
        discard_drafts(person=person, request_id=request_id, panel=panel)
        return
    draft = Draft(
        person=person,
        request_id=request_id,
        version=version,
        panel=panel,
        reason_code=reason_code if reason_code in REASON_LABELS else "",
        reason=reason[:TEXT_LENGTH],
        edits=edits,
        saved_at=clock.now(),
    )
    Draft.objects.bulk_create(
        [draft],
        update_conflicts=True,
        unique_fields=["person", "request", "panel"],
        update_fields=["version", "reason_code", "reason", "edits", "saved_at"],
    )


def _filter_storable_edits(request_id: str, edits: Mapping[str, str]) -> dict[str, str]:
    if not edits:
        return {}
    hidden = _list_hidden_fields(request_id)
    storable = {
        name: text
        for name, text in edits.items()
        if not any(name == field or name.startswith(f"{field}.") for field in hidden)
    }
    size = sum(len(name) + len(text) for name, text in storable.items())
    return storable if size <= EDITS_LENGTH else {}


def _list_hidden_fields(request_id: str) -> list[str]:
    request = ApprovalRequest.with_canaries.filter(pk=request_id).first()
    if request is None or request.sealed.revision.tool is None:
        return []
    definition = tools.load_definition(request.sealed.revision.tool)
    return [ARGUMENT_PREFIX + name for name in definition.sensitive]


def list_drafts(person: Person, request_id: str) -> list[Draft]:
    """This person's drafts on the request from the last day, the newest first."""
    drafts = Draft.objects.filter(person=person, request=request_id)
    recent = drafts.filter(saved_at__gt=clock.now() - DRAFT_LIFETIME)
    return list(recent.order_by("-saved_at", "panel"))


def find_draft(person: Person, request_id: str, panel: str) -> Draft | None:
    """This person's draft of one panel from the last day; None without one."""
    drafts = list_drafts(person, request_id)
    return next((draft for draft in drafts if draft.panel == panel), None)


def discard_drafts(*, person: Person, request_id: str, panel: str = "") -> None:
    """Delete this person's draft of the panel, or without one all their drafts on the
    request: after they were sent or are no longer needed."""
    drafts = Draft.objects.filter(person=person, request=request_id)
    (drafts.filter(panel=panel) if panel else drafts).delete()


def delete_old_drafts() -> int:
    """Delete drafts that are older than a day. Returns how many."""
    old = Draft.objects.filter(saved_at__lte=clock.now() - DRAFT_LIFETIME)
    return old.delete()[0]


@operation(writes="Note", logs="note.added")
def add_note(*, request_id: str, person: Person, text: str) -> Note:
    """Add a note to a request in any state. Raises NotFound, TextMissing for an empty
    text, NotPermitted for a person who may decide nothing in its queue."""
    requests = ApprovalRequest.with_canaries.select_related("proposal")
    own = requests.filter(canary_for__in=["", person.public_id])
    request = own.filter(pk=request_id).first()
    if request is None:
        raise NotFound
    permissions.check_admitted_to_queue(person, request.queue_id)
    if not text.strip():
        raise TextMissing
    return create_note(request, person, NoteKind.NOTE, text, now=clock.now())


def create_note(
    request: ApprovalRequest,
    person: Person,
    kind: NoteKind,
    text: str,
    *,
    now: datetime,
) -> Note:
    """Create the note and its log record, as a step. Caller checked the author and the
    text, and holds a transaction."""
    note = Note.objects.create(
        request=request,
        version=request.version,
        author=person,
        kind=kind,
        text=text.strip()[:TEXT_LENGTH],
        at=now,
    )
    log.append(
        "note.added",
        actor=build_actor(person),
        at=now,
        data={"kind": kind},
        private={"text": note.text},
        **transitions.request.context(request),
    )
    return note
