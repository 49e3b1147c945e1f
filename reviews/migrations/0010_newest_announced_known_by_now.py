from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """While it is built nobody waits: claims and outcomes are written to this table."""

    atomic = False
    dependencies = [
        ("policies", "0002_triggers"),
        ("reviews", "0009_retried_at"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="execution",
            index=models.Index(
                condition=models.Q(("announced_in__isnull", False)),
                fields=["-queued_at"],
                name="execution_announced_newest",
            ),
        ),
        AddIndexConcurrently(
            model_name="execution",
            index=models.Index(
                condition=models.Q(
                    ("unknown_at__isnull", False),
                    models.Q(("status", "unknown"), _negated=True),
                ),
                fields=["finished_at"],
                name="execution_known_by_now",
            ),
        ),
    ]
