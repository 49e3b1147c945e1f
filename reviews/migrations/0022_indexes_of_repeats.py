from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """The indexes are built while proposals and decisions go on."""

    atomic = False

    dependencies = [("reviews", "0021_alarm_log_stalled")]

    operations = [
        AddIndexConcurrently(
            model_name="approvalrequest",
            index=models.Index(
                fields=["repeat_key"],
                name="request_rejected_repeats",
                condition=Q(status="rejected"),
            ),
        ),
        AddIndexConcurrently(
            model_name="proposal",
            index=models.Index(
                fields=["repeats"], name="proposal_repeats", condition=~Q(repeats="")
            ),
        ),
    ]
