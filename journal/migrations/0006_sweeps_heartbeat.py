"""When each sweep last ran to its end."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("journal", "0005_records_of_no_proposal")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                (
                    "name",
                    models.CharField(max_length=128, primary_key=True, serialize=False),
                ),
                ("at", models.DateTimeField()),
            ],
        ),
    ]
