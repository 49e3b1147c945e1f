from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("policies", "0002_triggers"),
        ("reviews", "0008_execution_redeem_digest"),
    ]

    operations = [
        migrations.AddField(
            model_name="execution",
            name="retried_at",
            field=models.DateTimeField(null=True),
        ),
    ]
