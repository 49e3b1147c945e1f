from django.db import migrations, models


class Migration(migrations.Migration):
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
    ]
