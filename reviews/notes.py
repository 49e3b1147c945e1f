"""Words on a request's record beside a verdict. A note decides nothing and changes
nothing that is decided; the log has its proof, so that it can be erased."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from journal import clock, log
from journal.errors import NotFound, Unwritten
from policies.models import Person

from . import permissions, transitions
from .choices import NoteKind
from .models import ApprovalRequest, Note

TEXT_LENGTH = 2000


@transaction.atomic(durable=True)
def add(
    *, request_id: str, person: Person, text: str, kind: NoteKind = NoteKind.NOTE
) -> Note:
    """Write on the record of a request, whatever its state.

    Raises NotFound, Unwritten for no text, NotYours for who decides nothing in its
    queue.
    """
    request = (
        ApprovalRequest.objects.select_related("proposal").filter(pk=request_id).first()
    )
    if request is None:
        raise NotFound
    permissions.admitted_role(person, request.queue_id)
    if not text.strip():
        raise Unwritten
    return write(request, person, kind, text, now=clock.now())


def write(
    request: ApprovalRequest,
    person: Person,
    kind: NoteKind,
    text: str,
    *,
    now: datetime,
) -> Note:
    """The note and its record. Caller checked who writes, and holds a transaction."""
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
        actor=log.Actor("person", person.public_id),
        at=now,
        data={"kind": kind},
        private={"text": note.text},
        **transitions.request.context(request),
    )
    return note
