"""No query looks for a dataset by LIKE 'x%'. The index is made at the end of the
migration of its table, so only the next one can drop it."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.indexes import drop_pattern_indexes


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reviews", "0036_datasets")]

    operations: ClassVar = [drop_pattern_indexes("reviews")]
