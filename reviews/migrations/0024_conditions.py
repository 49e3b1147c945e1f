"""Conditions of an approval, and what they require of its grant. Null means none."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reviews", "0023_messages")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="decision",
            name="conditions",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="grant",
            name="not_before",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="grant",
            name="expected",
            field=models.JSONField(null=True),
        ),
    ]
