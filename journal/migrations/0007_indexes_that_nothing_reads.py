"""PostgreSQL reads the primary key in both directions, and no query uses LIKE 'x%'."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.indexes import drop_pattern_indexes


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("journal", "0006_sweeps_heartbeat"),
    ]

    operations: ClassVar = [
        migrations.RemoveIndex(
            model_name="logrecord",
            name="log_newest",
        ),
        drop_pattern_indexes("journal"),
    ]
