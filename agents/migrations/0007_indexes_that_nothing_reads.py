"""Foreign keys that begin another index need none of their own, and no query has
conditions of the form LIKE 'x%'."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models

from journal.indexes import drop_pattern_indexes


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("agents", "0006_letters_on_their_way"),
    ]

    operations: ClassVar = [
        migrations.AlterField(
            model_name="checkpoint",
            name="thread",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="checkpoints",
                to="agents.thread",
            ),
        ),
        migrations.AlterField(
            model_name="idempotencykey",
            name="agent",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                to="agents.agent",
            ),
        ),
        migrations.AlterField(
            model_name="thread",
            name="agent",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="threads",
                to="agents.agent",
            ),
        ),
        drop_pattern_indexes("agents"),
    ]
