"""A hold also ends when the colleague to whom it was offered did not answer."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models import Q

HOWS = ["broken", "handed_over", "unanswered"]


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reviews", "0052_draft_of_each_panel")]
    operations: ClassVar = [
        migrations.RemoveConstraint("lease", "lease_lost_paired"),
        migrations.AlterField(
            "lease",
            "lost_how",
            models.CharField(
                blank=True, choices=[(how, how) for how in HOWS], max_length=12
            ),
        ),
        migrations.AddConstraint(
            "lease",
            models.CheckConstraint(
                name="lease_lost_paired",
                condition=Q(
                    lost_by__isnull=True,
                    lost_to__isnull=True,
                    lost_at__isnull=True,
                    lost_how="",
                )
                | Q(
                    lost_by__isnull=False,
                    lost_to__isnull=False,
                    lost_at__isnull=False,
                    lost_how__in=HOWS,
                ),
            ),
        ),
    ]
