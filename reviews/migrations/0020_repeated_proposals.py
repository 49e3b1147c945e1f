from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """The indexes are built while proposals and decisions go on."""

    atomic = False

    dependencies = [
        ("policies", "0008_indexes_that_nothing_reads"),
        ("reviews", "0019_indexes_that_nothing_reads"),
    ]

    operations = [
        migrations.AddField(
            model_name="approvalrequest",
            name="joined",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="proposal",
            name="repeats",
            field=models.CharField(blank=True, db_default="", max_length=40),
        ),
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
