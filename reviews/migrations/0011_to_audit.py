from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """While it is built nobody waits: claims and outcomes are written to this table."""

    atomic = False
    dependencies = [("reviews", "0010_newest_announced_known_by_now")]

    operations = [
        AddIndexConcurrently(
            model_name="execution",
            index=models.Index(
                condition=models.Q(
                    ("status", "refused"),
                    models.Q(
                        ("audited_at__isnull", True),
                        ("ask_at__isnull", False),
                        _connector="OR",
                    ),
                ),
                fields=["finished_at"],
                name="execution_to_audit",
            ),
        ),
    ]
