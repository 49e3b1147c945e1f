"""Whether somebody outside is to be told what becomes of a proposal. The previous
release writes rows without it: then nobody is."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reviews", "0004_incidents")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="proposal",
            name="heard",
            field=models.BooleanField(db_default=False, default=False),
        )
    ]
