"""An agent may have a limit of proposals in 24 hours; none by default."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("agents", "0003_refused_answers")]

    release = "0.1.0"
    step = "expand"

    operations: ClassVar = [
        migrations.AddField(
            "agent", "daily_proposals", models.PositiveIntegerField(null=True)
        )
    ]
