"""Agents, their keys, runs and acknowledgements are not deleted, and what they stand for
is not rewritten. An idempotency key is kept for longer than any proposal can wait."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.triggers import fixed, immutable, kept, once, shortening

OLD_KEY = "OLD.created_at < now() - interval '90 days'"


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("agents", "0007_indexes_that_nothing_reads"),
        ("journal", "0009_kept_rows"),
    ]

    operations: ClassVar = [
        kept("agents_agent"),
        fixed("agents_agent", ["id", "slug"]),
        kept("agents_agentkey"),
        fixed(
            "agents_agentkey",
            ["id", "agent_id", "prefix", "digest", "scopes"],
            rules=once("revoked_at") | shortening("expires_at"),
        ),
        kept("agents_thread"),
        fixed("agents_thread", ["id", "agent_id", "name"]),
        kept("agents_idempotencykey", but_for=OLD_KEY),
        fixed(
            "agents_idempotencykey",
            ["id", "agent_id", "key", "fingerprint", "created_at"],
            rules=once("status", "body", "proposal"),
        ),
        immutable("agents_acknowledgement"),
    ]
