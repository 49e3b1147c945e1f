"""The log is read by day, for the statistics. A block range index costs an insert
nearly nothing, and rows that are never updated stay in the order of their time."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.indexes import BrinIndex
from django.db import migrations


class Migration(migrations.Migration):
    dependencies: ClassVar = [("journal", "0007_indexes_that_nothing_reads")]

    operations: ClassVar = [
        migrations.AddIndex(
            "logrecord", BrinIndex(fields=["at"], name="log_day")
        ),
    ]
