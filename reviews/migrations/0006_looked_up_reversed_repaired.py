"""Look-ups of what nobody knows, reversals as proposals, and changes by hand."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models

import reviews.models.base
from journal.triggers import immutable, legal_steps

REPAIR = [
    ("", "proposed"),
    ("proposed", "applied"),
    ("proposed", "refused"),
    ("proposed", "lapsed"),
]


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("reviews", "0005_who_listens"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="execution",
            name="ask_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="execution",
            name="asked",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="execution",
            name="began_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="execution",
            name="unknown_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name="Repair",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=reviews.models.base.new_repair_id,
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("proposed", "proposed"),
                            ("applied", "applied"),
                            ("refused", "refused"),
                            ("lapsed", "lapsed"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "subject",
                    models.CharField(
                        choices=[
                            ("execution", "execution"),
                            ("thread", "thread"),
                            ("checkpoint", "checkpoint"),
                        ],
                        max_length=10,
                    ),
                ),
                ("key", models.CharField(max_length=200)),
                ("agent", models.CharField(max_length=64)),
                ("thread", models.CharField(max_length=128)),
                ("change", models.CharField(max_length=24)),
                ("before", models.JSONField()),
                ("after", models.JSONField()),
                ("reason", models.TextField()),
                ("proposed_by", models.CharField(max_length=40)),
                ("proposed_at", models.DateTimeField()),
                ("lapses_at", models.DateTimeField()),
                ("settled_by", models.CharField(blank=True, max_length=40)),
                ("settled_at", models.DateTimeField(null=True)),
                ("answer", models.TextField(blank=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["-proposed_at"], name="repair_newest"),
                    models.Index(
                        condition=models.Q(("status", "proposed")),
                        fields=["lapses_at"],
                        name="repair_lapsing",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ["proposed", "applied", "refused", "lapsed"])
                        ),
                        name="repair_status",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("subject__in", ["execution", "thread", "checkpoint"])
                        ),
                        name="repair_subject",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "proposed")),
                        fields=("subject", "key"),
                        name="repair_one_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("settled_at__isnull", True), ("status", "proposed")
                            ),
                            models.Q(
                                models.Q(("status", "proposed"), _negated=True),
                                ("settled_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="repair_settled_paired",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "applied"), _negated=True),
                            models.Q(
                                models.Q(("settled_by", ""), _negated=True),
                                models.Q(
                                    ("settled_by", models.F("proposed_by")),
                                    _negated=True,
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="repair_two_people",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LookUp",
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
                ("number", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("by_kind", models.CharField(max_length=8)),
                ("by_id", models.CharField(max_length=64)),
                ("said", models.CharField(max_length=9)),
                ("code", models.CharField(blank=True, max_length=64)),
                ("detail", models.TextField(blank=True)),
                (
                    "execution",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="look_ups",
                        to="reviews.execution",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("execution", "number"), name="look_up_number"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Reversal",
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
                ("by", models.CharField(max_length=40)),
                ("at", models.DateTimeField()),
                ("over_at", models.DateTimeField(null=True)),
                (
                    "execution",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reversals",
                        to="reviews.execution",
                    ),
                ),
                (
                    "proposal",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reverses",
                        to="reviews.proposal",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("over_at__isnull", True)),
                        fields=("execution",),
                        name="reversal_one",
                    )
                ],
            },
        ),
        immutable("reviews_lookup"),
        immutable("reviews_reversal", once=["over_at"]),
        immutable(
            "reviews_repair",
            but_for=["status", "settled_by", "answer"],
            once=["settled_at"],
        ),
        legal_steps("reviews_repair", REPAIR),
    ]
