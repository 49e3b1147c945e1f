"""A grant names the permission given in advance that stands for its approval."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ('policies', '0009_standing_grants'),
        ('reviews', '0025_alarm_not_taken_up'),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name='grant',
            name='standing_grant',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='policies.standinggrant'),
        ),
    ]
