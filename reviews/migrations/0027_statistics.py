"""The daily figures of the statistics, and indexes by which a day's decisions and
requests are found."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.indexes import BrinIndex
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("journal", "0008_log_by_day"),
        ("reviews", "0026_standing_grants"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="MetricDay",
            fields=[
                ("day", models.DateField(primary_key=True, serialize=False)),
                ("due", models.BooleanField(default=True)),
                ("through", models.BigIntegerField(default=-1)),
                ("computed_at", models.DateTimeField(null=True)),
                ("took_ms", models.PositiveIntegerField(default=0, db_default=0)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["through"], name="metric_day_through"),
                    models.Index(
                        fields=["day"],
                        name="metric_day_due",
                        condition=models.Q(due=True),
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="MetricRollup",
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
                ("day", models.DateField()),
                ("measure", models.CharField(max_length=32)),
                ("tool", models.CharField(blank=True, max_length=64)),
                ("risk", models.CharField(blank=True, max_length=8)),
                ("bin", models.CharField(max_length=200)),
                ("value", models.BigIntegerField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["day", "measure"], name="metric_rollup_day")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["measure", "tool", "risk", "day", "bin"],
                        name="metric_rollup_once",
                    )
                ],
            },
        ),
        migrations.AddIndex(
            "decision",
            BrinIndex(fields=["at"], name="decision_day"),
        ),
        migrations.AddIndex(
            "approvalrequest",
            BrinIndex(fields=["opened_at"], name="request_day"),
        ),
    ]
