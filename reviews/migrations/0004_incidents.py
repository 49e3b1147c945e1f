"""A declared incident stops the clocks of what waits in its scope."""

from __future__ import annotations

import datetime
from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("policies", "0002_triggers"),
        ("reviews", "0003_standing_alarms"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Incident",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("reason", models.TextField()),
                ("declared_by", models.CharField(max_length=40)),
                ("at", models.DateTimeField()),
                ("ended_by", models.CharField(blank=True, max_length=40)),
                ("ended_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name="approvalrequest",
            name="frozen_for",
            field=models.DurationField(
                db_default=datetime.timedelta(0), default=datetime.timedelta
            ),
        ),
        migrations.AddField(
            model_name="approvalrequest",
            name="frozen_through",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name="approvalrequest",
            index=models.Index(
                condition=models.Q(
                    ("frozen_through__isnull", False),
                    ("status__in", ["pending", "recallable"]),
                ),
                fields=["frozen_through"],
                name="request_frozen",
            ),
        ),
        migrations.AddField(
            model_name="incident",
            name="queue",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="incidents",
                to="policies.queue",
            ),
        ),
        migrations.AddIndex(
            model_name="incident",
            index=models.Index(fields=["-at"], name="incident_newest"),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at__isnull", True)),
                fields=("queue",),
                name="incident_one_open",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", True), ("ended_by", "")),
                    models.Q(
                        ("ended_at__isnull", False),
                        models.Q(("ended_by", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="incident_end_paired",
            ),
        ),
    ]
