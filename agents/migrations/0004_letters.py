"""Where agents hear what became of their proposals, and what was sent there."""

from __future__ import annotations

from typing import ClassVar

import agents.models
import django.db.models.deletion
from django.db import migrations, models

from journal.triggers import legal_steps

DELIVERY = [
    ("", "waiting"),
    ("waiting", "delivered"),
    ("waiting", "taken"),
    ("waiting", "dead"),
    ("waiting", "held"),
    ("dead", "waiting"),
    ("dead", "taken"),
    ("held", "waiting"),
    ("held", "taken"),
]


class Migration(migrations.Migration):
    dependencies: ClassVar = [("agents", "0003_repaired_checkpoints")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=agents.models.new_delivery_id,
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("event", models.CharField(max_length=40)),
                ("kind", models.CharField(max_length=32)),
                ("proposal", models.CharField(max_length=40)),
                ("thread", models.CharField(max_length=128)),
                ("url", models.CharField(max_length=2048)),
                ("payload", models.JSONField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("delivered", "delivered"),
                            ("taken", "taken"),
                            ("dead", "dead"),
                            ("held", "held"),
                        ],
                        max_length=9,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_at", models.DateTimeField()),
                ("give_up_at", models.DateTimeField()),
                ("busy_until", models.DateTimeField(null=True)),
                ("last_answer", models.PositiveSmallIntegerField(null=True)),
                ("last_error", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="DeliveryAttempt",
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
                ("at", models.DateTimeField()),
                ("milliseconds", models.PositiveIntegerField()),
                ("answer", models.PositiveSmallIntegerField(null=True)),
                ("error", models.CharField(blank=True, max_length=200)),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tries",
                        to="agents.delivery",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Endpoint",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=agents.models.new_endpoint_id,
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("url", models.CharField(max_length=2048)),
                ("by_proposal", models.BooleanField(default=False)),
                ("secret", models.BinaryField()),
                ("former", models.BinaryField(null=True)),
                ("former_until", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                ("off_at", models.DateTimeField(null=True)),
                ("off_why", models.CharField(blank=True, max_length=8)),
                ("slow_since", models.DateTimeField(null=True)),
                ("tried_at", models.DateTimeField(null=True)),
                ("rest_until", models.DateTimeField(null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="endpoints",
                        to="agents.agent",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="delivery",
            name="endpoint",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="deliveries",
                to="agents.endpoint",
            ),
        ),
        migrations.CreateModel(
            name="Callback",
            fields=[
                (
                    "proposal",
                    models.CharField(max_length=40, primary_key=True, serialize=False),
                ),
                ("url", models.CharField(max_length=2048)),
                (
                    "endpoint",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        to="agents.endpoint",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Acknowledgement",
            fields=[
                (
                    "outcome",
                    models.CharField(max_length=40, primary_key=True, serialize=False),
                ),
                ("proposal", models.CharField(max_length=40)),
                (
                    "by",
                    models.CharField(
                        choices=[("call", "call"), ("webhook", "webhook")], max_length=7
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="agents.agent",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["proposal"], name="acknowledged_by_proposal")
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.UniqueConstraint(
                fields=("agent", "url"), name="endpoint_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("off_at__isnull", True), ("off_why", "")),
                    models.Q(
                        ("off_at__isnull", False),
                        models.Q(("off_why", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="endpoint_off_paired",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("status", "waiting")),
                fields=["endpoint", "next_at"],
                name="delivery_due",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("status__in", ["dead", "held"])),
                fields=["endpoint"],
                name="delivery_failed",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(fields=["status", "-ended_at"], name="delivery_ended"),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(fields=["proposal"], name="delivery_by_proposal"),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(
                fields=("event", "endpoint"), name="delivery_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("status__in", ["waiting", "delivered", "taken", "dead", "held"])
                ),
                name="delivery_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", True), ("status", "waiting")),
                    models.Q(
                        ("ended_at__isnull", False),
                        ("status__in", ["delivered", "taken", "dead", "held"]),
                    ),
                    _connector="OR",
                ),
                name="delivery_end_paired",
            ),
        ),
        legal_steps("agents_delivery", DELIVERY),
    ]
