"""A tool version never changes; a policy's document, author and activation never do,
and a retired policy never rules again. People, queues, sums and standing grants are not
deleted, and what they stand for is not rewritten."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.indexes import drop_pattern_indexes
from journal.triggers import fixed, growing, immutable, kept, legal_steps

POLICY = [("", "draft"), ("draft", "active"), ("active", "retired")]


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("journal", "0002_triggers"),
        ("policies", "0001_tables"),
    ]

    operations: ClassVar = [
        immutable("policies_tool"),
        immutable(
            "policies_policyversion",
            but_for=["status"],
            once=["activated_by_id", "activated_at"],
        ),
        legal_steps("policies_policyversion", POLICY),
        # Only the uses and the revocation of a standing grant change.
        immutable(
            "policies_standinggrant",
            but_for=["uses"],
            once=["revoked_at", "revoked_by_id"],
        ),
        fixed("policies_standinggrant", rules=growing("uses")),
        kept("policies_person"),
        fixed("policies_person", ["id", "public_id"]),
        kept("policies_queue"),
        fixed("policies_queue", ["id", "name"]),
        kept("policies_observation"),
        fixed("policies_observation", ["id", "proposal", "measure", "key"]),
        drop_pattern_indexes("policies"),
    ]
