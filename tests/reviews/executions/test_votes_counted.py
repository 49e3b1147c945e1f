"""I18: nothing is authorised or performed on a status alone. The votes are counted from
their rows when the recall window closes and before the effect, under a policy that did
not change as under one that did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from desk.alarms import detail
from desk.request import follow_up, load
from journal import canonical, clock, errors, log
from journal.models import LogRecord
from reviews import deadlines
from reviews.alarms import watch
from reviews.choices import AlarmKind
from reviews.decisions import recall
from reviews.executions import redeem, run
from reviews.grants import approvers, grants, tokens
from reviews.grants.grants import NO_CONDITIONS
from reviews.models import (
    Alarm,
    ApprovalRequest,
    Decision,
    Execution,
    Grant,
    Revision,
)
from reviews.tool_services import readers
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states


def sql(text: str, *values: str | int) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def unguarded(table: str = "reviews_approvalrequest") -> Iterator[None]:
    """As the table's owner, whom no trigger hinders."""
    sql("SET CONSTRAINTS ALL IMMEDIATE")
    sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    yield
    sql("SET CONSTRAINTS ALL IMMEDIATE")
    sql(f"ALTER TABLE {table} ENABLE TRIGGER USER")


FORGE = """UPDATE reviews_approvalrequest SET status = 'recallable',
recall_until = now() - interval '1 second' WHERE id = %s"""


def forged(request: ApprovalRequest) -> ApprovalRequest:
    with unguarded():
        sql(FORGE, request.pk)
    request.refresh_from_db()
    return request


def forged_grant(request: ApprovalRequest) -> Execution:
    """A permission for what nobody said yes to, by our own code."""
    now = clock.now()
    actor = log.Actor("system", "timer")
    with unguarded():
        sql(
            "UPDATE reviews_approvalrequest SET status = 'authorized',"
            " settled_at = now() WHERE id = %s",
            request.pk,
        )
    return grants.issue_request_grants(
        [request], actor=actor, now=now, conditions={request.pk: NO_CONDITIONS}
    )[0]


def kinds() -> list[str]:
    return list(Alarm.objects.order_by("pk").values_list("kind", flat=True))


def test_an_earlier_version_that_had_its_votes_is_no_authority(gate: Gate) -> None:
    request = states.recallable(gate)
    recall.recall_approval(request_id=request.pk, person=gate.rita)
    back = f"{FORGE.split(' WHERE', maxsplit=1)[0]}, version = 1 WHERE id = %s"
    with unguarded():
        sql(back, request.pk)
    request.refresh_from_db()
    assert approvers.without_votes([request]) == {request.pk}


def test_a_window_that_ends_without_votes_authorises_nothing(gate: Gate) -> None:
    """The attack as it was made: one UPDATE, by whoever may write the table."""
    states.recall_windows(gate)
    request = forged(propose(gate.agent, amount="600.00").request)
    honest = propose(gate.agent, customer="C-2").request
    decide(honest, gate.rita)
    past = clock.now() - timedelta(seconds=1)
    ApprovalRequest.objects.filter(pk=honest.pk).update(recall_until=past)
    for _ in range(3):  # a second apart
        deadlines.close_recall_windows()
    request.refresh_from_db()
    honest.refresh_from_db()
    assert (request.status, honest.status) == ("recallable", "authorized")
    assert Grant.objects.get().proposal_id == honest.proposal_id
    alarm = Alarm.objects.get()
    assert (alarm.kind, alarm.times) == ("without_votes", 1)
    assert alarm.data == {"request": request.pk, "version": 1, "stage": "window"}
    assert LogRecord.objects.filter(kind="alarm.raised").count() == 1
    page = detail.load_alarm_page(gate.sue, alarm.pk)
    assert page.line.alarm.kind == AlarmKind.WITHOUT_VOTES


def test_what_was_held_without_votes_is_recalled_and_asked_again(gate: Gate) -> None:
    states.recall_windows(gate)
    request = forged(propose(gate.agent, amount="600.00").request)
    deadlines.close_recall_windows()
    page = load.load_request(gate.sue, request.pk, clock.now())
    assert page.state.word == "Votes are missing. Nothing runs."
    assert follow_up.may_recall(page)
    recall.recall_approval(request_id=request.pk, person=gate.sue)
    decide(request, gate.sue)
    decide(request, gate.sam)
    past = clock.now() - timedelta(seconds=1)
    ApprovalRequest.objects.filter(pk=request.pk).update(recall_until=past)
    deadlines.close_recall_windows()
    request.refresh_from_db()
    assert request.status == "authorized"
    assert kinds() == ["without_votes"]


def test_a_window_with_its_votes_that_is_over_is_not_recalled(gate: Gate) -> None:
    request = states.recallable(gate)
    past = clock.now() - timedelta(seconds=1)
    ApprovalRequest.objects.filter(pk=request.pk).update(recall_until=past)
    assert not follow_up.may_recall(
        load.load_request(gate.rita, request.pk, clock.now())
    )
    with pytest.raises(errors.AlreadyRunning):
        recall.recall_approval(request_id=request.pk, person=gate.rita)


@pytest.mark.parametrize("votes", [0, 1])
def test_a_grant_without_votes_runs_nothing_and_raises_an_alarm(
    gate: Gate, votes: int
) -> None:
    request = propose(gate.agent, amount="600.00").request
    for person in [gate.sue, gate.sam][:votes]:
        decide(request, person)
    execution = forged_grant(request)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "votes_missing")
    assert worlds.effects() == []
    assert kinds()[0] == "without_votes"


def test_a_grant_for_what_still_waits_runs_nothing(gate: Gate) -> None:
    """One row of grants inserted, and no status touched."""
    request = propose(gate.agent, amount="600.00").request
    actor = log.Actor("system", "timer")
    execution = grants.issue_request_grants(
        [request],
        actor=actor,
        now=clock.now(),
        conditions={request.pk: NO_CONDITIONS},
    )[0]
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "votes_missing")
    assert worlds.effects() == []


def test_an_agent_redeems_no_grant_without_votes(gate: Gate) -> None:
    args = {"to": "a friend", "text": "hello"}
    execution = forged_grant(propose(gate.agent, "write", args=args).request)
    with pytest.raises(errors.PreconditionFailed) as refused:
        redeem.redeem_grant(token=tokens.load_token(execution.grant_id), agent="riley")
    assert refused.value.facts["reason"] == "votes_missing"
    assert kinds()[0] == "without_votes"


def test_votes_that_go_during_the_checks_are_counted_at_last(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader takes seconds; what it says is no reason to skip the last count."""
    execution = states.queued(gate)

    original = readers.read_state

    def read(*args: Any, **more: Any) -> Any:
        with unguarded("reviews_decision"):
            sql("DELETE FROM reviews_decision")
        return original(*args, **more)

    monkeypatch.setattr(readers, "read_state", read)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "votes_missing")
    assert worlds.effects() == []


def test_the_sweep_finds_what_nobody_runs_yet(gate: Gate) -> None:
    execution = forged_grant(propose(gate.agent, amount="600.00").request)
    honest = states.queued(gate, "repay")
    watch.sweep_alarms()
    assert list(Alarm.objects.values_list("kind", "subject")) == [
        ("without_votes", execution.pk)
    ]
    assert honest.pk != execution.pk
    assert watch.sweep_alarms() == 0


def edited(gate: Gate) -> ApprovalRequest:
    request = propose(gate.agent).request
    args = {"customer": "C-1", "amount": "39.00", "currency": "USD"}
    decide(request, gate.rita, "modify", args=args)
    return request


def two_supervisors(gate: Gate) -> ApprovalRequest:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    return request


def waiting(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent).request


def half(gate: Gate) -> ApprovalRequest:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    return request


def rejected(gate: Gate) -> ApprovalRequest:
    request = half(gate)
    decide(request, gate.sam, "reject")
    return request


def escalated(gate: Gate) -> ApprovalRequest:
    request = waiting(gate)
    decide(request, gate.rita, "escalate")
    return request


def escalated_and_given(gate: Gate) -> ApprovalRequest:
    request = escalated(gate)
    decide(request, gate.tom)
    decide(request, gate.sue)
    return request


VOTED: dict[str, tuple[Callable[[Gate], ApprovalRequest], bool]] = {
    "approved": (states.authorized, True),
    "recallable": (states.recallable, True),
    "edited": (edited, True),
    "two supervisors": (two_supervisors, True),
    "escalated and given": (escalated_and_given, True),
    "waiting": (waiting, False),
    "one of two": (half, False),
    "rejected": (rejected, False),
    "escalated": (escalated, False),
}


@pytest.mark.parametrize("name", VOTED)
def test_the_code_and_the_database_count_alike(gate: Gate, name: str) -> None:
    reach, voted = VOTED[name]
    request = reach(gate)
    request.refresh_from_db()
    counted = request.pk not in approvers.without_votes([request])
    lacks = sql(
        "SELECT reviews_lacks_votes(%s, %s, %s)",
        request.pk,
        request.version,
        request.action_hash,
    )
    assert (counted, lacks) == (voted, [(not voted,)])


def test_a_vote_for_other_bytes_is_not_counted(gate: Gate) -> None:
    request = states.authorized(gate)
    with unguarded("reviews_decision"):
        sql("UPDATE reviews_decision SET action_hash = 'sha256:other'")
    request.refresh_from_db()
    assert approvers.without_votes([request]) == {request.pk}
    assert sql(
        "SELECT reviews_lacks_votes(%s, 1, %s)", request.pk, request.action_hash
    ) == [(True,)]


def test_votes_that_name_other_bytes_run_nothing(gate: Gate) -> None:
    execution = states.queued(gate)
    with unguarded("reviews_decision"):
        sql("UPDATE reviews_decision SET action_hash = 'sha256:other'")
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "bytes_changed")
    assert worlds.effects() == []
    assert kinds()[0] == "other_bytes"


def rewrite_with_hashes(execution: Execution) -> None:
    """As the owner of every table: the bytes, and each hash that stands beside them."""
    revision = execution.grant.revision
    other = bytes(revision.canonical).replace(b"40.00", b"41.00")
    assert other != bytes(revision.canonical)
    digest = canonical.digest(other)
    worlds.rewrite(Revision, revision.pk, canonical=other, action_hash=digest)
    worlds.rewrite(Grant, execution.grant_id, action_hash=digest)
    request = ApprovalRequest.objects.get(proposal=execution.proposal_id)
    worlds.rewrite(ApprovalRequest, request.pk, action_hash=digest)
    for vote in Decision.objects.filter(request=request):
        worlds.rewrite(Decision, vote.pk, action_hash=digest)


def test_bytes_rewritten_with_every_hash_beside_them_run_nothing(gate: Gate) -> None:
    """Nothing but the log's own record of them says that they are others."""
    execution = states.queued(gate)
    rewrite_with_hashes(execution)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "bytes_changed")
    assert (
        execution.detail == "The audit log records another action than the stored one."
    )
    assert worlds.effects() == []
    assert kinds()[0] == "other_bytes"


def test_bytes_rewritten_with_every_hash_are_found_by_the_sweep(gate: Gate) -> None:
    execution = states.queued(gate)
    honest = states.queued(gate, "repay")
    rewrite_with_hashes(execution)
    watch.sweep_alarms()
    assert list(Alarm.objects.values_list("kind", "subject")) == [
        ("other_bytes", execution.pk)
    ]
    assert honest.pk != execution.pk
    assert watch.sweep_alarms() == 0


def test_a_forged_record_beside_the_true_one_helps_nobody(gate: Gate) -> None:
    """The log takes new records from whoever may write; the first one stays."""
    execution = states.queued(gate)
    rewrite_with_hashes(execution)
    log.append(
        "proposal.submitted",
        actor=log.SYSTEM,
        at=clock.now(),
        proposal=execution.proposal_id,
        revision=1,
        action_hash=Grant.objects.get().action_hash,
    )
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "bytes_changed")


def test_the_log_names_the_bytes_of_an_edit(gate: Gate) -> None:
    execution = Execution.objects.get(proposal=edited(gate).proposal)
    assert execution.grant.revision.number == 2
    assert watch.sweep_alarms() == 0
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == "succeeded"


def test_a_request_that_names_no_version_runs_nothing(gate: Gate) -> None:
    execution = states.queued(gate)
    ApprovalRequest.objects.update(version=9)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "votes_missing")
