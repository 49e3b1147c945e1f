"""A declared incident: deadlines stand still, to the second, and nothing else does."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core import mail

from hitl import tasks
from journal import clock, errors
from journal.models import LogRecord, OutboxMessage
from policies.models import Queue
from reviews import deadlines
from reviews.choices import RequestStatus
from reviews.decisions import recall
from reviews.holds import take
from reviews.models import ApprovalRequest, Grant, Incident
from reviews.stops import incidents
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def declare(gate: Gate, queue: str = "", name: str = "sue") -> Incident:
    of = Queue.objects.get(name=queue) if queue else None
    return incidents.declare_incident(
        person=gate.people[name], reason="disk on fire", queue=of
    )


def end(gate: Gate, incident: Incident) -> None:
    incidents.end_incident(incident_id=incident.pk, person=gate.sam)


def earlier(row: Any, by: timedelta, *names: str) -> Any:
    """As if it had been written so long ago: the clock is never moved."""
    row.refresh_from_db()
    moved = {one: getattr(row, one) - by for one in names if getattr(row, one)}
    type(row).objects.filter(pk=row.pk).update(**moved)
    row.refresh_from_db()
    return row


TIMES = ("opened_at", "expires_at", "expires_at_most", "frozen_through")


def an_hour_passes(*rows: Any) -> None:
    for row in rows:
        earlier(row, HOUR, *(("at",) if isinstance(row, Incident) else TIMES))


def left(request: ApprovalRequest, at: datetime | None = None) -> timedelta:
    request.refresh_from_db()
    return request.expires_at - (at or clock.now())


def near(one: timedelta, other: timedelta) -> bool:
    return abs(one - other) < SECOND


def test_each_request_has_exactly_what_it_had_left(gate: Gate) -> None:
    first, second = propose(gate.agent).request, propose(gate.agent, "write").request
    earlier(first, timedelta(minutes=7), "opened_at", "expires_at")
    had = [left(first), left(second)]
    incident = declare(gate)
    incidents.advance_frozen_deadlines()
    an_hour_passes(first, second, incident)
    end(gate, incident)
    assert near(left(first), had[0])
    assert near(left(second), had[1])
    assert first.frozen_through is None
    assert near(first.frozen_for, HOUR)


def test_nothing_was_accounted_for_and_yet_it_is_exact(gate: Gate) -> None:
    """No sweep ran from beginning to end: the worker was dead all the time."""
    request = propose(gate.agent).request
    had = left(request)
    incident = declare(gate)
    an_hour_passes(request, incident)
    assert left(request) < timedelta(0)
    assert deadlines.expire_chunk() == []
    end(gate, incident)
    assert near(left(request), had)


def test_what_is_opened_meanwhile_has_all_its_time(gate: Gate) -> None:
    incident = declare(gate)
    earlier(incident, HOUR, "at")
    request = propose(gate.agent).request
    had = left(request)
    incidents.advance_frozen_deadlines()
    assert near(incidents.compute_time_left(fresh(request), clock.now()), had)
    end(gate, incident)
    assert near(left(request), had)


def fresh(request: ApprovalRequest) -> ApprovalRequest:
    return ApprovalRequest.objects.get(pk=request.pk)


def test_stored_deadlines_are_kept_ahead(gate: Gate) -> None:
    request = propose(gate.agent).request
    had = left(request)
    declare(gate)
    assert incidents.advance_frozen_deadlines() == [request.pk]
    assert near(left(request), had + incidents.DEADLINE_LEAD)
    assert incidents.advance_frozen_deadlines() == []  # far enough
    earlier(request, timedelta(minutes=6), *TIMES)
    assert incidents.advance_frozen_deadlines() == [request.pk]
    assert near(left(request), had + incidents.DEADLINE_LEAD)
    assert near(incidents.compute_time_left(request, clock.now()), had)
    held = LogRecord.objects.filter(kind="incident.held")
    assert held.count() == 2


def test_nothing_expires_and_nobody_is_reminded_however_late_the_sweep_is(
    gate: Gate,
) -> None:
    request = propose(gate.agent).request
    incident = declare(gate)
    an_hour_passes(request, incident)
    assert deadlines.expire_chunk() == []
    assert deadlines.enqueue_reminders() == 0
    decide(request, gate.rita)  # and people go on deciding
    assert fresh(request).status == RequestStatus.AUTHORIZED


def test_a_hold_is_taken_and_more_time_given_though_the_sweep_is_dead(
    gate: Gate,
) -> None:
    first, second = propose(gate.agent).request, propose(gate.agent, "write").request
    incident = declare(gate)
    an_hour_passes(first, second, incident)
    assert take.take_hold(request_id=first.pk, person=gate.rita).own
    before = fresh(second)
    deadlines.extend_deadline(request_id=second.pk, person=gate.rita)
    assert fresh(second).expires_at > before.expires_at


def test_what_was_over_before_is_over(gate: Gate) -> None:
    request = propose(gate.agent).request
    incident = declare(gate)
    end(gate, incident)
    factories.overdue(request)
    assert deadlines.expire_chunk() == [request.proposal_id]


def test_only_its_own_queue_stands_still(gate: Gate) -> None:
    money, letter = propose(gate.agent).request, propose(gate.agent, "write").request
    declare(gate, "money")
    assert incidents.advance_frozen_deadlines() == [money.pk]
    factories.overdue(letter)
    factories.overdue(money)
    assert deadlines.expire_chunk() == [letter.proposal_id]


def test_of_two_that_overlap_the_last_one_to_end_counts(gate: Gate) -> None:
    request, letter = propose(gate.agent).request, propose(gate.agent, "write").request
    had = [left(request), left(letter)]
    every, money = declare(gate), declare(gate, "money")
    incidents.advance_frozen_deadlines()
    end(gate, every)
    assert near(left(letter), had[1])
    assert fresh(letter).frozen_through is None
    assert fresh(request).frozen_through is not None
    incidents.advance_frozen_deadlines()
    an_hour_passes(request, money)
    end(gate, money)
    assert near(left(request), had[0])


def test_the_rules_own_time_counts_from_where_the_clock_stands(gate: Gate) -> None:
    """A revision, a return and a recall give time anew: all of it is left then."""
    proposal = propose(gate.agent)
    incident = declare(gate)
    incidents.advance_frozen_deadlines()
    factories.revise(gate.agent, proposal)
    request = fresh(proposal.request)
    whole = timedelta(seconds=request.sealed.revision.evaluation["timeout"])
    assert near(incidents.compute_time_left(request, clock.now()), whole)
    end(gate, incident)
    assert near(left(request), whole)


def test_what_is_recalled_under_it_stands_still_again(gate: Gate) -> None:
    request = states.recallable(gate)
    had = left(request)
    incident = declare(gate)
    recall.recall_approval(request_id=request.pk, person=gate.rita)
    end(gate, incident)
    assert near(left(request), had)


def test_a_request_that_left_the_scope_runs_again(gate: Gate) -> None:
    request = propose(gate.agent).request
    had = left(request)
    declare(gate, "money")
    incidents.advance_frozen_deadlines()
    mail_queue = Queue.objects.get(name="mail")
    worlds.rewrite(ApprovalRequest, request.pk, queue=mail_queue)
    incidents.advance_frozen_deadlines()
    assert near(left(request), had)
    assert fresh(request).frozen_through is None


def test_authority_does_not_live_longer(gate: Gate) -> None:
    execution = states.queued(gate)
    before = Grant.objects.get(pk=execution.grant_id).expires_at
    incident = declare(gate)
    incidents.advance_frozen_deadlines()
    end(gate, incident)
    assert Grant.objects.get(pk=execution.grant_id).expires_at == before


@pytest.mark.parametrize(
    ("name", "may"),
    [("sue", True), ("adam", True), ("rita", False), ("otto", False), ("owen", False)],
)
def test_who_may_declare(gate: Gate, name: str, may: bool) -> None:
    if may:
        incident = declare(gate, name=name)
        incidents.end_incident(incident_id=incident.pk, person=gate.people[name])
        return
    with pytest.raises(errors.NotPermitted):
        declare(gate, name=name)
    incident = declare(gate)
    with pytest.raises(errors.NotPermitted):
        incidents.end_incident(incident_id=incident.pk, person=gate.people[name])


def test_one_at_a_time_for_each_scope_and_a_reason(gate: Gate) -> None:
    incident = declare(gate)
    with pytest.raises(errors.Conflict):
        declare(gate)
    declare(gate, "money")
    with pytest.raises(errors.Conflict):
        declare(gate, "money")
    end(gate, incident)
    with pytest.raises(errors.Conflict):
        end(gate, incident)
    with pytest.raises(errors.NotFound):
        incidents.end_incident(incident_id=987654321, person=gate.sue)
    with pytest.raises(errors.ReasonMissing):
        incidents.declare_incident(person=gate.sue, reason=" ")


def test_it_is_recorded_and_its_supervisors_hear_of_it(gate: Gate) -> None:
    incident = declare(gate, "money")
    end(gate, incident)
    kinds = LogRecord.objects.filter(kind__startswith="incident.")
    assert list(kinds.order_by("pk").values_list("kind", flat=True)) == [
        "incident.declared",
        "incident.ended",
    ]
    for message in OutboxMessage.objects.filter(topic="incident.told"):
        tasks.notify_people(message.pk)
        tasks.notify_people(message.pk)  # the broker repeats itself
    assert sorted(
        (one.to[0], one.subject.partition(":")[0]) for one in mail.outbox
    ) == [
        ("sam@example.com", "Deadlines are paused"),
        ("sam@example.com", "Deadlines resumed"),
        ("sue@example.com", "Deadlines are paused"),
        ("sue@example.com", "Deadlines resumed"),
    ]
    assert "disk on fire" not in "".join(str(one.body) for one in mail.outbox)


def test_the_nudge_freezes_at_once(gate: Gate) -> None:
    request = propose(gate.agent).request
    declare(gate)
    tasks.freeze_deadlines(OutboxMessage.objects.get(topic="incident.declared").pk)
    assert fresh(request).frozen_through is not None
    tasks.hold_deadlines()


def test_without_an_incident_the_sweep_looks_and_no_more(
    gate: Gate, django_assert_num_queries: Any
) -> None:
    propose(gate.agent)
    with django_assert_num_queries(4):  # two, between a savepoint's own
        assert incidents.advance_frozen_deadlines() == []
