"""When the reminder at half time of a request was enqueued."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("reviews", "0030_push_subscriptions"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="approvalrequest",
            name="half_time_at",
            field=models.DateTimeField(null=True),
        ),
    ]
