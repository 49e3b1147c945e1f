"""Notices name their channel, and what became of each attempt to send them."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("reviews", "0028_alarm_threshold"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.AlterField(
            model_name="notice",
            name="person",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="notices",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="notice",
            name="channel",
            field=models.CharField(
                max_length=32, default="email", db_default="email"
            ),
        ),
        migrations.AddField(
            model_name="notice",
            name="target",
            field=models.CharField(
                max_length=80, blank=True, default="", db_default=""
            ),
        ),
        migrations.AddField(
            model_name="notice",
            name="attempts",
            field=models.PositiveSmallIntegerField(default=0, db_default=0),
        ),
        migrations.AddField(
            model_name="notice",
            name="message_id",
            field=models.CharField(
                max_length=250, blank=True, default="", db_default=""
            ),
        ),
        migrations.AddField(
            model_name="notice",
            name="error",
            field=models.CharField(
                max_length=200, blank=True, default="", db_default=""
            ),
        ),
        migrations.RemoveConstraint(model_name="notice", name="notice_once"),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.UniqueConstraint(
                fields=(
                    "person",
                    "request",
                    "execution",
                    "version",
                    "kind",
                    "occasion",
                    "channel",
                    "target",
                ),
                nulls_distinct=False,
                name="notice_once",
            ),
        ),
    ]
