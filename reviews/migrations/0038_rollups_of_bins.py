"""One row holds all figures of a measure on a day, for one tool and risk level. A page
reads hundreds of rows where it read hundreds of thousands.

The former table stays for processes of the release before, which read and write it
until they end. The release after this one drops it."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models

PACK = """
INSERT INTO reviews_rollup (day, measure, tool, risk, bins)
SELECT day, measure, tool, risk, jsonb_object_agg(bin, value)::text
FROM reviews_metricrollup GROUP BY day, measure, tool, risk
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reviews", "0037_dataset_pattern_index")]

    operations: ClassVar = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel("MetricRollup")]
        ),
        migrations.CreateModel(
            name="MetricRollup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("day", models.DateField()),
                ("measure", models.CharField(max_length=32)),
                ("tool", models.CharField(blank=True, max_length=64)),
                ("risk", models.CharField(blank=True, max_length=8)),
                ("bins", models.TextField()),
            ],
            options={
                "db_table": "reviews_rollup",
                "constraints": [
                    models.UniqueConstraint(
                        fields=["measure", "tool", "risk", "day"], name="rollup_once"
                    )
                ],
                "indexes": [models.Index(fields=["day"], name="rollup_day")],
            },
        ),
        migrations.RunSQL(PACK, migrations.RunSQL.noop),
    ]
