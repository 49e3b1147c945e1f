"""When a person's password was changed last: their tokens of before are over."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("policies", "0003_one_account_an_address")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="person",
            name="password_changed_at",
            field=models.DateTimeField(null=True, editable=False),
        ),
    ]
