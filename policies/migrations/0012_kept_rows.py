"""People, queues, sums and standing grants are not deleted, and what they stand for is
not rewritten."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.triggers import fixed, growing, kept


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("journal", "0009_kept_rows"),
        ("policies", "0011_sealed_standing_grants"),
    ]

    operations: ClassVar = [
        kept("policies_person"),
        fixed("policies_person", ["id", "public_id"]),
        kept("policies_queue"),
        fixed("policies_queue", ["id", "name"]),
        kept("policies_observation"),
        fixed("policies_observation", ["id", "proposal", "measure", "key"]),
        fixed("policies_standinggrant", rules=growing("uses")),
    ]
