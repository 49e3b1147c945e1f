"""The answer of a call that the policy blocked may be replaced; every other stays."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.migrations import RunSQL
from django.db.models import Q

from journal.triggers import fixed, once

TABLE = "agents_idempotencykey"
NAMES = ["id", "agent_id", "key", "fingerprint"]
STANDS = "(OLD.status IS NULL OR OLD.refused_under = '')"
RENEWED = "OLD.created_at IS DISTINCT FROM NEW.created_at"
ANSWER = ["status", "body", "proposal", "refused_under"]
REPLACED = " OR ".join(f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in ANSWER)

earlier = fixed(
    TABLE, [*NAMES, "created_at"], rules=once("status", "body", "proposal")
)
now = fixed(
    TABLE,
    NAMES,
    rules={
        f"{STANDS} AND {RENEWED}": ["created_at"],
        "NEW.created_at < OLD.created_at": ["created_at"],
        f"OLD.status IS NOT NULL AND OLD.refused_under = '' AND ({REPLACED})": ANSWER,
    },
)


class Migration(migrations.Migration):
    dependencies: ClassVar = [("agents", "0002_triggers")]

    release = "0.1.0"
    step = "expand"

    operations: ClassVar = [
        migrations.AddField(
            "idempotencykey",
            "refused_under",
            models.CharField(blank=True, db_default="", max_length=80),
        ),
        migrations.AddConstraint(
            "idempotencykey",
            models.CheckConstraint(
                name="idempotency_refused",
                condition=Q(refused_under="") | Q(body__status="blocked"),
            ),
        ),
        RunSQL(earlier.reverse_sql, earlier.sql),
        now,
    ]
