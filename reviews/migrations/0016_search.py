"""Words that proposals are found by; a sweep fills them in, those of before as well."""

from __future__ import annotations

from typing import ClassVar

import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Nobody waits while the index on decisions is built."""

    atomic = False
    dependencies: ClassVar = [("reviews", "0015_said_to_fail")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="SearchEntry",
            fields=[
                (
                    "revision",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="search_entry",
                        serialize=False,
                        to="reviews.revision",
                    ),
                ),
                ("words", django.contrib.postgres.search.SearchVectorField()),
            ],
            options={
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["words"], name="search_words"
                    )
                ],
            },
        ),
        AddIndexConcurrently(
            model_name="decision",
            index=models.Index(
                condition=models.Q(("reason_code", ""), _negated=True),
                fields=["reason_code", "-at"],
                name="decision_by_reason",
            ),
        ),
    ]
