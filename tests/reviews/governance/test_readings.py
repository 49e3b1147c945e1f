"""The business state read again: what is kept, what a decision compares with."""

from __future__ import annotations

import pytest

from journal import errors
from reviews.choices import ExecutionStatus
from reviews.executions import run as executions
from reviews.governance import readings
from reviews.models import ApprovalRequest, Decision, Execution, StateReading
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.worlds import WORLD, effects

pytestmark = pytest.mark.django_db


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent).request


def reread(request: ApprovalRequest) -> StateReading | None:
    return readings.reread_state(request.sealed.revision)


def moves(amount: str = "5.00", version: int = 2) -> None:
    WORLD["before"] = {"amount": amount}
    WORLD["preconditions"] = {"row_version": version}


def test_what_is_as_it_was_leaves_no_row(request_) -> None:
    assert reread(request_) is None
    assert not StateReading.objects.exists()


def test_what_moved_is_one_row_with_source_and_time(request_) -> None:
    moves()
    row = reread(request_)
    assert row is not None
    assert reread(request_) == row
    assert StateReading.objects.get() == row
    assert (row.cause, row.reading["source"]) == ("opened", "test world")
    assert row.reading["before"] == {"amount": "5.00"}


def stands(request: ApprovalRequest, number: int) -> None:
    revision = request.sealed.revision
    found = readings.load_readings([(revision, number)])
    readings.check_reading(revision, number, found)


def test_a_move_back_is_a_move(request_) -> None:
    moves()
    reread(request_)
    WORLD.clear()
    row = reread(request_)
    assert row is not None
    assert StateReading.objects.count() == 2
    stands(request_, readings.OWN_READING)


def test_a_reader_that_fails_moves_nothing(request_) -> None:
    WORLD["before"] = "not a mapping"
    assert reread(request_) is None
    assert not StateReading.objects.exists()


def test_a_decision_on_a_state_that_moved_is_refused(gate: Gate, request_) -> None:
    moves()
    reread(request_)
    with pytest.raises(
        errors.PreconditionFailed, match="changed since this page was loaded"
    ):
        decide(request_, gate.rita, reading=readings.OWN_READING)
    assert not Decision.objects.exists()


def test_a_refusal_needs_no_fresh_state(gate: Gate, request_) -> None:
    moves()
    reread(request_)
    decide(request_, gate.rita, "reject", reading=readings.OWN_READING)
    assert Decision.objects.get().verdict == "reject"


def test_a_decision_keeps_the_reading_it_was_made_on(gate: Gate, request_) -> None:
    moves()
    row = reread(request_)
    assert row is not None
    decide(request_, gate.rita, reading=row.pk)
    assert Decision.objects.get().reading == row


def test_no_page_can_name_another_requests_reading(gate: Gate, request_) -> None:
    other = propose(gate.agent, customer="C-2").request
    moves()
    row = reread(other)
    assert row is not None
    with pytest.raises(errors.PreconditionFailed):
        decide(request_, gate.rita, reading=row.pk)


def run(request: ApprovalRequest) -> Execution:
    execution = Execution.objects.get(proposal=request.proposal_id)
    executions.run_execution(execution.pk)
    execution.refresh_from_db()
    return execution


def test_it_runs_on_the_state_that_the_approver_saw(gate: Gate, request_) -> None:
    moves()
    row = reread(request_)
    assert row is not None
    decide(request_, gate.rita, reading=row.pk)
    assert run(request_).status == ExecutionStatus.SUCCEEDED
    claimed = StateReading.objects.get(cause="claimed")
    assert claimed.digest == row.digest
    assert readings.find_newest_reading(request_.sealed.revision) == row
    assert len(effects()) == 1


@pytest.mark.parametrize("seen", [True, False])
def test_it_does_not_run_on_another(gate: Gate, request_, seen: bool) -> None:
    if seen:
        moves()
    row = reread(request_)
    decide(request_, gate.rita, reading=row.pk if row else readings.OWN_READING)
    moves("9.00", version=9)
    execution = run(request_)
    assert (execution.status, execution.code) == ("refused", "precondition")
    assert not effects()


def test_what_the_agent_demanded_holds_whatever_was_shown(gate: Gate) -> None:
    request = propose(gate.agent, preconditions={"row_version": 1}).request
    moves()
    row = reread(request)
    assert row is not None
    decide(request, gate.rita, reading=row.pk)
    assert run(request).code == "precondition"
