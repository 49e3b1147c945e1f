"""Who can write the tables, with every trigger on, cannot vote. A vote counts only with
its own record in the append-only log and its seal, whose key is not in the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from journal import clock, errors, log
from policies.models import Person, StandingGrant
from reviews import deadlines
from reviews.alarms import watch
from reviews.decisions import recall, returns
from reviews.executions import redeem, run
from reviews.grants import grants, tokens
from reviews.grants.grants import NO_CONDITIONS
from reviews.models import (
    Alarm,
    ApprovalRequest,
    Decision,
    Execution,
    Grant,
    RequestVersion,
    Revision,
)
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from tests.reviews.standing_grants.allowing import (
    allow_tags,
    execution_of,
    is_asked,
    issue,
    tag,
)

pytestmark = pytest.mark.django_db
LARGE = "620.00"  # asks for two supervisors


def forge_vote(request: ApprovalRequest, person: Person, **other: Any) -> Decision:
    """What an attacker inserts: a row like a real one, with any seal."""
    row = Decision(
        request=request,
        reviewer=person,
        **{
            "version": request.version,
            "verdict": "approve",
            "counts": True,
            "step": 0,
            "action_hash": request.action_hash,
            "authority": {
                "role": "supervisor",
                "queue": request.queue.name,
                "step_up": "password",
                "by": "page",
            },
            "at": clock.now(),
            **other,
        },
    )
    row.save(force_insert=True)
    return row


def forge_record(row: Decision) -> None:
    """The log takes new records from whoever may write."""
    request = row.request
    log.append(
        "decision.recorded",
        actor=log.Actor("person", row.reviewer.public_id),
        at=row.at,
        proposal=request.proposal_id,
        request=request.pk,
        version=row.version,
        action_hash=request.action_hash,
        verdict=row.verdict,
        data={"counts": True, "step": row.step, "by": "page"},
    )


def authorize(request: ApprovalRequest) -> None:
    """The UPDATE of the attack: the undo window is open, and over."""
    over = clock.now() - timedelta(seconds=1)
    rows = ApprovalRequest.objects.filter(pk=request.pk)
    rows.update(status="recallable", recall_until=over)
    deadlines.close_recall_windows()
    request.refresh_from_db()


def issue_by_hand(request: ApprovalRequest) -> Execution:
    """The attacker inserts the grant and the execution as well."""
    if request.status == "pending":
        rows = ApprovalRequest.objects.filter(pk=request.pk)
        rows.update(status="authorized", settled_at=clock.now())
        request.refresh_from_db()
    return grants.issue_request_grants(
        [request],
        actor=log.SYSTEM,
        now=clock.now(),
        conditions={request.pk: NO_CONDITIONS},
    )[0]


def run_one(execution: Execution) -> tuple[str, str]:
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    return str(execution.status), execution.code


UNRECORDED = ("refused", "votes_unrecorded")


def alarm_facts() -> dict[str, Any]:
    found: dict[str, Any] = Alarm.objects.get(kind="without_votes").data
    return found


def test_two_inserted_votes_and_one_update_authorise_nothing(gate: Gate) -> None:
    request = propose(gate.agent, amount=LARGE).request
    for person in (gate.sue, gate.sam):
        forge_vote(request, person)
    authorize(request)
    assert request.status == "recallable"
    assert not Grant.objects.exists()
    assert worlds.effects() == []
    assert alarm_facts()["request"] == request.pk
    deadlines.close_recall_windows()
    assert Alarm.objects.get().times == 1


@pytest.mark.parametrize("logged", [False, True], ids=["unlogged", "logged"])
@pytest.mark.parametrize("seal", ["", "hmac-sha256:" + "0" * 64])
def test_a_grant_on_inserted_votes_is_refused(
    gate: Gate, logged: bool, seal: str
) -> None:
    request = propose(gate.agent, amount=LARGE).request
    for person in (gate.sue, gate.sam):
        row = forge_vote(request, person, seal=seal)
        if logged:
            forge_record(row)
    assert run_one(issue_by_hand(request)) == UNRECORDED
    assert worlds.effects() == []
    facts = alarm_facts()
    assert (facts["request"], facts["code"]) == (request.pk, "votes_unrecorded")


def test_one_inserted_vote_beside_a_real_one_is_refused(gate: Gate) -> None:
    request = propose(gate.agent, amount=LARGE).request
    forge_vote(request, gate.sue)
    decide(request, gate.sam)
    execution = Execution.objects.get()
    assert run_one(execution) == UNRECORDED
    assert worlds.effects() == []
    assert alarm_facts()["request"] == request.pk


def test_a_vote_beside_enough_real_ones_is_refused_too(gate: Gate) -> None:
    request = propose(gate.agent, amount=LARGE).request
    decide(request, gate.sue)
    decide(request, gate.sam)
    forge_vote(request, gate.rita)
    assert run_one(Execution.objects.get()) == UNRECORDED


def test_an_agent_redeems_nothing_on_inserted_votes(gate: Gate) -> None:
    args = {"to": "a friend", "text": "hello"}
    request = propose(gate.agent, "write", args=args).request
    forge_vote(request, gate.rita)
    execution = issue_by_hand(request)
    with pytest.raises(errors.PreconditionFailed) as refused:
        redeem.redeem_grant(token=tokens.load_token(execution.grant_id), agent="riley")
    assert refused.value.facts["reason"] == "votes_unrecorded"
    assert alarm_facts()["request"] == request.pk


def test_a_vote_copied_from_another_request_is_refused(gate: Gate) -> None:
    real = propose(gate.agent, amount=LARGE).request
    decide(real, gate.sue)
    other = propose(gate.agent, amount=LARGE, customer="C-2").request
    copied = Decision.objects.get()
    facts = {"seal": copied.seal, "at": copied.at, "authority": copied.authority}
    forge_record(forge_vote(other, gate.sue, **facts))
    decide(other, gate.sam)
    execution = Execution.objects.get(proposal=other.proposal)
    assert run_one(execution) == UNRECORDED


def test_a_vote_on_an_earlier_version_is_refused(gate: Gate) -> None:
    request = states.recallable(gate)
    recall.recall_approval(request_id=request.pk, person=gate.rita)
    request.refresh_from_db()
    earlier = Decision.objects.get(counts=True)
    facts = {"seal": earlier.seal, "at": earlier.at, "authority": earlier.authority}
    forge_record(forge_vote(request, gate.rita, **facts))
    assert run_one(issue_by_hand(request)) == UNRECORDED


def test_a_rejection_copied_as_an_approval_is_refused(gate: Gate) -> None:
    """The record of a rejection stands for no approval."""
    request = propose(gate.agent, amount=LARGE).request
    decide(request, gate.sue, "reject")
    no = Decision.objects.get()
    other = propose(gate.agent, amount=LARGE, customer="C-2").request
    forge_vote(other, gate.sue, seal=no.seal, at=no.at, authority=no.authority)
    decide(other, gate.sam)
    assert run_one(Execution.objects.get(proposal=other.proposal)) == UNRECORDED


def test_a_version_that_carries_one_vote_needs_a_vote_of_its_own(gate: Gate) -> None:
    """Who inserts a version that asks for less has no vote on it."""
    request = propose(gate.agent, amount=LARGE).request
    decide(request, gate.sue)
    version = RequestVersion.objects.get()
    version.pk, version.number = None, 2
    version.steps, version.carried = [], [gate.sue.public_id]
    version.save(force_insert=True)
    ApprovalRequest.objects.filter(pk=request.pk).update(version=2)
    request.refresh_from_db()
    status, code = run_one(issue_by_hand(request))
    assert (status, code) == ("refused", "votes_missing")
    assert worlds.effects() == []


def test_a_real_vote_on_an_inserted_version_is_not_enough(gate: Gate) -> None:
    """The version asks for one reviewer, and the policy for two supervisors."""
    request = propose(gate.agent, amount=LARGE).request
    version = RequestVersion.objects.get()
    version.pk, version.number = None, 2
    version.steps = [{"role": "reviewer", "required": 1}]
    version.save(force_insert=True)
    ApprovalRequest.objects.filter(pk=request.pk).update(version=2)
    request.refresh_from_db()
    decide(request, gate.sue)
    assert run_one(Execution.objects.get()) == ("refused", "policy_tightened")
    assert worlds.effects() == []


def test_a_vote_under_other_steps_is_refused(gate: Gate) -> None:
    """As the owner of the tables, who rewrites what the version asks for."""
    request = propose(gate.agent, amount=LARGE).request
    decide(request, gate.sue)
    fewer = [{"role": "supervisor", "required": 1}]
    worlds.rewrite(RequestVersion, RequestVersion.objects.get().pk, steps=fewer)
    request.refresh_from_db()
    assert run_one(issue_by_hand(request)) == UNRECORDED


@pytest.mark.parametrize("shut", ["edited_by", "escalated_by"])
def test_a_vote_on_a_version_that_shuts_out_others_is_refused(
    gate: Gate, shut: str
) -> None:
    """Whoever edited or escalated a version does not decide it; a vote names them."""
    execution = states.queued(gate)
    version = RequestVersion.objects.get()
    worlds.rewrite(RequestVersion, version.pk, **{shut: [gate.tom.public_id]})
    assert run_one(execution) == UNRECORDED


@pytest.mark.parametrize(
    "change",
    [
        {"authority": {"role": "supervisor", "step_up": "password", "by": "page"}},
        {"at": "2030-01-01T00:00Z"},
        {"step": 1},
        {"version": 7},
        {"conditions": {"odd": 1}},
        {"seal": ""},
    ],
    ids=["authority", "at", "step", "version", "conditions", "seal"],
)
def test_a_rewritten_vote_is_refused(gate: Gate, change: dict[str, Any]) -> None:
    execution = states.queued(gate)
    worlds.rewrite(Decision, Decision.objects.get(counts=True).pk, **change)
    status, code = run_one(execution)
    moved = "version" in change  # then it is no vote on this version
    assert (status, code) == ("refused", "votes_missing" if moved else UNRECORDED[1])


def test_a_grant_for_the_bytes_before_an_edit_is_refused(gate: Gate) -> None:
    """The editor approved other bytes, and an editor's vote names those they saw."""
    args = {"customer": "C-1", "amount": "39.00", "currency": "USD"}
    request = propose(gate.agent).request
    decide(request, gate.rita, "modify", args=args)
    execution = Execution.objects.get()
    before = Revision.objects.get(proposal=request.proposal, number=1)
    found = {"revision": before, "action_hash": before.action_hash}
    worlds.rewrite(Grant, execution.grant_id, **found)
    execution = Execution.objects.get()
    assert run_one(execution) == ("refused", "bytes_changed")
    assert worlds.effects() == []


def test_a_vote_without_its_record_is_refused(gate: Gate) -> None:
    """As the owner of the log, who removes a record."""
    execution = states.queued(gate)
    kept = "journal_logrecord"
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"ALTER TABLE {kept} DISABLE TRIGGER append_only")
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(f"DELETE FROM {kept} WHERE kind = 'decision.recorded'")
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute(f"ALTER TABLE {kept} ENABLE ALWAYS TRIGGER append_only")
    assert run_one(execution) == UNRECORDED
    assert worlds.effects() == []


def test_the_sweep_names_the_request_before_anything_is_tried(gate: Gate) -> None:
    request = propose(gate.agent, amount=LARGE).request
    for person in (gate.sue, gate.sam):
        forge_vote(request, person)
    execution = issue_by_hand(request)
    honest = states.queued(gate, "repay")
    watch.sweep_alarms()
    assert list(Alarm.objects.values_list("kind", "subject")) == [
        ("without_votes", execution.pk)
    ]
    assert alarm_facts()["request"] == request.pk
    assert honest.status == "queued"
    assert watch.sweep_alarms() == 0


def test_the_sweep_finds_an_authorised_request_without_votes(gate: Gate) -> None:
    request = propose(gate.agent, amount=LARGE).request
    rows = ApprovalRequest.objects.filter(pk=request.pk)
    rows.update(status="authorized", settled_at=clock.now())
    states.queued(gate, "repay")
    watch.sweep_alarms()
    assert alarm_facts() == {"request": request.pk, "version": 1, "stage": "status"}
    assert watch.sweep_alarms() == 0


def edited(gate: Gate) -> None:
    args = {"customer": "C-1", "amount": "39.00", "currency": "USD"}
    decide(propose(gate.agent).request, gate.rita, "modify", args=args)


def by_two(gate: Gate) -> None:
    request = propose(gate.agent, amount=LARGE).request
    decide(request, gate.sue)
    decide(request, gate.sam)


def escalated(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "escalate")
    decide(request, gate.tom)
    decide(request, gate.sue)


def returned(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "escalate")
    returns.return_with_guidance(
        request_id=request.pk, person=gate.sue, guidance="Look at the order again."
    )
    decide(request, gate.tom)


def recalled(gate: Gate) -> None:
    request = states.recallable(gate)
    recall.recall_approval(request_id=request.pk, person=gate.rita)
    decide(request, gate.rita)
    over = clock.now() - timedelta(seconds=1)
    ApprovalRequest.objects.filter(pk=request.pk).update(recall_until=over)
    deadlines.close_recall_windows()


REAL: dict[str, Callable[[Gate], object]] = {
    "one approval": states.queued,
    "two supervisors": by_two,
    "an edit": edited,
    "an escalation": escalated,
    "a return": returned,
    "a recalled approval": recalled,
    "a batch": states.decided_batch,
}


@pytest.mark.parametrize("name", REAL)
def test_every_real_vote_has_its_record_and_its_seal(gate: Gate, name: str) -> None:
    REAL[name](gate)
    executions = list(Execution.objects.filter(status="queued"))
    assert executions
    assert watch.sweep_alarms() == 0
    for execution in executions:
        assert run_one(execution)[0] == "succeeded"


# Standing grants


def forge_standing_grant(gate: Gate, request: ApprovalRequest) -> StandingGrant:
    now = clock.now()
    row = StandingGrant(
        agent="riley",
        thread=request.proposal.thread,
        tool=request.tool_name,
        queue=request.queue,
        request=request.pk,
        issued_by=gate.sue,
        role="supervisor",
        reason="x",
        issued_at=now,
        expires_at=now + timedelta(minutes=30),
        budget=9,
    )
    row.save(force_insert=True)
    return row


@pytest.mark.parametrize("logged", [False, True])
def test_an_inserted_standing_grant_covers_nothing(gate: Gate, logged: bool) -> None:
    allow_tags(gate, uses=3)
    row = forge_standing_grant(gate, tag(gate).request)
    if logged:
        log.append(
            "standing_grant.issued",
            actor=log.Actor("person", gate.sue.public_id),
            at=clock.now(),
            agent=row.agent,
            thread=row.thread,
            request=row.request,
            data={"standing_grant": row.pk},
        )
    assert is_asked(tag(gate, "b"))


def test_a_use_of_an_unrecorded_standing_grant_is_refused(gate: Gate) -> None:
    allow_tags(gate, uses=3)
    real = issue(gate, tag(gate).request)
    execution = execution_of(tag(gate, "b"))
    worlds.rewrite(StandingGrant, real.pk, budget=99)
    assert run_one(execution) == ("refused", "standing_unrecorded")
    assert alarm_facts()["code"] == "standing_unrecorded"
