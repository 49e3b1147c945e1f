"""Every column that holds values encrypted under DATA_KEY, in one place.

Not in this list, because they need no key of their own: the blobs of checkpoints, which
are encrypted under the key of their thread, and seals, which are no secrets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from agents.checkpoints import format_key_binding
from agents.models import Endpoint, Thread
from agents.webhooks.endpoints import format_seal_context
from journal.encryption import build_wrapping_aad
from policies.models import TotpDevice
from policies.second_factors import build_secret_binding
from reviews.evidence.files import format_place
from reviews.models import Dataset, EvidenceFile, EvidencePicture, Execution


@dataclass(frozen=True, slots=True)
class StoredValue:
    """One encrypted column, and what binds its values to their rows."""

    model: type[Model]
    column: str
    bind: Callable[[Any], bytes]

    @property
    def name(self) -> str:
        """Its table and column."""
        return f"{self.model._meta.db_table}.{self.column}"


def _bind_part(part: str) -> Callable[[EvidenceFile], bytes]:
    return lambda file: format_place(file.agent, file.sha256, part)


STORED_VALUES = (
    StoredValue(
        Thread, "wrapped_key", lambda row: build_wrapping_aad(format_key_binding(row))
    ),
    StoredValue(Endpoint, "secret", lambda row: format_seal_context(row.pk)),
    StoredValue(Endpoint, "former", lambda row: format_seal_context(row.pk)),
    StoredValue(Execution, "result", lambda row: row.pk.encode()),
    StoredValue(TotpDevice, "secret", build_secret_binding),
    StoredValue(Dataset, "key", lambda row: build_wrapping_aad(row.pk)),
    StoredValue(EvidenceFile, "body", _bind_part("body")),
    StoredValue(EvidenceFile, "shown", _bind_part("shown")),
    StoredValue(
        EvidencePicture,
        "body",
        lambda row: format_place(
            row.file.agent, row.file.sha256, f"picture {row.number}"
        ),
    ),
)
# Binary columns that DATA_KEY does not encrypt, each with what it holds.
OTHER_COLUMNS = {
    "agents_checkpoint.blob": "encrypted under its thread's key",
    "journal_logrecord.leaf": "what auditors hash: it never changes",
    "journal_logpayload.salt": "a salt",
    "journal_logposition.leaf_hash": "a hash",
    "policies_passkey.credential": "an id, which is no secret",
    "policies_passkey.key": "a public key",
    "reviews_datasetpart.body": "a slice of a file",
    "reviews_exportpart.body": "a slice of a file",
    "reviews_snapshot.html": "a page as it was shown, redacted",
    "reviews_revision.canonical": "the bytes of the action",
    "reviews_pushsubscription.digest": "a hash",
}
