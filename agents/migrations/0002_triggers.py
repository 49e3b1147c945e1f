"""A finished thread stays finished; a checkpoint changes only by losing its blob. Agents,
their keys, runs and acknowledgements are not deleted, and what they stand for is not
rewritten."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.indexes import drop_pattern_indexes
from journal.triggers import fixed, immutable, kept, legal_steps, once, shortening

THREAD = [("", "running"), ("running", "finished")]
DELIVERY = [
    ("", "waiting"),
    ("waiting", "delivered"),
    ("waiting", "taken"),
    ("waiting", "dead"),
    ("waiting", "held"),
    ("dead", "waiting"),
    ("dead", "taken"),
    ("held", "waiting"),
    ("held", "taken"),
]
# An idempotency key is kept for longer than any proposal can wait.
OLD_KEY = "OLD.created_at < now() - interval '90 days'"


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("agents", "0001_tables"),
        ("journal", "0002_triggers"),
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
        legal_steps("agents_thread", THREAD),
        kept("agents_thread"),
        fixed("agents_thread", ["id", "agent_id", "name"]),
        immutable("agents_checkpoint", but_for=["blob"]),
        kept("agents_idempotencykey", but_for=OLD_KEY),
        fixed(
            "agents_idempotencykey",
            ["id", "agent_id", "key", "fingerprint", "created_at"],
            rules=once("status", "body", "proposal"),
        ),
        immutable("agents_acknowledgement"),
        legal_steps("agents_delivery", DELIVERY),
        drop_pattern_indexes("agents"),
    ]
