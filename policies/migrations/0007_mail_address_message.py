"""Another message of a constraint; the database keeps the constraint as it is."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models.functions import Lower


class Migration(migrations.Migration):
    dependencies: ClassVar = [("policies", "0006_observation_windows")]

    operations: ClassVar = [
        migrations.AlterConstraint(
            "person",
            "person_one_account",
            models.UniqueConstraint(
                Lower("email"),
                condition=~models.Q(email=""),
                name="person_one_account",
                violation_error_message="Another account has this mail address.",
            ),
        ),
    ]
