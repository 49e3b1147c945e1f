"""What lists show first and sort by: what hostile texts of a revision try, and the
amount of a request. Older revisions keep null and are read when they are shown.
"""

from __future__ import annotations

from typing import ClassVar

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reviews", "0044_declined_offers")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="revision",
            name="text_signs",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=8), null=True, size=None
            ),
        ),
        migrations.AddField(
            model_name="approvalrequest",
            name="currency",
            field=models.CharField(blank=True, db_default="", max_length=3),
        ),
        migrations.AddField(
            model_name="approvalrequest",
            name="amount_minor",
            field=models.BigIntegerField(null=True),
        ),
    ]
