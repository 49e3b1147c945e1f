"""A tool version never changes; a policy's document, author and activation never do,
and a retired policy never rules again."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.triggers import immutable, legal_steps

POLICY = [("", "draft"), ("draft", "active"), ("active", "retired")]


class Migration(migrations.Migration):
    dependencies: ClassVar = [("policies", "0001_initial")]

    operations: ClassVar = [
        immutable("policies_tool"),
        immutable(
            "policies_policyversion",
            but_for=["status"],
            once=["activated_by_id", "activated_at"],
        ),
        legal_steps("policies_policyversion", POLICY),
    ]
