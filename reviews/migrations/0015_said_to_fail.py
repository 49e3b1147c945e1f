"""What waits or is under way counts in every window, also what was proposed before; and
an index of what only its agent says failed."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

WAITS = """
UPDATE policies_observation SET ran_by = at + interval '91 days'
WHERE counts AND ran_by = at AND NOT starts_with(measure, 'event:') AND (
    EXISTS (SELECT FROM reviews_approvalrequest AS request
            WHERE request.proposal_id = policies_observation.proposal
              AND request.status IN ('pending', 'recallable'))
    OR EXISTS (SELECT FROM reviews_execution AS execution
               WHERE execution.proposal_id = policies_observation.proposal
                 AND execution.status IN ('queued', 'claimed'))
)
"""


class Migration(migrations.Migration):
    """While the index is built nobody waits: outcomes are written to this table."""

    atomic = False
    dependencies: ClassVar = [
        ("reviews", "0014_counted_votes"),
        ("policies", "0006_observation_windows"),
    ]

    operations: ClassVar = [
        migrations.RunSQL(WAITS, migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name="execution",
            index=models.Index(
                fields=["ask_at"],
                name="execution_said_to_fail",
                condition=models.Q(status="failed", ask_at__isnull=False),
            ),
        ),
    ]
