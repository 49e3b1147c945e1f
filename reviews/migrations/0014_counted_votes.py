"""Counting the votes that a request's version asks for, in the database; and the alarm
about a request that is approved without them."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models

KINDS = [
    "never_executed",
    "without_grant",
    "other_bytes",
    "twice",
    "without_votes",
    "late_report",
    "delivery_dead",
    "invalid_outcome",
    "restored",
]
# The same count as `reviews.grants.approvers.without_votes`.
LACKS_VOTES = """
CREATE FUNCTION reviews_lacks_votes(
    asked text, asked_version integer, asked_hash text
) RETURNS boolean LANGUAGE sql STABLE AS $$
SELECT COALESCE((
    SELECT bytes.action_hash <> asked_hash
        OR jsonb_array_length(version.steps) + cardinality(version.carried) = 0
        OR EXISTS (
            SELECT FROM reviews_requestversion AS later
            WHERE later.request_id = asked AND later.number > asked_version)
        OR EXISTS (
            SELECT FROM jsonb_array_elements(version.steps)
                WITH ORDINALITY AS step (wants, place)
            WHERE (step.wants ->> 'required')::integer > (
                SELECT count(*) FROM reviews_decision AS vote
                WHERE vote.request_id = asked AND vote.version = asked_version
                    AND vote.counts AND vote.step = step.place - 1
                    AND (vote.verdict = 'modify' OR
                        vote.verdict = 'approve' AND vote.action_hash = asked_hash)))
        OR EXISTS (
            SELECT FROM unnest(version.carried) AS seat (person)
            WHERE NOT EXISTS (
                SELECT FROM reviews_decision AS vote
                JOIN policies_person AS voter ON voter.id = vote.reviewer_id
                WHERE vote.request_id = asked AND vote.version < asked_version
                    AND vote.counts AND voter.public_id = seat.person
                    AND (vote.verdict = 'modify' OR
                        vote.verdict = 'approve' AND vote.action_hash = asked_hash)))
    FROM reviews_requestversion AS version
    JOIN reviews_revision AS bytes ON bytes.id = version.revision_id
    WHERE version.request_id = asked AND version.number = asked_version
), true)
$$;
"""
DROP = "DROP FUNCTION reviews_lacks_votes(text, integer, text)"


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reviews", "0013_people_kept_out")]

    operations: ClassVar = [
        migrations.RemoveConstraint("alarm", "alarm_kind"),
        migrations.RemoveConstraint("alarm", "alarm_grave_by_person"),
        migrations.AlterField(
            "alarm",
            "kind",
            models.CharField(choices=[(kind, kind) for kind in KINDS], max_length=16),
        ),
        migrations.AddConstraint(
            "alarm",
            models.CheckConstraint(
                condition=models.Q(kind__in=KINDS), name="alarm_kind"
            ),
        ),
        migrations.AddConstraint(
            "alarm",
            models.CheckConstraint(
                condition=~models.Q(
                    kind__in=["twice", "without_grant", "other_bytes", "without_votes"]
                )
                | ~models.Q(closed_how="itself"),
                name="alarm_grave_by_person",
            ),
        ),
        migrations.RunSQL(LACKS_VOTES, DROP),
    ]
