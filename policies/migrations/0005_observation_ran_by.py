"""From when a proposal's windows count: when its effect ran, and before that by when it
can have."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies: ClassVar = [("policies", "0004_password_changed_at")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="observation",
            name="ran_by",
            field=models.DateTimeField(db_default=Now()),
        ),
        migrations.AddField(
            model_name="observation",
            name="ran",
            field=models.BooleanField(default=False, db_default=False),
        ),
    ]
