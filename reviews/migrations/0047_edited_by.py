"""A version names the people whose edit of it needs another person."""

from __future__ import annotations

from typing import ClassVar

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("reviews", "0046_amounts_of_open_requests"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="requestversion",
            name="edited_by",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=40),
                db_default=[],
                default=list,
                size=None,
            ),
        ),
    ]
