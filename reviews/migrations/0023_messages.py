"""Messages between people and an agent, which never change, and since when a request is
with its agent for revision."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from journal.triggers import immutable

KINDS = ["question", "answer", "guidance"]


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("reviews", "0022_indexes_of_repeats"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="approvalrequest",
            name="returned_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="approvalrequest",
            name="message_count",
            field=models.PositiveSmallIntegerField(default=0, db_default=0),
        ),
        migrations.CreateModel(
            name="Message",
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
                ("version", models.PositiveIntegerField()),
                ("round", models.PositiveSmallIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[(kind, kind) for kind in KINDS], max_length=8
                    ),
                ),
                ("role", models.CharField(blank=True, max_length=16)),
                ("text", models.TextField()),
                ("at", models.DateTimeField()),
                (
                    "author",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="messages",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="messages",
                        to="reviews.approvalrequest",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["request", "at"], name="message_order")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(kind__in=KINDS), name="message_kind"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(author__isnull=True, role="")
                        | models.Q(author__isnull=False) & ~models.Q(role=""),
                        name="message_author_paired",
                    ),
                    models.CheckConstraint(
                        condition=~models.Q(kind="guidance")
                        | models.Q(author__isnull=False),
                        name="message_guidance_by_person",
                    ),
                    models.UniqueConstraint(
                        condition=~models.Q(kind="answer"),
                        fields=["request", "round"],
                        name="message_opens_round",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(kind="answer"),
                        fields=["request", "round"],
                        name="message_answers_round",
                    ),
                ],
            },
        ),
        immutable("reviews_message"),
    ]
