"""The database knows which keys it was written with."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models

from journal.indexes import drop_pattern_indexes


class Migration(migrations.Migration):
    step, release = "expand", "0.1.0"
    dependencies: ClassVar = [("journal", "0003_promotions")]
    operations: ClassVar = [
        migrations.CreateModel(
            name="KnownKey",
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
                ("name", models.CharField(max_length=16)),
                ("key_id", models.CharField(max_length=16)),
                ("used_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("name", "key_id"), name="known_key_once"
                    )
                ],
            },
        ),
        drop_pattern_indexes("journal"),
    ]
