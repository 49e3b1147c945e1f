"""An alarm about a question that waits for people who are not there."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models

KINDS = [
    "never_executed",
    "without_grant",
    "other_bytes",
    "twice",
    "without_votes",
    "late_report",
    "delivery_dead",
    "invalid_outcome",
    "restored",
    "undecidable",
]


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reviews", "0016_search")]

    operations: ClassVar = [
        migrations.RemoveConstraint(model_name="alarm", name="alarm_kind"),
        migrations.AlterField(
            model_name="alarm",
            name="kind",
            field=models.CharField(
                max_length=16, choices=[(kind, kind) for kind in KINDS]
            ),
        ),
        migrations.AddConstraint(
            model_name="alarm",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", KINDS)), name="alarm_kind"
            ),
        ),
    ]
