"""A tool version never changes; a policy's document and author never do."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.triggers import immutable


class Migration(migrations.Migration):
    dependencies: ClassVar = [("policies", "0001_initial")]

    operations: ClassVar = [
        immutable("policies_tool"),
        immutable(
            "policies_policyversion",
            but_for=["status", "activated_by_id", "activated_at"],
        ),
    ]
