"""People who may not decide a proposal and see it no better for it."""

from __future__ import annotations

from typing import ClassVar

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reviews", "0012_stop_by_key")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="proposal",
            name="kept_out",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=64),
                db_default=[],
                default=list,
                size=None,
            ),
        ),
    ]
