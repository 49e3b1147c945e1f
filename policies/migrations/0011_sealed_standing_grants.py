"""The seal of a standing grant. One that was issued before keeps what its record in the
audit log says, and is sealed here."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations, models
from django.db.migrations import RunPython

from policies.models import StandingGrant

RECORDED = """
SELECT EXISTS (
    SELECT FROM journal_logrecord AS record
    WHERE record.kind = 'standing_grant.issued' AND record.agent = %s
        AND record.thread = %s AND record.actor_id = %s
        AND convert_from(record.leaf, 'UTF8')::json
            #>> '{data,standing_grant}' = %s)
"""
GUARD = "ALTER TABLE policies_standinggrant {} TRIGGER policies_standinggrant_immutable"


def seal_issued(apps: Any, schema_editor: Any) -> None:
    rows = apps.get_model("policies", "StandingGrant").objects
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(GUARD.format("DISABLE"))
        for row in rows.select_related("issued_by").filter(revoked_at=None):
            of = [row.agent, row.thread, row.issued_by.public_id, row.pk]
            cursor.execute(RECORDED, of)
            if cursor.fetchone() == (True,):
                rows.filter(pk=row.pk).update(seal=StandingGrant.compute_seal(row))
        cursor.execute(GUARD.format("ENABLE"))


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("journal", "0008_log_by_day"),
        ("policies", "0010_standing_grant_pattern_index"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            "standinggrant",
            "seal",
            models.CharField(blank=True, db_default="", max_length=80),
        ),
        RunPython(seal_issued, RunPython.noop),
    ]
