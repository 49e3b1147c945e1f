"""The primary key is read backwards as well, and no query has conditions of the form
LIKE 'x%'."""

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
