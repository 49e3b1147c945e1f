"""A past of any size as plain rows: thousands of requests with what agents, people and
the gate left behind. The rows are drawn by hashes of their numbers, so every run makes
the same ones. Each copies a row that an operation made, with columns of its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import AutoField, Model

from journal import clock
from journal.models import LogRecord
from policies.models import Person
from reviews.choices import CanaryEnding, DefectKind, SampleCause, Scope
from reviews.models import (
    ApprovalRequest,
    Canary,
    Decision,
    Execution,
    Notice,
    Proposal,
    RequestVersion,
    Reversal,
    SecondReview,
)
from reviews.stops import stops
from tests.hitl.tasks.draining import drain
from tests.journal import history

# What is drawn about proposal n. `draw(n, salt)` is a number from 0 up to 1.
_DRAWN = """
CREATE FUNCTION pg_temp.draw(n bigint, salt int) RETURNS float8 IMMUTABLE LANGUAGE sql
AS 'SELECT (hashint8extended(n, salt) & 1048575) / 1048576.0';
CREATE TEMPORARY TABLE drawn ON COMMIT DROP AS
SELECT base.*,
       fate IN ('authorized', 'rejected') AS decided,
       fate = 'authorized' AND pg_temp.draw(n, 6) < 0.12 AS modified,
       fate IN ('authorized', 'rejected', 'expired') AND pg_temp.draw(n, 7) < 0.08
           AS escalated,
       fate = 'expired' AND pg_temp.draw(n, 7) > 0.7 AS undone,
       CASE WHEN fate IN ('pending', 'recallable') THEN NULL
            ELSE opened + lasts END AS settled
FROM (
    SELECT n,
           (ARRAY['pay', 'repay', 'tag', 'deploy', 'write'])
               [1 + floor(pg_temp.draw(n, 1) * 5)] AS tool,
           (ARRAY['low', 'medium', 'high', 'critical'])
               [1 + floor(pg_temp.draw(n, 2) * 4)] AS level,
           'run-' || n / 2 AS run,
           %(start)s::timestamptz + %(length)s * ((n - pg_temp.draw(n, 3)) / %(count)s)
               AS opened,
           interval '2 hours' * power(pg_temp.draw(n, 4), 3) + interval '2 minutes'
               AS lasts,
           CASE WHEN pg_temp.draw(n, 8) < 0.25 THEN 'unasked'
                WHEN pg_temp.draw(n, 5) < 0.62 THEN 'authorized'
                WHEN pg_temp.draw(n, 5) < 0.78 THEN 'rejected'
                WHEN pg_temp.draw(n, 5) < 0.93 THEN 'expired'
                WHEN pg_temp.draw(n, 5) < 0.97 THEN 'withdrawn'
                WHEN n > %(count)s - 20 THEN 'pending'
                ELSE 'superseded' END AS fate,
           round(pg_temp.draw(n, 9) * pg_temp.draw(n, 10) * 240000)::int AS took,
           -- Some come again; a recount compares each pair of them.
           n %% greatest(97, %(count)s / 8) AS action,
           (%(people)s::bigint[])[1 + floor(pg_temp.draw(n, 11) * 4)] AS person,
           (%(people)s::bigint[])[1 + floor(pg_temp.draw(n / 3, 12) * 4)] AS other
    FROM generate_series(1, %(count)s::bigint) AS n
) AS base;
ANALYZE drawn;
"""
_SCOPE = "FROM drawn, {table} AS base WHERE base.{key}::text = %s AND ({where})"
ASKED = "fate <> 'unasked'"
LATE = "opened + lasts"
ARGS = """convert_to('{"args":' || %s || ',"preconditions":{}}', 'UTF8')"""
FIRST = ARGS % """'{"amount":"' || n || '","to":"a"}'"""
SECOND = (
    ARGS
    % """'{"amount":"' || n + 1 || '","to":"' ||
    CASE WHEN n % 5 = 0 THEN 'b' ELSE 'a' END || '"}'"""
)
EVALUATION = """jsonb_build_object(
    'effect_class', CASE WHEN tool = 'write' THEN 'class-' || n % 2 ELSE '' END,
    'flags', CASE WHEN n % 4 = 0 THEN '["odd"]'::jsonb ELSE '[]' END,
    'rules', '[]'::jsonb)"""
RULES = """CASE n % 3 WHEN 0 THEN '[]'::jsonb
    WHEN 1 THEN '[{"id": "one"}]' ELSE '[{"id": "one"}, {"id": "two"}]' END"""
FACTS = """base.facts || CASE WHEN n % 6 = 0
    THEN '{"indicators": ["contradiction"]}'::jsonb ELSE '{}' END"""
DONE = f"({LATE}) - interval '3 seconds' * (1 - pg_temp.draw(n, 13))"


def leaf(data: str) -> str:
    """A record's leaf with this data, as SQL."""
    return f"convert_to(jsonb_build_object('data', {data})::text, 'UTF8')"


def generate_past(
    base: Execution, deciders: Sequence[Person], count: int, *, days: int, last: date
) -> None:
    """Make `count` proposals over so many days up to the end of `last`, like that of an
    execution that four people could decide."""
    end = datetime.combine(last, time.min, UTC) + timedelta(days=1)
    start = end - timedelta(days=days)
    drain("request.opened")
    proposal = base.proposal
    request = proposal.request
    reversal = Reversal.objects.create(
        execution=base,
        proposal=proposal,
        by=deciders[0].public_id,
        at=clock.now(),
    )
    stop = stops.create_stop(
        scope=Scope.TOOL, key="unused", person=deciders[-1], reason="odd"
    )
    stop = stops.lift_stop(stop_id=stop.pk, person=deciders[-1], reason="odd")
    with transaction.atomic(), history.past():
        with connection.cursor() as cursor:
            values: dict[str, Any] = {
                "count": count,
                "start": start,
                "length": end - start - timedelta(hours=3),
                "people": [person.pk for person in deciders],
            }
            cursor.execute(_DRAWN, values)
        _make_requests(
            proposal,
            proposal.current,
            request,
            RequestVersion.objects.get(request=request),
        )
        _make_canaries(proposal, request, deciders[0])
        decision = Decision.objects.get(request=request)
        _make_decisions(decision)
        _make_second_reviews(decision)
        _make_records(LogRecord.objects.earliest("id"))
        _make_executions(base, reversal, stop)
        _make_notices(Notice.objects.filter(request=request).earliest("pk"))
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION pg_temp.draw CASCADE")
            # Nobody else sees these rows before they are committed, so nobody else
            # tells the planner how many there are.
            cursor.execute("ANALYZE")


def _make_requests(
    proposal: Model, revision: Model, request: Model, version: Model
) -> None:
    copy(
        proposal,
        id="'p-' || n",
        thread="run",
        tool_name="tool",
        created_at="opened",
        revision="CASE WHEN modified THEN 2 ELSE 1 END",
    )
    common = {
        "proposal_id": "'p-' || n",
        "evaluation": EVALUATION,
        "agent_version": "'v' || n % 2",
        "risk": "level",
    }
    common["facts"] = FACTS
    copy(revision, number="1", canonical=FIRST, author_kind="'agent'", **common)
    copy(
        revision,
        "modified",
        number="2",
        canonical=SECOND,
        author_kind="'person'",
        **common,
    )
    copy(
        request,
        ASKED,
        id="'r-' || n",
        proposal_id="'p-' || n",
        tool_name="tool",
        risk="level",
        status="fate",
        opened_at="opened",
        settled_at="settled",
        expires_at="opened + interval '3 hours'",
        expires_at_most="opened + interval '4 hours'",
        version="1 + escalated::int + modified::int + undone::int",
        repeat_key="md5(action::text)::uuid",
    )
    for number in (1, 2, 3):
        copy(
            version,
            f"{ASKED} AND 1 + escalated::int + modified::int + undone::int >= {number}",
            request_id="'r-' || n",
            number=str(number),
            cause=f"CASE WHEN undone AND {number} = 2 THEN 'recalled' ELSE '' END",
            rules=RULES,
            revision_id=f"""(SELECT id FROM reviews_revision AS own
                WHERE own.proposal_id = 'p-' || n AND own.number <=
                    CASE WHEN {number} > 1 + escalated::int THEN 2 ELSE 1 END
                ORDER BY own.number DESC LIMIT 1)""",
        )


def _make_canaries(
    proposal: Proposal, request: ApprovalRequest, reviewer: Person
) -> None:
    """Canaries beside every ninth proposal, in its run; some are open, and some ended
    without a decision."""
    where = "n % 9 = 0"
    copy(proposal, where, id="'c-' || n", thread="run", created_at="opened",
         tool_name="tool", canary="true")  # fmt: skip
    copy(
        request,
        where,
        id="'rc-' || n",
        proposal_id="'c-' || n",
        tool_name="tool",
        risk="level",
        status="CASE WHEN settled IS NULL THEN 'pending' ELSE 'withdrawn' END",
        opened_at="opened",
        settled_at="settled",
        expires_at="opened + interval '1 hour'",
        expires_at_most="opened + interval '4 hours'",
        canary="true",
        canary_for="'someone'",
    )
    base = Canary.objects.create(
        proposal=proposal,
        source=proposal,
        reviewer=reviewer,
        tool_name=proposal.tool_name,
        risk=request.risk,
        defect=DefectKind.EXTRA_BCC,
        inserted_at=request.opened_at,
        next_after=45,
        ending=CanaryEnding.EXPIRED,
        ended_at=clock.now(),
    )
    ended = "settled IS NOT NULL AND n % 6 > 0"
    kinds = ", ".join(f"'{kind}'" for kind in DefectKind)
    verdict = "(ARRAY['approve', 'reject', 'escalate', 'modify'])[1 + n % 4]"
    caught = "n % 4 IN (1, 2) OR n % 4 = 3 AND pg_temp.draw(n, 21) < 0.8"
    copy(
        base,
        f"{where} AND settled IS NOT NULL",
        proposal_id="'c-' || n",
        reviewer_id="person",
        tool_name="tool",
        risk="level",
        defect=f"(ARRAY[{kinds}])[1 + n % {len(DefectKind)}]",
        inserted_at="opened",
        ended_at="settled",
        ending=f"CASE WHEN {ended} THEN 'decided' ELSE 'expired' END",
        verdict=f"CASE WHEN {ended} THEN {verdict} ELSE '' END",
        caught=f"CASE WHEN {ended} THEN {caught} END",
        took_ms=f"CASE WHEN {ended} AND n % 7 > 0 THEN took END",
    )
    base.delete()


def _make_second_reviews(decision: Decision) -> None:
    """A second review of every fifth decision; some disagree or were not answered."""
    now = clock.now()
    base = SecondReview.objects.create(
        decision=decision,
        tool_name="pay",
        risk="high",
        cause=SampleCause.SAMPLE,
        chosen_at=now,
        due_at=now,
    )
    own = """(SELECT {} FROM reviews_decision AS own WHERE own.request_id = 'r-' || n
        AND own.verdict IN ('approve', 'reject') ORDER BY own.id LIMIT 1)"""
    pick, first = own.format("own.id"), own.format("own.verdict")
    answered, agrees = "n % 4 > 0", "n % 3 > 0"
    other = f"CASE {first} WHEN 'approve' THEN 'reject' ELSE 'approve' END"
    ruled = f"{answered} AND NOT {agrees} AND n % 2 = 0"
    copy(
        base,
        f"decided AND n % 5 = 0 AND {pick} IS NOT NULL",
        decision_id=pick,
        tool_name="tool",
        risk="level",
        cause="CASE WHEN n % 10 = 0 THEN 'fast' ELSE 'sample' END",
        answered_at=f"CASE WHEN {answered} THEN settled END",
        reviewer_id=f"CASE WHEN {answered} THEN other END",
        verdict=f"CASE WHEN NOT ({answered}) THEN '' WHEN {agrees} THEN {first}"
        f" ELSE {other} END",
        agrees=f"CASE WHEN {answered} THEN {agrees} END",
        ruled_at=f"CASE WHEN {ruled} THEN settled END",
        arbiter_id=f"CASE WHEN {ruled} THEN person END",
        upheld=f"CASE WHEN NOT ({ruled}) THEN '' WHEN n % 7 < 4 THEN 'second'"
        " ELSE 'first' END",
    )
    base.delete()


def _make_decisions(decision: Model) -> None:
    common = {
        "request_id": "'r-' || n",
        "took_ms": "CASE WHEN n % 11 > 0 THEN took END",
        "counts": "false",
        "step": "NULL",
        "reading_id": "NULL",
        "flags": "CASE WHEN n % 23 = 0 THEN '{narrow,fast}' ELSE '{}' END::text[]",
        "check_asked": """CASE n % 5 WHEN 0 THEN jsonb_build_object(
            'question', CASE WHEN n % 2 = 0 THEN 'after:1' ELSE 'given:2' END,
            'answers', CASE WHEN n % 3 = 0 THEN '[2, 1]'::jsonb ELSE '[1]' END,
            'right', 1) WHEN 1 THEN '{"question": "written:first_payment",
            "written": "Ann"}'::jsonb ELSE '{}'::jsonb END""",
    }
    copy(
        decision,
        "escalated",
        version="1",
        verdict="'escalate'",
        reviewer_id="other",
        at="opened + (lasts) / 3",
        reason_code="'unclear'",
        **common,
    )
    copy(
        decision,
        "undone",
        version="1",
        verdict="'approve'",
        reviewer_id="person",
        at="opened + (lasts) / 2",
        reason_code="''",
        **common,
    )
    copy(
        decision,
        "modified",
        version="1 + escalated::int",
        verdict="'modify'",
        reviewer_id="person",
        at="opened + (lasts) / 2",
        reason_code="'wrong_amount'",
        **common,
    )
    copy(
        decision,
        "decided",
        version="1 + escalated::int + modified::int",
        verdict="CASE fate WHEN 'rejected' THEN 'reject' ELSE 'approve' END",
        reviewer_id="person",
        at=DONE,
        reason_code="""CASE WHEN fate = 'rejected' THEN
            (ARRAY['unsafe', 'policy', 'not_needed'])[1 + n % 3] ELSE '' END""",
        **common,
    )


def _make_records(record: Model) -> None:
    common = {
        "proposal": "'p-' || n",
        "request": "'r-' || n",
        "agent": "'riley'",
        "thread": "run",
    }
    finished = """'{}'::jsonb || jsonb_build_object('result',
        CASE WHEN n % 10 < 6 THEN 'completed' ELSE 'gave_up' END)"""
    copy(
        record,
        "n % 2 = 0 AND n % 20 > 0",
        kind="'thread.finished'",
        at=f"{LATE} + interval '20 minutes'",
        leaf=leaf(finished),
        **(common | {"proposal": "''", "request": "''"}),
    )
    copy(
        record,
        "decided OR fate = 'expired' AND n % 3 = 0",
        kind="'hold.taken'",
        at="opened + lasts / 5",
        actor_id="(SELECT public_id FROM policies_person WHERE id = person)",
        leaf=leaf("NULL"),
        **common,
    )
    copy(
        record,
        "decided AND n % 17 = 0",
        kind="'decision.refused'",
        at="opened + lasts / 4",
        leaf=leaf(
            "jsonb_build_object('code', (ARRAY['stale', 'held', 'reason'])[1 + n % 3])"
        ),
        **common,
    )
    copy(
        record,
        "fate = 'withdrawn' AND n % 2 = 0",
        kind="'request.withdrawn'",
        at="settled",
        leaf=leaf('\'{"code": "stopped"}\'::jsonb'),
        **common,
    )


def _make_notices(notice: Model) -> None:
    """Two messages about most requests: one to the person who decided it or to another
    one, and one to a place. Some were not sent."""
    common = {
        "request_id": "'r-' || n",
        "at": "opened",
        "due_at": "opened",
        "sent_at": "CASE WHEN n % 13 > 0 THEN"
        " opened + interval '1 minute' * pg_temp.draw(n, 20) END",
    }
    copy(
        notice,
        "settled IS NOT NULL AND n % 3 <> 0",
        person_id="CASE WHEN n / 8 % 2 = 0 THEN person ELSE other END",
        channel="(ARRAY['email', 'email', 'sms', 'push'])[1 + n % 4]",
        digest="n % 8 < 2",
        **common,
    )
    copy(
        notice,
        "settled IS NOT NULL AND n % 5 = 0",
        person_id="NULL",
        channel="(ARRAY['slack', 'chat', 'webhook'])[1 + n % 3]",
        digest="false",
        **common,
    )


def _make_executions(execution: Execution, reversal: Model, stop: Model) -> None:
    ran = "fate IN ('authorized', 'unasked')"
    newest = """(SELECT id FROM reviews_revision AS own
        WHERE own.proposal_id = 'p-' || n ORDER BY own.number DESC LIMIT 1)"""
    copy(
        execution.grant,
        ran,
        id="'g-' || n",
        proposal_id="'p-' || n",
        revision_id=newest,
    )
    copy(
        execution,
        ran,
        id="'x-' || n",
        proposal_id="'p-' || n",
        grant_id="'g-' || n",
        idempotency_key="'k-' || n",
        status="CASE WHEN n % 9 = 0 THEN 'failed' ELSE 'succeeded' END",
        queued_at="opened",
        finished_at=f"{LATE} + interval '1 minute'",
    )
    copy(
        reversal,
        f"{ran} AND n % 31 = 0",
        execution_id="'x-' || n",
        proposal_id="'q-' || n",
        at=f"{LATE} + interval '1 day' * (n % 10)",
        over_at="NULL",
    )
    copy(
        stop,
        "fate = 'withdrawn' AND n % 2 = 0",
        scope="'thread'",
        key="'riley/' || run",
        at="settled - interval '1 second' * (n % 300)",
        lifted_at="settled + interval '1 minute'",
        lifted_by="'someone'",
    )


def copy(row: Model, where: str = "true", **other: str) -> None:
    """This row once for each drawn proposal that fits. `other` gives columns as SQL
    over the columns of `drawn`."""
    meta = row._meta
    fields = [one for one in meta.concrete_fields if not isinstance(one, AutoField)]
    columns = [str(one.column) for one in fields]
    assert set(other) <= set(columns), set(other) - set(columns)
    values = [other.get(name, f'base."{name}"') for name in columns]
    named = ", ".join(f'"{name}"' for name in columns)
    scope = _SCOPE.format(table=meta.db_table, key=meta.pk.column, where=where)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {meta.db_table} ({named})"
            f" SELECT {', '.join(values)} {scope}".replace("% ", "%% "),
            [str(row.pk)],
        )


def run_query(sql: str, **values: Any) -> list[tuple[Any, ...]]:
    """The rows of a plain query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
