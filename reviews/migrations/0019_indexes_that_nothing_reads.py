"""Foreign keys that begin another index, or by which nothing is found, need none of
their own, and no query has conditions of the form LIKE 'x%'."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from journal.indexes import drop_pattern_indexes


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("policies", "0007_mail_address_message"),
        ("reviews", "0018_alarms_of_the_worker"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.AlterField(
            model_name="decision",
            name="reading",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="reviews.statereading",
            ),
        ),
        migrations.AlterField(
            model_name="decision",
            name="request",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="decisions",
                to="reviews.approvalrequest",
            ),
        ),
        migrations.AlterField(
            model_name="decision",
            name="reviewer",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="decisions",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="requestversion",
            name="policy",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                to="policies.policyversion",
            ),
        ),
        migrations.AlterField(
            model_name="requestversion",
            name="queue",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                to="policies.queue",
            ),
        ),
        migrations.AlterField(
            model_name="requestversion",
            name="request",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="versions",
                to="reviews.approvalrequest",
            ),
        ),
        migrations.AlterField(
            model_name="requestversion",
            name="revision",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                to="reviews.revision",
            ),
        ),
        migrations.AlterField(
            model_name="revision",
            name="policy",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="policies.policyversion",
            ),
        ),
        migrations.AlterField(
            model_name="revision",
            name="proposal",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="revisions",
                to="reviews.proposal",
            ),
        ),
        migrations.AlterField(
            model_name="revision",
            name="tool",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="policies.tool",
            ),
        ),
        migrations.AlterField(
            model_name="statereading",
            name="revision",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="readings",
                to="reviews.revision",
            ),
        ),
        drop_pattern_indexes("reviews"),
    ]
