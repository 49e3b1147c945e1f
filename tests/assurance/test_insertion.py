"""Who gets a canary when, and that nobody but its reviewer notices one."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from assurance import insertion
from desk.components import visibility
from journal import clock
from journal.errors import NotFound
from journal.models import LogRecord, OutboxMessage
from policies.models import Observation, Person
from reviews import canary_verdicts
from reviews.governance import readings
from reviews.holds import rows, take
from reviews.models import (
    ApprovalRequest,
    Canary,
    Decision,
    Execution,
    Hold,
    Proposal,
)
from tests import factories, worlds
from tests.assurance.planting import approve_source, plant, plant_clone
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.hitl.tasks.draining import drain

pytestmark = pytest.mark.django_db


@pytest.fixture
def canaries_on(gate: Gate) -> Gate:
    """The tests' policy with canaries."""
    document = factories.document_of_tests()
    factories.policy(gate.people, {**document, "assurance": {"canaries": True}})
    return gate


def decide_some(gate: Gate, count: int) -> None:
    """So many decisions of Rita, as copies of one."""
    request = propose(gate.agent, "decline", thread=factories.new_thread()).request
    decide(request, gate.rita, "reject")
    one = Decision.objects.get(request=request)
    Decision.objects.bulk_create(
        Decision(
            request=one.request,
            version=one.version + 1 + n,
            reviewer=gate.rita,
            verdict="reject",
            counts=False,
            action_hash=one.action_hash,
            authority=one.authority,
            at=clock.now(),
        )
        for n in range(count - 1)
    )


def choose_first_gap(person: Person, settings: Any) -> int:
    """Under a key of the installation that lets the first canary come soon."""
    for number in range(200):
        settings.SECRET_KEY = f"key {number}"
        gap = insertion.compute_first_gap(person)
        if 3 <= gap <= 60:
            return gap
    raise AssertionError(person)


def test_a_reviewer_gets_one_canary_when_it_is_due(
    canaries_on: Gate, settings: Any
) -> None:
    gate = canaries_on
    approve_source(gate)
    gap = choose_first_gap(gate.rita, settings)
    decide_some(gate, gap - 1)
    assert insertion.insert_due_canaries(random.Random(1)) == 0
    decide_some(gate, 2)
    assert insertion.insert_due_canaries(random.Random(1)) == 1
    assert insertion.insert_due_canaries(random.Random(1)) == 0  # one is open
    canary = Canary.objects.get()
    assert canary.reviewer == gate.rita
    assert canary.next_after >= 1


def test_only_the_installations_key_says_when_the_first_one_comes(
    gate: Gate, settings: Any
) -> None:
    gaps = set()
    for number in range(20):
        settings.SECRET_KEY = f"another key {number}"
        gaps.add(insertion.compute_first_gap(gate.rita))
    assert len(gaps) > 5


def test_no_canary_comes_before_an_urgent_request(
    canaries_on: Gate, settings: Any
) -> None:
    gate = canaries_on
    approve_source(gate)
    decide_some(gate, choose_first_gap(gate.rita, settings) + 1)
    urgent = propose(gate.agent, thread=factories.new_thread()).request
    near = clock.now() + timedelta(minutes=9)
    ApprovalRequest.objects.filter(pk=urgent.pk).update(expires_at=near)
    assert insertion.insert_due_canaries(random.Random(1)) == 0
    later = clock.now() + timedelta(minutes=11)
    ApprovalRequest.objects.filter(pk=urgent.pk).update(expires_at=later)
    assert insertion.insert_due_canaries(random.Random(1)) == 1


def test_a_policy_without_canaries_plants_none(gate: Gate) -> None:
    approve_source(gate)
    decide_some(gate, 60)
    assert insertion.insert_due_canaries(random.Random(1)) == 0


def test_only_its_reviewer_sees_a_canary(gate: Gate) -> None:
    request = plant(gate)
    mine = visibility.select_decidable(gate.rita)
    assert mine.filter(pk=request.pk).exists()
    assert visibility.select_visible_requests(gate.rita).filter(pk=request.pk).exists()
    assert visibility.is_visible_request(gate.rita, request)
    for other in (gate.tom, gate.sue, gate.owen, gate.otto, gate.adam):
        seen = visibility.select_visible_requests(other).filter(pk=request.pk)
        assert not seen.exists(), other
        assert not visibility.is_visible_request(other, request), other
        assert not visibility.select_decidable(other).filter(pk=request.pk).exists()
    assert not ApprovalRequest.objects.filter(pk=request.pk).exists()
    assert not Proposal.objects.filter(pk=request.proposal_id).exists()


def test_a_canary_counts_in_no_sum(gate: Gate) -> None:
    approve_source(gate)
    before = (Observation.objects.count(), Execution.objects.count())
    record = LogRecord.objects.order_by("pk").last()
    person = type(gate.rita).objects.get(pk=gate.rita.pk)
    clone = insertion.prepare_clone(person, clock.now(), random.Random(1))
    assert clone is not None
    insertion.plant_canary(person=person, clone=clone, next_after=45)
    assert before == (Observation.objects.count(), Execution.objects.count())
    assert record is not None
    added = LogRecord.objects.filter(pk__gt=record.pk)
    assert list(added.values_list("kind", flat=True)) == ["canary.planted"]


def test_a_canary_differs_from_its_source_by_its_defect_alone(gate: Gate) -> None:
    request = plant(gate)
    canary = Canary.objects.get(proposal=request.proposal_id)
    source, clone = canary.source.current, request.sealed.revision
    changed = {
        name
        for name in {*source.args, *clone.args}
        if source.args.get(name) != clone.args.get(name)
    }
    assert changed == ({canary.field} if canary.field else set())
    assert bool(canary.field) == (source.rationale == clone.rationale)
    assert source.tool == clone.tool
    assert (source.proposal.agent, source.proposal.thread) == (
        request.proposal.agent,
        request.proposal.thread,
    )


def test_a_canary_shows_the_state_of_now(gate: Gate) -> None:
    """Also when its page reads the record again."""
    approve_source(gate)
    worlds.WORLD["before"] = {"paid": "2.00"}
    request = plant_clone(gate.rita)
    revision = request.sealed.revision
    assert revision.reading["before"] == {"paid": "2.00"}
    worlds.WORLD["before"] = {"paid": "3.00"}
    again = readings.reread_state(revision)
    assert again is not None
    assert again.reading["before"] == {"paid": "3.00"}


def test_a_reader_that_fails_plants_nothing(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    approve_source(gate)
    monkeypatch.setattr(worlds, "read", None)
    assert insertion.prepare_clone(gate.rita, clock.now(), random.Random(1)) is None


def test_a_canary_that_is_handed_on_ends_and_is_nobody_elses(gate: Gate) -> None:
    request = plant(gate)
    form = {"to": gate.tom.public_id}
    client = Client()
    client.force_login(gate.rita)
    page = client.get(f"/requests/{request.pk}/hold/give/").content.decode()
    assert gate.tom.public_id in page
    client.post(f"/requests/{request.pk}/hold/give/", form)
    canary = Canary.objects.get(proposal=request.proposal_id)
    assert (canary.ending, canary.caught) == ("asked", None)
    assert not visibility.select_visible_requests(gate.tom).filter(pk=request.pk)
    told = OutboxMessage.objects.filter(subject=request.pk)
    assert list(told.values_list("topic", flat=True)) == ["request.opened"]


def test_no_other_person_can_end_a_canary(gate: Gate) -> None:
    request = plant(gate)
    with pytest.raises(NotFound):
        canary_verdicts.pass_on_canary(request_id=request.pk, person=gate.tom)
    real = propose(gate.agent, thread=factories.new_thread()).request
    assert not canary_verdicts.pass_on_canary(request_id=real.pk, person=gate.rita)


def test_an_offer_of_a_canary_reaches_nobody_else(gate: Gate) -> None:
    request = plant(gate)
    take.offer_hold(request_id=request.pk, person=gate.rita, to=gate.tom)
    Hold.objects.update(until=clock.now() - timedelta(seconds=1))
    assert rows.free_lapsed_holds() == 1
    told = OutboxMessage.objects.filter(subject=request.pk, facts__has_key="person")
    assert [(one.topic, one.facts["person"]) for one in told] == [
        ("request.declined", gate.rita.public_id)
    ]
    drain("request.declined")
    assert [one.to for one in mail.outbox] == [[gate.rita.email]]
    client = Client()
    client.force_login(gate.tom)
    assert request.pk not in client.get("/queue/?tab=mine").content.decode()
    assert client.get(f"/requests/{request.pk}/").status_code == 404
