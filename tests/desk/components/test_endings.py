"""A row that shows what happened names what ended it later."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from agents import keys, reversals
from agents.models import AgentKey
from desk.as_seen.page import AsSeenPage
from desk.components import endings, log_lines
from journal import clock
from journal.models import LogRecord
from notifications.on_call import shifts
from policies import people
from policies.choices import Role
from policies.models import Queue
from policies.people import PersonChange
from reviews import deadlines
from reviews.choices import ExecutionStatus, Scope, StopMode
from reviews.decisions import recall, returns, revoke
from reviews.executions import run
from reviews.holds import rows as hold_rows
from reviews.holds import take
from reviews.models import ApprovalRequest, Decision, PersonalToken
from reviews.people import tokens
from reviews.standing_grants import issuance
from reviews.stops import incidents, stops
from tests import factories
from tests.conftest import Gate
from tests.desk.components.test_visibility import fresh
from tests.desk.conftest import SignIn
from tests.desk.log.test_exports import written
from tests.factories import decide, propose, revise
from tests.markup import read_text
from tests.reviews import states
from tests.reviews.standing_grants import allowing

LARGE = "899.00"  # needs two supervisors


def recalled(gate: Gate) -> ApprovalRequest:
    request = states.recallable(gate)
    return recall.recall_approval(request_id=request.pk, person=gate.rita)


def voted(gate: Gate) -> ApprovalRequest:
    """Approved by the first of two supervisors."""
    request = propose(gate.agent, amount=LARGE).request
    decide(request, gate.sue)
    return request


def revised(gate: Gate) -> None:
    revise(gate.agent, voted(gate).proposal)


def revoked(gate: Gate) -> None:
    revoke.revoke_approval(
        proposal_id=voted(gate).proposal_id, reviewer=gate.sue.public_id
    )


def overruled(gate: Gate) -> None:
    decide(voted(gate), gate.sam, "reject")


def expired(gate: Gate) -> None:
    factories.overdue(voted(gate))
    deadlines.expire_chunk()


def withdrawn(gate: Gate) -> None:
    states.withdraw(gate.agent, voted(gate).proposal)


def permit_revoked(gate: Gate) -> None:
    execution = states.queued(gate)
    revoke.revoke_approval(
        proposal_id=execution.proposal_id, reviewer=gate.rita.public_id
    )


def returned(gate: Gate) -> None:
    request = states.pending(gate)
    decide(request, gate.rita, "escalate")
    returns.return_with_guidance(
        request_id=request.pk, person=gate.sue, guidance="Try it."
    )


def lifted(gate: Gate) -> None:
    row = stops.create_stop(
        scope=Scope.AGENT,
        key="riley",
        mode=StopMode.PAUSED,
        person=gate.sue,
        reason="odd",
    )
    stops.lift_stop(stop_id=row.pk, person=gate.sue, reason="fine")


def incident_over(gate: Gate) -> None:
    row = incidents.declare_incident(queue=None, person=gate.sue, reason="outage")
    incidents.end_incident(incident_id=row.pk, person=gate.sue)


def released(gate: Gate) -> None:
    request = states.pending(gate)
    take.take_hold(request_id=request.pk, person=gate.rita)
    hold_rows.release_hold(request_id=request.pk, person=gate.rita)


def reversed_(gate: Gate) -> None:
    paid = states.succeeded(gate)
    undoing = reversals.propose_reversal(
        execution_id=paid.pk, person=gate.tom, reason="paid by mistake"
    )
    decide(undoing.request, gate.rita)
    execution = undoing.executions.get()
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED


def allowed_and_revoked(gate: Gate) -> None:
    allowing.allow_tags(gate, minutes=5, uses=3)
    row = allowing.issue(gate, allowing.tag(gate).request)
    issuance.revoke_standing_grant(grant_id=row.pk, person=gate.sue)


def key_revoked(gate: Gate) -> None:
    keys.issue_key(agent=gate.agent, by=gate.adam)
    keys.revoke_key(key=AgentKey.objects.latest("pk"), by=gate.adam)


def token_revoked(gate: Gate) -> None:
    tokens.create_token(person=gate.rita, name="script")
    token = PersonalToken.objects.get()
    tokens.revoke_token(person=gate.rita, token_id=token.pk)


def password_set(gate: Gate) -> None:
    tokens.create_token(person=gate.rita, name="script")
    people.set_password(gate.rita, factories.PASSWORD * 2, by=gate.adam)


def shift_ended(gate: Gate) -> None:
    now = clock.now()
    row = shifts.plan_shift(
        by=gate.sue,
        queue=Queue.objects.get(name="money"),
        person=gate.rita,
        begins_at=now,
        ends_at=now + timedelta(hours=8),
    )
    shifts.end_shift(shift_id=row.pk, by=gate.sue)


def role_changed(gate: Gate) -> None:
    for role in (Role.SUPERVISOR, Role.REVIEWER):
        people.change_person(gate.tom, PersonChange(role=role), by=gate.adam)


def say(gate: Gate, kind: str) -> list[str]:
    """What the log says about the end of each record of this kind, oldest first."""
    records = LogRecord.objects.filter(kind=kind).order_by("pk")
    return [line.ended for line in log_lines.build_log_lines(fresh(gate.otto), records)]


@pytest.mark.parametrize(
    ("happen", "kind", "word"),
    [
        (recalled, "decision.recorded", "undone"),
        (recalled, "request.recallable", "undone"),
        (revised, "decision.recorded", "replaced by a revision"),
        (revoked, "decision.recorded", "revoked"),
        (expired, "decision.recorded", "request expired"),
        (withdrawn, "decision.recorded", "request withdrawn"),
        (permit_revoked, "decision.recorded", "permit revoked"),
        (permit_revoked, "grant.issued", "revoked"),
        (returned, "decision.recorded", "returned"),
        (returned, "request.escalated", "returned"),
        (lifted, "stop.raised", "resumed"),
        (incident_over, "incident.declared", "ended"),
        (released, "hold.taken", "released"),
        (states.closed_alarm, "alarm.raised", "resolved"),
        (allowed_and_revoked, "standing_grant.issued", "revoked"),
        (key_revoked, "agent.key_issued", "revoked"),
        (token_revoked, "person.token_minted", "revoked"),
        (password_set, "person.token_minted", "revoked"),
        (shift_ended, "on_call.planned", "ended"),
        (role_changed, "person.changed", "role changed"),
        (reversed_, "decision.recorded", "reversed"),
        (reversed_, "execution.succeeded", "reversed"),
    ],
)
def test_the_log_names_what_ended_it(
    gate: Gate, happen: Callable[[Gate], object], kind: str, word: str
) -> None:
    happen(gate)
    assert say(gate, kind)[0].startswith(f"{word} after ")


@pytest.mark.parametrize(
    ("happen", "kind"),
    [
        (states.recallable, "decision.recorded"),
        (states.authorized, "decision.recorded"),
        (states.rejected, "decision.recorded"),
        (states.open_alarm, "alarm.raised"),
        (states.held, "hold.taken"),
        (states.spent, "grant.issued"),
        (voted, "decision.recorded"),
    ],
)
def test_what_still_stands_has_no_ending(
    gate: Gate, happen: Callable[[Gate], object], kind: str
) -> None:
    happen(gate)
    assert set(say(gate, kind)) == {""}


def test_a_vote_that_others_overruled_says_so_and_their_rejection_stands(
    gate: Gate,
) -> None:
    overruled(gate)
    first, second = say(gate, "decision.recorded")
    assert first.startswith("overruled by a rejection after ")
    assert second == ""


def test_the_decision_that_follows_an_undone_one_stands(gate: Gate) -> None:
    request = recalled(gate)
    request.refresh_from_db()
    decide(request, gate.rita)
    first, second = say(gate, "decision.recorded")
    assert first.startswith("undone after ")
    assert second == ""


def test_lists_histories_evidence_and_files_name_it(gate: Gate, as_: SignIn) -> None:
    request = recalled(gate)
    decision = Decision.objects.get()
    (ending,) = endings.list_decision_endings([decision]).values()
    said = ending.describe(decision.at)
    assert ending.describe(ending.at - timedelta(seconds=4)) == "undone after 4 s"
    listed = read_text(as_("otto").get("/log/?kind=decision"), "log")
    assert said in listed
    history = log_lines.build_history(fresh(gate.rita), request)
    assert said in [line.ended for line in history]
    assert said in read_text(as_("rita").get(f"/requests/{request.pk}/"), "history")
    shown = AsSeenPage(fresh(gate.rita), decision)
    assert shown.ended == said.capitalize()
    rows = list(csv.DictReader(io.StringIO(written(gate, query="kind=decision"))))
    assert [(row["ending"], row["ended_at"]) for row in rows] == [
        ("undone", ending.at.isoformat())
    ]
    (line,) = written(gate, "jsonl", "kind=decision").splitlines()
    assert json.loads(line)["ending"] == "undone"


def test_the_own_list_says_that_the_approval_was_undone(
    gate: Gate, as_: SignIn
) -> None:
    request = recalled(gate)
    factories.overdue(request)
    deadlines.expire_chunk()
    text = read_text(as_("rita").get("/queue/?tab=done"), "queue-table")
    assert "You approved, undone after " in text
