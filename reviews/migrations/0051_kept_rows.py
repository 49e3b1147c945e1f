"""What carries authority or records an effect is not deleted, and not rewritten.

The columns of a request that a version decides change only with its version. A grant's
window never becomes longer, and never begins after a stop that it began before. A stop that was lifted stays lifted, and a new one is a new
row.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.triggers import fixed, growing, kept, once, shortening, widening

OF_VERSION = ["version", "action_hash", "tier", "queue_id"]
OTHER_VERSION = """NEW.version = OLD.version
    AND (NEW.action_hash, NEW.tier, NEW.queue_id)
        IS DISTINCT FROM (OLD.action_hash, OLD.tier, OLD.queue_id)"""

# Whoever ends a stop leaves a record of it, in the same transaction.
LIFT_LOGGED = """
CREATE FUNCTION reviews_stop_lift_logged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM journal_logrecord AS record
               WHERE record.xid = pg_current_xact_id()
                   AND record.kind IN ('stop.lifted', 'stop.tightened')
                   AND record.actor_id = NEW.lifted_by)
    THEN RETURN NULL; END IF;
    RAISE EXCEPTION 'reviews_stop: a stop ends with its record in the log'
        USING ERRCODE = '23001';
END $$;
CREATE CONSTRAINT TRIGGER reviews_stop_logged AFTER UPDATE OF lifted_at ON reviews_stop
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.lifted_at IS NULL AND NEW.lifted_at IS NOT NULL)
    EXECUTE FUNCTION reviews_stop_lift_logged();
"""
NO_LIFT_LOGGED = """
DROP TRIGGER reviews_stop_logged ON reviews_stop;
DROP FUNCTION reviews_stop_lift_logged();
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("journal", "0009_kept_rows"),
        ("policies", "0012_kept_rows"),
        ("reviews", "0050_year_checks"),
    ]

    operations: ClassVar = [
        kept("reviews_proposal"),
        fixed(
            "reviews_proposal",
            [
                *["id", "agent", "thread", "tool_name", "on_behalf_of", "parent"],
                *["supersedes", '"group"', "source", "blocked_by", "repeats"],
            ],
            rules=widening("barred", "kept_out") | growing("revision"),
        ),
        kept("reviews_approvalrequest"),
        fixed(
            "reviews_approvalrequest",
            ["id", "proposal_id", "agent", "tool_name"],
            rules={
                **widening("barred"),
                **growing("version"),
                OTHER_VERSION: OF_VERSION,
            },
        ),
        kept("reviews_batch"),
        fixed("reviews_batch", ["id", "key", "tool_id", "queue_id", "agent"]),
        kept("reviews_batchitem"),
        fixed("reviews_batchitem", ["id", "batch_id", "request_id", "position"]),
        kept("reviews_grant"),
        fixed(
            "reviews_grant",
            [
                *["id", "revision_id", "action_hash", "token_hash"],
                *["not_before", "expected", "standing_grant_id"],
            ],
            rules=shortening("issued_at", "expires_at"),
        ),
        kept("reviews_execution"),
        fixed(
            "reviews_execution",
            [
                *["id", "grant_id", "batch_id", "batch_position"],
                *["by_agent", "announced_in_id", "idempotency_key"],
            ],
            rules=growing("fence"),
        ),
        kept("reviews_alarm"),
        fixed(
            "reviews_alarm", ["id", "kind", "subject", "proposal_id", "queue_id"]
        ),
        kept("reviews_canary"),
        fixed(
            "reviews_canary",
            [
                *["proposal_id", "source_id", "reviewer_id", "tool_name", "risk"],
                *["defect", "field"],
            ],
        ),
        kept("reviews_defectchange"),
        fixed(
            "reviews_defectchange", ["id", "defect", "weight", "reason", "asked_by_id"]
        ),
        kept("reviews_secondreview"),
        fixed(
            "reviews_secondreview",
            ["decision_id", "tool_name", "risk", "cause"],
            rules=once("answered_at", "reviewer_id", "verdict", "reason", "agrees")
            | once("ruled_at", "arbiter_id", "upheld", "ruling"),
        ),
        kept("reviews_dataset"),
        fixed(
            "reviews_dataset",
            [
                *["id", "purpose", "asked_by_id", "owner_id", "tools", "since"],
                *["until", "with_canaries", "train", "validation", "test"],
            ],
        ),
        kept("reviews_practice"),
        fixed("reviews_practice", ["id", "reviewer_id"]),
        kept("reviews_practiceitem"),
        fixed("reviews_practiceitem", ["id", "practice_id", "number", "version_id"]),
        kept("reviews_personaltoken"),
        fixed(
            "reviews_personaltoken",
            ["id", "person_id", "prefix", "digest"],
            rules=once("revoked_at") | shortening("expires_at"),
        ),
        kept("reviews_stop"),
        fixed(
            "reviews_stop",
            ["id", "scope", "key", "mode", "reason", "by", "at"],
            rules=once("lifted_at", "lifted_by", "lift_asked_by"),
        ),
        migrations.RunSQL(LIFT_LOGGED, NO_LIFT_LOGGED),
        kept("reviews_incident"),
        fixed(
            "reviews_incident",
            ["id", "queue_id", "reason", "declared_by"],
            rules=once("ended_at", "ended_by"),
        ),
    ]
