"""Alarms that stand until a person has dealt with them, and reports that came late."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from journal.triggers import immutable, legal_steps

ALARM = [
    ("", "open"),
    ("open", "acknowledged"),
    ("open", "closed"),
    ("acknowledged", "closed"),
]


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("policies", "0002_triggers"),
        ("reviews", "0002_triggers"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Alarm",
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
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("never_executed", "never_executed"),
                            ("without_grant", "without_grant"),
                            ("other_bytes", "other_bytes"),
                            ("twice", "twice"),
                            ("late_report", "late_report"),
                            ("delivery_dead", "delivery_dead"),
                            ("invalid_outcome", "invalid_outcome"),
                            ("restored", "restored"),
                        ],
                        max_length=16,
                    ),
                ),
                ("subject", models.CharField(max_length=80)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("open", "open"),
                            ("acknowledged", "acknowledged"),
                            ("closed", "closed"),
                        ],
                        max_length=12,
                    ),
                ),
                ("data", models.JSONField(default=dict)),
                ("opened_at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField()),
                ("times", models.PositiveIntegerField(default=1)),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("closed_at", models.DateTimeField(null=True)),
                (
                    "closed_how",
                    models.CharField(
                        blank=True,
                        choices=[("person", "person"), ("itself", "itself")],
                        max_length=8,
                    ),
                ),
                ("note", models.TextField(blank=True)),
            ],
        ),
        migrations.CreateModel(
            name="LateReport",
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
                ("fence", models.PositiveBigIntegerField()),
                ("status", models.CharField(max_length=9)),
                ("found", models.CharField(max_length=9)),
                ("found_fence", models.PositiveIntegerField()),
                ("action_hash", models.CharField(max_length=80)),
                ("result_shown", models.JSONField(null=True)),
                ("result_digest", models.CharField(blank=True, max_length=80)),
                ("code", models.CharField(blank=True, max_length=64)),
                ("detail", models.TextField(blank=True)),
                ("counted", models.BooleanField(default=False)),
                ("actor_kind", models.CharField(max_length=8)),
                ("actor_id", models.CharField(blank=True, max_length=64)),
                ("at", models.DateTimeField()),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="notice",
            name="notice_about_one",
        ),
        migrations.AddField(
            model_name="execution",
            name="audited_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="execution",
            name="looked_up",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddIndex(
            model_name="execution",
            index=models.Index(
                condition=models.Q(("status", "refused")),
                fields=["finished_at"],
                name="execution_refused",
            ),
        ),
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(
                condition=models.Q(("status", "spent"), _negated=True),
                fields=["expires_at"],
                name="grant_unspent",
            ),
        ),
        migrations.AddField(
            model_name="alarm",
            name="acknowledged_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="alarm",
            name="closed_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="alarm",
            name="proposal",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="alarms",
                to="reviews.proposal",
            ),
        ),
        migrations.AddField(
            model_name="alarm",
            name="queue",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="alarms",
                to="policies.queue",
            ),
        ),
        migrations.AddField(
            model_name="notice",
            name="alarm",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="notices",
                to="reviews.alarm",
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("alarm__isnull", True),
                        ("execution__isnull", False),
                        ("request__isnull", True),
                    ),
                    models.Q(
                        ("alarm__isnull", True),
                        ("execution__isnull", True),
                        ("request__isnull", False),
                    ),
                    models.Q(
                        ("alarm__isnull", False),
                        ("execution__isnull", True),
                        ("request__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="notice_about_one",
            ),
        ),
        migrations.AddField(
            model_name="latereport",
            name="execution",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="late_reports",
                to="reviews.execution",
            ),
        ),
        migrations.AddIndex(
            model_name="alarm",
            index=models.Index(
                condition=models.Q(("status__in", ["open", "acknowledged"])),
                fields=["queue", "-opened_at"],
                name="alarm_standing",
            ),
        ),
        migrations.AddIndex(
            model_name="alarm",
            index=models.Index(fields=["-opened_at", "-id"], name="alarm_newest"),
        ),
        migrations.AddIndex(
            model_name="alarm",
            index=models.Index(fields=["subject", "kind"], name="alarm_about"),
        ),
        migrations.AddConstraint(
            model_name="alarm",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "never_executed",
                            "without_grant",
                            "other_bytes",
                            "twice",
                            "late_report",
                            "delivery_dead",
                            "invalid_outcome",
                            "restored",
                        ],
                    )
                ),
                name="alarm_kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="alarm",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["open", "acknowledged", "closed"])),
                name="alarm_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="alarm",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ["open", "acknowledged"])),
                fields=("kind", "subject"),
                name="alarm_one_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="alarm",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("acknowledged_at__isnull", True),
                        ("acknowledged_by__isnull", True),
                        models.Q(("status", "acknowledged"), _negated=True),
                    ),
                    models.Q(
                        ("acknowledged_at__isnull", False),
                        ("acknowledged_by__isnull", False),
                        models.Q(("status", "open"), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="alarm_acknowledged_paired",
            ),
        ),
        migrations.AddConstraint(
            model_name="alarm",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("status__in", ["open", "acknowledged"]),
                        ("closed_at__isnull", True),
                        ("closed_by__isnull", True),
                        ("closed_how", ""),
                    ),
                    models.Q(
                        ("closed_at__isnull", False),
                        ("status", "closed"),
                        models.Q(
                            models.Q(
                                ("closed_by__isnull", False),
                                ("closed_how", "person"),
                                models.Q(("note", ""), _negated=True),
                            ),
                            models.Q(
                                ("closed_by__isnull", True), ("closed_how", "itself")
                            ),
                            _connector="OR",
                        ),
                    ),
                    _connector="OR",
                ),
                name="alarm_closed_paired",
            ),
        ),
        migrations.AddConstraint(
            model_name="alarm",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("kind__in", ["twice", "without_grant", "other_bytes"]),
                        _negated=True,
                    ),
                    models.Q(("closed_how", "itself"), _negated=True),
                    _connector="OR",
                ),
                name="alarm_grave_by_person",
            ),
        ),
        migrations.AddIndex(
            model_name="latereport",
            index=models.Index(fields=["execution", "at"], name="late_report_order"),
        ),
        migrations.AddIndex(
            model_name="latereport",
            index=models.Index(fields=["at"], name="late_report_age"),
        ),
        migrations.AddConstraint(
            model_name="latereport",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["succeeded", "failed", "unknown"])),
                name="late_report_status",
            ),
        ),
        legal_steps("reviews_alarm", ALARM),
        immutable("reviews_latereport"),
    ]
