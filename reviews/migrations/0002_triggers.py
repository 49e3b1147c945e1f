"""What never changes, what is never deleted, and the only steps a status may take, in the
database; the count of the votes that a request's version asks for; and the composite keys
by which a canary can be neither approved nor executed."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.indexes import drop_pattern_indexes
from journal.triggers import (
    fixed,
    growing,
    immutable,
    kept,
    legal_steps,
    once,
    shortening,
    widening,
)

REQUEST = [
    ("", "pending"),
    ("pending", "recallable"),
    ("pending", "authorized"),
    ("pending", "rejected"),
    ("pending", "expired"),
    ("pending", "withdrawn"),
    ("pending", "superseded"),
    ("recallable", "pending"),
    ("recallable", "authorized"),
    ("recallable", "rejected"),
    ("recallable", "withdrawn"),
]
GRANT = [
    ("", "live"),
    ("live", "spent"),
    ("live", "expired"),
    ("live", "revoked"),
]
EXECUTION = [
    ("", "queued"),
    ("queued", "claimed"),
    ("queued", "refused"),
    ("claimed", "succeeded"),
    ("claimed", "failed"),
    ("claimed", "unknown"),
    ("claimed", "queued"),
    ("claimed", "refused"),
    ("failed", "queued"),
    ("unknown", "succeeded"),
    ("unknown", "failed"),
]
BATCH = [
    ("", "forming"),
    ("forming", "open"),
    ("forming", "decided"),
    ("forming", "dissolved"),
    ("open", "decided"),
    ("open", "dissolved"),
]
EXPORT = [
    ("", "running"),
    ("running", "done"),
    ("running", "failed"),
]
ALARM = [
    ("", "open"),
    ("open", "acknowledged"),
    ("open", "closed"),
    ("acknowledged", "closed"),
]
REPAIR = [
    ("", "proposed"),
    ("proposed", "applied"),
    ("proposed", "refused"),
    ("proposed", "lapsed"),
]
DATASET = [
    ("", "asked"),
    ("asked", "running"),
    ("asked", "refused"),
    ("asked", "withdrawn"),
    ("asked", "lapsed"),
    ("running", "done"),
    ("running", "failed"),
]
DEFECT_CHANGE = [
    ("", "proposed"),
    ("proposed", "confirmed"),
    ("proposed", "refused"),
    ("proposed", "withdrawn"),
    ("proposed", "lapsed"),
]

# The columns of a request that a version decides change only with its version.
OF_VERSION = ["version", "action_hash", "tier", "queue_id"]
OTHER_VERSION = """NEW.version = OLD.version
    AND (NEW.action_hash, NEW.tier, NEW.queue_id)
        IS DISTINCT FROM (OLD.action_hash, OLD.tier, OLD.queue_id)"""

# Whoever ends a stop leaves a record of it, in the same transaction. An earlier period
# may have records of a transaction of another server with the same id.
LIFT_LOGGED = """
CREATE FUNCTION reviews_stop_lift_logged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM journal_logrecord AS record
               WHERE record.id >= journal_period_start()
                   AND record.xid = pg_current_xact_id()
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

# Each vote that counts needs its own record: by this person, of this version and bytes.
RECORDED = """vote.counts AND EXISTS (
                    SELECT FROM reviews_approvalrequest AS request
                    JOIN policies_person AS caster ON caster.id = vote.reviewer_id
                    JOIN reviews_requestversion AS cast_on
                        ON cast_on.request_id = asked AND cast_on.number = vote.version
                    JOIN reviews_revision AS shown ON shown.id = cast_on.revision_id
                    JOIN journal_logrecord AS record
                        ON record.proposal = request.proposal_id
                        AND record.kind = 'decision.recorded'
                        AND record.request = asked
                        AND record.actor_id = caster.public_id
                    CROSS JOIN LATERAL (
                        SELECT convert_from(record.leaf, 'UTF8')::json AS said) AS leaf
                    WHERE request.id = asked AND vote.seal <> ''
                        AND leaf.said ->> 'version' = vote.version::text
                        AND leaf.said ->> 'action_hash' = shown.action_hash
                        AND leaf.said ->> 'verdict' = vote.verdict
                        AND leaf.said #>> '{data,counts}' = 'true')"""
# The same count as `reviews.grants.approvers.without_votes`.
LACKS_VOTES = f"""
CREATE FUNCTION reviews_lacks_votes(
    asked text, asked_version integer, asked_hash text
) RETURNS boolean LANGUAGE sql STABLE AS $$
SELECT COALESCE((
    SELECT bytes.action_hash <> asked_hash
        OR jsonb_array_length(version.steps) = 0
        OR EXISTS (
            SELECT FROM reviews_requestversion AS later
            WHERE later.request_id = asked AND later.number > asked_version)
        OR EXISTS (
            SELECT FROM jsonb_array_elements(version.steps)
                WITH ORDINALITY AS step (wants, place)
            WHERE (step.wants ->> 'required')::integer > (
                SELECT count(*) FROM reviews_decision AS vote
                WHERE vote.request_id = asked AND vote.version = asked_version
                    AND {RECORDED} AND vote.step = step.place - 1
                    AND (vote.verdict = 'modify' OR
                        vote.verdict = 'approve' AND vote.action_hash = asked_hash)))
        OR EXISTS (
            SELECT FROM unnest(version.carried) AS seat (person)
            WHERE NOT EXISTS (
                SELECT FROM reviews_decision AS vote
                JOIN policies_person AS voter ON voter.id = vote.reviewer_id
                WHERE vote.request_id = asked AND vote.version < asked_version
                    AND {RECORDED} AND voter.public_id = seat.person
                    AND (vote.verdict = 'modify' OR
                        vote.verdict = 'approve' AND vote.action_hash = asked_hash)))
    FROM reviews_requestversion AS version
    JOIN reviews_revision AS bytes ON bytes.id = version.revision_id
    WHERE version.request_id = asked AND version.number = asked_version
), true)
$$;
"""
NO_LACKS_VOTES = "DROP FUNCTION reviews_lacks_votes(text, integer, text)"


def _add_canary_key(table: str) -> migrations.RunSQL:
    """Compare the column `canary` with the one of the proposal.

    With the checks of the models, no row of a grant or an execution can refer to a
    canary, whoever writes it. The key is checked at once, not at the end of the
    transaction.
    """
    return migrations.RunSQL(
        f"""
        ALTER TABLE {table} ADD CONSTRAINT {table}_canary_key
            FOREIGN KEY (proposal_id, canary) REFERENCES reviews_proposal (id, canary)
        """,
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_canary_key",
    )


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("journal", "0002_triggers"),
        ("policies", "0002_triggers"),
        ("reviews", "0001_tables"),
    ]

    operations: ClassVar = [
        immutable("reviews_revision"),
        immutable("reviews_requestversion"),
        immutable("reviews_decision"),
        immutable("reviews_snapshot"),
        immutable("reviews_statereading"),
        immutable("reviews_note"),
        immutable("reviews_message"),
        immutable("reviews_latereport"),
        immutable("reviews_lookup"),
        immutable("reviews_reversal", once=["over_at"]),
        immutable(
            "reviews_repair",
            but_for=["status", "settled_by", "answer"],
            once=["settled_at"],
        ),
        legal_steps("reviews_approvalrequest", REQUEST),
        legal_steps("reviews_grant", GRANT),
        legal_steps("reviews_execution", EXECUTION),
        legal_steps("reviews_batch", BATCH),
        legal_steps("reviews_export", EXPORT),
        legal_steps("reviews_alarm", ALARM),
        legal_steps("reviews_repair", REPAIR),
        legal_steps("reviews_dataset", DATASET),
        legal_steps("reviews_defectchange", DEFECT_CHANGE),
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
        # A grant's window never becomes longer, and never begins after a stop that it
        # began before.
        kept("reviews_grant"),
        fixed(
            "reviews_grant",
            [
                *["id", "revision_id", "action_hash"],
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
        # A stop that was lifted stays lifted, and a new one is a new row.
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
        migrations.RunSQL(LACKS_VOTES, NO_LACKS_VOTES),
        _add_canary_key("reviews_approvalrequest"),
        _add_canary_key("reviews_grant"),
        _add_canary_key("reviews_execution"),
        drop_pattern_indexes("reviews"),
    ]
