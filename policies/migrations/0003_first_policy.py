"""A gate that nobody has an account in begins with a policy that has no author."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import migrations, models
from django.db.models import PROTECT, Q

DRAFT = Q(status="draft", activated_by__isnull=True, activated_at__isnull=True)
BY_A_PERSON = Q(
    status__in=["active", "retired"],
    activated_by__isnull=False,
    activated_at__isnull=False,
)
BY_THE_GATE = Q(
    status__in=["active", "retired"],
    author__isnull=True,
    activated_by__isnull=True,
    activated_at__isnull=False,
)


class Migration(migrations.Migration):
    step, release = "expand", "0.1.0"
    dependencies: ClassVar = [("policies", "0002_triggers")]
    operations: ClassVar = [
        migrations.RemoveConstraint("policyversion", "policy_activation_paired"),
        migrations.AlterField(
            "policyversion",
            "author",
            models.ForeignKey(
                settings.AUTH_USER_MODEL,
                PROTECT,
                null=True,
                related_name="policies_written",
            ),
        ),
        migrations.AddConstraint(
            "policyversion",
            models.CheckConstraint(
                name="policy_activation_paired",
                condition=DRAFT | BY_A_PERSON | BY_THE_GATE,
            ),
        ),
    ]
