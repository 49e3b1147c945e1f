"""The deadline against a verdict: silence is a no, and it is said once [I5, I6]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

import pytest

from journal import clock, errors
from journal.models import LogRecord
from policies import facts
from reviews import deadlines, locks
from reviews.choices import RequestStatus
from reviews.decisions import checks, verdicts
from reviews.decisions import decide as decisions
from reviews.decisions import tally as tallies
from reviews.decisions.votes import StepVote
from reviews.models import ApprovalRequest, Decision, Grant
from reviews.stops import incidents
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose, said
from tests.races.together import PATIENCE_S, at_once, before
from tests.stack import wait_until

pytestmark = [pytest.mark.django_db(transaction=True)]


def status_of(request: ApprovalRequest) -> str:
    return str(ApprovalRequest.objects.get(pk=request.pk).status)


def due_in_a_moment(request: ApprovalRequest, fraction: float) -> None:
    """The deadline falls among the calls that are about to begin."""
    soon = clock.now() + timedelta(seconds=fraction)
    ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=soon)


def test_at_the_deadline_a_request_is_decided_or_expires_never_both(
    gate: Gate,
) -> None:
    for number in range(20):
        request = propose(gate.agent, customer=f"C-{number}").request
        approve = partial(decisions.decide_request, said(request, gate.rita))
        due_in_a_moment(request, 0.004 * (number % 6))
        verdict, _ = at_once(approve, deadlines.expire_chunk)
        wait_until(partial(settled, request), 5)
        yes = verdict.won
        assert yes or isinstance(
            verdict.refusal, errors.RequestExpired | errors.Conflict
        )
        expected = RequestStatus.AUTHORIZED if yes else RequestStatus.EXPIRED
        assert status_of(request) == expected
        assert Grant.objects.filter(proposal=request.proposal_id).count() == int(yes)


def settled(request: ApprovalRequest) -> bool:
    deadlines.expire_chunk()
    return status_of(request) != RequestStatus.PENDING


def test_an_expiry_right_before_the_lock_wins(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = propose(gate.agent).request
    seen = said(request, gate.rita)

    def expire() -> None:
        factories.overdue(request)
        deadlines.expire_chunk()

    before(monkeypatch, locks, "lock_request_or_canary", expire)
    with pytest.raises(errors.RequestExpired):
        decisions.decide_request(seen)
    assert status_of(request) == RequestStatus.EXPIRED
    assert not Decision.objects.exists()
    assert LogRecord.objects.filter(kind="decision.refused").count() == 1


def test_the_sweep_passes_over_what_is_being_decided(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for no lock that somebody holds, and a verdict in time stands, even when
    the deadline passes before its commit."""
    request = propose(gate.agent).request
    seen = said(request, gate.rita)
    due_in_a_moment(request, 1.5)

    def sweep_when_due() -> list[str]:
        wait_until(overdue.exists, 5)
        return deadlines.expire_chunk()

    overdue = ApprovalRequest.objects.filter(expires_at__lt=clock.ClockTimestamp())
    rival = before(monkeypatch, checks, "check_deferred_refusal", sweep_when_due)
    decisions.decide_request(seen)
    assert rival.result.value == []
    assert status_of(request) == RequestStatus.AUTHORIZED


def test_a_deadline_that_passes_during_the_decision_refuses_it(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T8: the guard asks the database's clock at the write itself, not `now()` of a
    transaction that began in time."""
    request = propose(gate.agent).request
    monkeypatch.setattr(
        verdicts, "tally_votes", after_the_deadline(tallies.tally_votes)
    )
    with pytest.raises(errors.Conflict):
        decide(request, gate.rita)
    assert status_of(request) == RequestStatus.PENDING
    assert not Decision.objects.exists()


def after_the_deadline(tally: Callable[..., None]) -> Callable[..., None]:
    def late(votes: Sequence[StepVote]) -> None:
        for vote in votes:
            factories.overdue(vote.case.request)
        tally(votes)

    return late


def test_two_sweeps_expire_each_request_once(gate: Gate) -> None:
    for number in range(12):
        factories.overdue(propose(gate.agent, customer=f"C-{number}").request)
    found = at_once(*[deadlines.expire_chunk] * 4)
    moved = [proposal for result in found for proposal in result.value]
    assert len(moved) == len(set(moved)) == 12
    assert LogRecord.objects.filter(kind="request.expired").count() == 12


def test_a_sweep_waits_for_nobody(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second sweep in the middle of the first finds nothing left to do."""
    factories.overdue(propose(gate.agent).request)
    rival = before(monkeypatch, facts, "release_many", deadlines.expire_chunk)
    assert len(deadlines.expire_chunk()) == 1
    assert rival.result.value == []


def test_a_revision_against_the_deadline(gate: Gate) -> None:
    """The agent's revision comes in time, or is told that it expired."""
    for number in range(10):
        proposal = propose(gate.agent, customer=f"C-{number}")
        factories.overdue(proposal.request)
        revise = partial(factories.revise, gate.agent, proposal)
        revised, _ = at_once(revise, deadlines.expire_chunk)
        assert isinstance(revised.refusal, errors.RequestExpired)
        wait_until(partial(settled, proposal.request), 5)
        assert status_of(proposal.request) == RequestStatus.EXPIRED


def test_a_declared_incident_against_the_sweep(gate: Gate) -> None:
    """What was over when it was declared expires, all else keeps its time; nothing is
    half of each."""
    for number in range(4):
        due = clock.now() + timedelta(milliseconds=20)
        rows = [propose(gate.agent, customer=f"{number}-{n}").request for n in range(4)]
        pks = [row.pk for row in rows]
        ApprovalRequest.objects.filter(pk__in=pks).update(expires_at=due)
        declare = partial(incidents.declare_incident, person=gate.sue, reason="fire")
        swept, declared = at_once(sweep_when_due_at(due), declare)
        incident = declared.value
        expired = ApprovalRequest.objects.filter(pk__in=pks, status="expired")
        assert swept.won
        if incident.at < due:
            assert not expired.exists()
        else:
            assert expired.count() in {0, 4}
        incidents.advance_frozen_deadlines()
        assert deadlines.expire_chunk() == []
        incidents.end_incident(incident_id=incident.pk, person=gate.sam)


def sweep_when_due_at(due: datetime) -> Callable[[], list[str]]:
    def sweep() -> list[str]:
        wait_until(lambda: clock.now() >= due, PATIENCE_S)
        return deadlines.expire_chunk()

    return sweep
