"""What was observed so far counts from when it was proposed, as it did."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.operations import (
    AddIndexConcurrently,
    RemoveIndexConcurrently,
)
from django.db import migrations, models


class Migration(migrations.Migration):
    """While the index is built nobody waits: every proposal writes to this table."""

    atomic = False
    dependencies: ClassVar = [("policies", "0005_observation_ran_by")]

    operations: ClassVar = [
        migrations.RunSQL(
            "UPDATE policies_observation SET ran_by = at WHERE ran_by > at",
            migrations.RunSQL.noop,
        ),
        AddIndexConcurrently(
            model_name="observation",
            index=models.Index(
                fields=["measure", "key", "ran_by"],
                name="observation_ran",
                condition=models.Q(counts=True),
            ),
        ),
        RemoveIndexConcurrently(model_name="observation", name="observation_window"),
    ]
