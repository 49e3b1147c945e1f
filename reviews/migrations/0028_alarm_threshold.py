"""The alarm about a figure of the statistics, and room for its subject, which names the
figure, a tool and a risk level."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models

KINDS = [
    "never_executed",
    "not_taken_up",
    "without_grant",
    "other_bytes",
    "twice",
    "without_votes",
    "late_report",
    "delivery_dead",
    "invalid_outcome",
    "restored",
    "undecidable",
    "standstill",
    "unreadable",
    "log_stalled",
    "threshold",
]


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reviews", "0027_statistics")]

    operations: ClassVar = [
        migrations.RemoveConstraint("alarm", "alarm_kind"),
        migrations.AlterField(
            "alarm",
            "kind",
            models.CharField(choices=[(kind, kind) for kind in KINDS], max_length=16),
        ),
        migrations.AddConstraint(
            "alarm",
            models.CheckConstraint(
                condition=models.Q(kind__in=KINDS), name="alarm_kind"
            ),
        ),
        migrations.AlterField("alarm", "subject", models.CharField(max_length=120)),
    ]
