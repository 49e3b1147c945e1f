"""What people did beside proposals is found by who did it."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Nobody waits while it is built: every change writes to this table."""

    atomic = False
    dependencies: ClassVar = [("journal", "0004_outbox_vacuum")]

    operations: ClassVar = [
        AddIndexConcurrently(
            model_name="logrecord",
            index=models.Index(
                condition=models.Q(("proposal", "")),
                fields=["actor_id", "id"],
                name="log_by_actor_alone",
            ),
        ),
    ]
