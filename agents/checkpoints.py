"""Checkpoints: an agent's suspended state. It has a redacted summary and state, which
people read, and an opaque blob for the agent alone, encrypted under the thread's key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from journal import encryption, writes
from reviews.redaction.redactor import Redactor

from .models import Checkpoint, Thread


@dataclass(frozen=True, slots=True)
class SuspendedState:
    """The state that an agent sends to resume from later, before redaction."""

    summary: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    blob: bytes | None = None
    resume_at: str = ""


def format_key_binding(thread: Thread) -> str:
    """Return the associated data that binds a key to its thread, so that the key opens
    no other thread's blobs."""
    return f"thread {thread.pk}"


def save_checkpoint(
    thread: Thread,
    suspended: SuspendedState,
    *,
    number: int,
    proposal: str,
    redactor: Redactor,
    now: datetime,
) -> Checkpoint:
    """Store the thread's next checkpoint, `number`: redact the summary and the state,
    encrypt the blob. Caller holds the thread's lock and a transaction."""
    blob = suspended.blob
    checkpoint = Checkpoint(
        thread=thread,
        number=number,
        proposal=proposal,
        summary=redactor.text(suspended.summary),
        state=redactor.foreign(suspended.state),
        blob=_seal_blob(thread, blob) if blob is not None else None,
        blob_digest="sha256:" + hashlib.sha256(blob).hexdigest() if blob else "",
        blob_bytes=len(blob or b""),
        resume_at=suspended.resume_at,
        created_at=now,
    )
    writes.insert_rows([checkpoint])
    return checkpoint


def correct_checkpoint(
    latest: Checkpoint,
    *,
    resume_at: str,
    state: Mapping[str, Any],
    repair: str,
    now: datetime,
) -> Checkpoint:
    """Store the next version of a checkpoint as a repair corrects it. The encrypted
    blob is copied unchanged: only the agent reads or writes it. Caller holds the
    thread's lock and a transaction."""
    return Checkpoint.objects.create(
        thread=latest.thread,
        number=latest.number + 1,
        proposal=latest.proposal,
        summary=latest.summary,
        state=state,
        blob=latest.blob,
        blob_digest=latest.blob_digest,
        blob_bytes=latest.blob_bytes,
        resume_at=resume_at,
        repair=repair,
        created_at=now,
    )


def _seal_blob(thread: Thread, blob: bytes) -> bytes:
    key = _load_or_create_key(thread)
    return encryption.encrypt_value(key, blob, format_key_binding(thread).encode())


_STORE_KEY = (
    (
        "key_stored",
        """
        UPDATE agents_thread SET wrapped_key = %(wrapped_key)s
        WHERE id = %(thread)s RETURNING id
        """,
    ),
)


def _load_or_create_key(thread: Thread) -> bytes:
    """Caller holds the thread's lock."""
    if thread.wrapped_key is None:
        key = encryption.create_key()
        thread.wrapped_key = encryption.wrap_key(key, format_key_binding(thread))
        writes.execute_write(
            _STORE_KEY,
            {"thread": thread.pk, "wrapped_key": thread.wrapped_key},
            row_keys=[(Thread._meta.db_table, thread.pk)],
        )
        return key
    return encryption.unwrap_key(bytes(thread.wrapped_key), format_key_binding(thread))


def decrypt_blob(checkpoint: Checkpoint) -> bytes | None:
    """Return the blob as the agent sent it, or None when there is none or its key has
    been erased."""
    thread = checkpoint.thread
    if checkpoint.blob is None or thread.wrapped_key is None:
        return None
    key = encryption.unwrap_key(bytes(thread.wrapped_key), format_key_binding(thread))
    return encryption.decrypt_value(
        key, bytes(checkpoint.blob), format_key_binding(thread).encode()
    )


def find_latest_checkpoint(thread: Thread) -> Checkpoint | None:
    """Return the thread's newest checkpoint, or None."""
    return thread.checkpoints.order_by("-number").first()
