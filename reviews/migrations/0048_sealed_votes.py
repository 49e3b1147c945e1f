"""The seal of a vote, and counting only votes that have their own record in the audit
log. A vote that was cast before, and has its record, is sealed here."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, ClassVar

from django.db import migrations, models
from django.db.migrations import RunPython

from reviews.grants.approvers import BallotVersion, seal_vote

CHUNK = 2000
# The counting votes after an id that have their record, with what their seals cover.
VOTES = f"""
SELECT vote.id, voter.public_id, version.steps, version.carried, bytes.action_hash,
    version.tier, version.edited_by, version.escalated_by
FROM reviews_decision AS vote
JOIN policies_person AS voter ON voter.id = vote.reviewer_id
JOIN reviews_approvalrequest AS request ON request.id = vote.request_id
JOIN reviews_requestversion AS version
    ON version.request_id = vote.request_id AND version.number = vote.version
JOIN reviews_revision AS bytes ON bytes.id = version.revision_id
WHERE vote.counts AND vote.id > %s AND EXISTS (
    SELECT FROM journal_logrecord AS record,
        LATERAL (SELECT convert_from(record.leaf, 'UTF8')::json AS said) AS leaf
    WHERE record.proposal = request.proposal_id
        AND record.kind = 'decision.recorded' AND record.request = vote.request_id
        AND record.actor_id = voter.public_id
        AND leaf.said ->> 'version' = vote.version::text
        AND leaf.said ->> 'action_hash' = bytes.action_hash
        AND leaf.said ->> 'verdict' = vote.verdict)
ORDER BY vote.id LIMIT {CHUNK}
"""
SEAL = """
UPDATE reviews_decision AS vote SET seal = given.seal
FROM unnest(%s::bigint[], %s::text[]) AS given (id, seal) WHERE vote.id = given.id
"""
GUARD = "ALTER TABLE reviews_decision {} TRIGGER reviews_decision_immutable"

_counted = import_module("reviews.migrations.0014_counted_votes")
LACKS_VOTES = _counted.LACKS_VOTES.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
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
LACKS_RECORDED_VOTES = LACKS_VOTES.replace("vote.counts", RECORDED).replace(
    "jsonb_array_length(version.steps) + cardinality(version.carried) = 0",
    "jsonb_array_length(version.steps) = 0",
)


def seal_cast(apps: Any, schema_editor: Any) -> None:
    rows = apps.get_model("reviews", "Decision").objects
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(GUARD.format("DISABLE"))
        after = 0
        while found := _list_seals(cursor, rows, after):
            after = max(found)
            cursor.execute(SEAL, [list(found), list(found.values())])
        cursor.execute(GUARD.format("ENABLE"))


def _list_seals(cursor: Any, rows: Any, after: int) -> dict[int, str]:
    cursor.execute(VOTES, [after])
    found = cursor.fetchall()
    votes = rows.in_bulk([pk for pk, *_ in found])
    return {
        pk: seal_vote(votes[pk], reviewer, BallotVersion(json.loads(steps), *asked))
        for pk, reviewer, steps, *asked in found
    }


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("journal", "0008_log_by_day"),
        ("policies", "0011_sealed_standing_grants"),
        ("reviews", "0047_edited_by"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            "decision",
            "seal",
            models.CharField(blank=True, db_default="", max_length=80),
        ),
        RunPython(seal_cast, RunPython.noop),
        migrations.RunSQL(LACKS_RECORDED_VOTES, LACKS_VOTES),
    ]
