"""Which versions of a checkpoint were made by two people, and not by the agent."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("agents", "0002_triggers")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="checkpoint",
            name="repair",
            field=models.CharField(max_length=40, null=True),
        ),
    ]
