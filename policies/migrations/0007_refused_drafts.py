"""A draft is activated by a second administrator, or refused with a reason."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import migrations, models
from django.db.migrations import RunSQL
from django.db.models import PROTECT, Q

from journal.triggers import fixed, immutable, legal_steps, once

TABLE = "policies_policyversion"
FORMER = [("", "draft"), ("draft", "active"), ("active", "retired")]
POLICY = [*FORMER, ("draft", "refused")]
UNDECIDED = Q(activated_by__isnull=True, activated_at__isnull=True)
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
ACTIVATED_ONCE = ["activated_by_id", "activated_at"]
REFUSED = ["refused_by_id", "refused_at", "refusal"]


def replace(former: RunSQL, now: RunSQL) -> RunSQL:
    """One trigger in place of another."""
    return RunSQL(
        f"{former.reverse_sql}{now.sql}", f"{now.reverse_sql}{former.sql}"
    )


class Migration(migrations.Migration):
    step, release = "expand", "0.1.0"
    dependencies: ClassVar = [("policies", "0006_sign_ins")]
    operations: ClassVar = [
        migrations.AddField(
            "policyversion",
            "refused_by",
            models.ForeignKey(
                settings.AUTH_USER_MODEL,
                PROTECT,
                null=True,
                related_name="policies_refused",
            ),
        ),
        migrations.AddField(
            "policyversion", "refused_at", models.DateTimeField(null=True)
        ),
        migrations.AddField(
            "policyversion",
            "refusal",
            models.TextField(blank=True, default="", db_default=""),
        ),
        migrations.AlterField(
            "policyversion",
            "status",
            models.CharField(
                choices=[
                    ("draft", "Draft"),
                    ("active", "Active"),
                    ("retired", "Retired"),
                    ("refused", "Refused"),
                ],
                default="draft",
                max_length=8,
            ),
        ),
        migrations.RemoveConstraint("policyversion", "policy_activation_paired"),
        migrations.AddConstraint(
            "policyversion",
            models.CheckConstraint(
                name="policy_activation_paired",
                condition=Q(UNDECIDED, status__in=["draft", "refused"])
                | BY_A_PERSON
                | BY_THE_GATE,
            ),
        ),
        migrations.AddConstraint(
            "policyversion",
            models.CheckConstraint(
                name="policy_refusal_paired",
                condition=Q(
                    ~Q(status="refused"),
                    refused_by__isnull=True,
                    refused_at__isnull=True,
                    refusal="",
                )
                | Q(
                    ~Q(refusal=""),
                    status="refused",
                    refused_by__isnull=False,
                    refused_at__isnull=False,
                ),
            ),
        ),
        replace(
            immutable(TABLE, but_for=["status"], once=ACTIVATED_ONCE),
            immutable(TABLE, but_for=["status", *REFUSED], once=ACTIVATED_ONCE),
        ),
        replace(
            legal_steps(TABLE, FORMER),
            legal_steps(TABLE, POLICY),
        ),
        fixed(TABLE, rules=once("refused_at", "refused_by_id", "refusal")),
    ]
