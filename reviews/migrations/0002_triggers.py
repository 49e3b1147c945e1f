"""What never changes, and the only steps a status may take, in the database."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.triggers import immutable, legal_steps

REQUEST = [
    ("", "pending"),
    ("pending", "recallable"),
    ("pending", "authorized"),
    ("pending", "rejected"),
    ("pending", "expired"),
    ("pending", "withdrawn"),
    ("pending", "superseded"),
    ("recallable", "pending"),
    ("recallable", "authorized"),
    ("recallable", "rejected"),
    ("recallable", "withdrawn"),
]
GRANT = [
    ("", "live"),
    ("live", "spent"),
    ("live", "expired"),
    ("live", "revoked"),
]
EXECUTION = [
    ("", "queued"),
    ("queued", "claimed"),
    ("queued", "refused"),
    ("claimed", "succeeded"),
    ("claimed", "failed"),
    ("claimed", "unknown"),
    ("claimed", "queued"),
    ("claimed", "refused"),
    ("failed", "queued"),
    ("unknown", "succeeded"),
    ("unknown", "failed"),
]
BATCH = [
    ("", "forming"),
    ("forming", "open"),
    ("forming", "decided"),
    ("forming", "dissolved"),
    ("open", "decided"),
    ("open", "dissolved"),
]
EXPORT = [
    ("", "running"),
    ("running", "done"),
    ("running", "failed"),
]


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reviews", "0001_initial")]

    operations: ClassVar = [
        immutable("reviews_revision"),
        immutable("reviews_requestversion"),
        immutable("reviews_decision"),
        immutable("reviews_snapshot"),
        immutable("reviews_statereading"),
        immutable("reviews_note"),
        legal_steps("reviews_approvalrequest", REQUEST),
        legal_steps("reviews_grant", GRANT),
        legal_steps("reviews_execution", EXECUTION),
        legal_steps("reviews_batch", BATCH),
        legal_steps("reviews_export", EXPORT),
    ]
