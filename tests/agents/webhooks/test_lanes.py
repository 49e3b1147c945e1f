"""Who carries one letter carries those that wait for the same endpoint."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agents import tasks
from agents.models import Delivery
from agents.webhooks import delivery, lanes
from agents.webhooks.delivery import AttemptResult
from journal import dispatch
from journal.models import OutboxMessage
from tests import factories
from tests.agents.webhooks import deliveries
from tests.conftest import Gate
from tests.reviews.service import Service

pytestmark = pytest.mark.django_db


@pytest.fixture
def letters(gate: Gate, receiver: Service) -> list[str]:
    """Three that wait, in the order of their coming."""
    deliveries.register(gate.agent, receiver.url, gate.owen)
    for number in range(3):
        factories.propose(gate.agent, "pay", thread=f"t-{number}")
    return deliveries.promised()


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Letters that somebody was asked to carry."""
    found: list[str] = []
    monkeypatch.setattr(dispatch, "fill_queue", lambda _, ids: found.extend(ids))
    return found


@pytest.fixture
def in_haste(settings: Any) -> None:
    """There is no time beyond one try."""
    changed = {"http_timeout": 4, "soft_time_limit": 4}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)


def waiting() -> int:
    return Delivery.objects.filter(status="waiting").count()


def test_one_round_carries_all_that_wait(
    letters: list[str], called: list[str], receiver: Service
) -> None:
    tasks.post(letters[0])
    assert not waiting()
    assert len(receiver.requests) == 3
    assert not called


@pytest.mark.usefixtures("in_haste")
def test_when_its_time_is_over_it_calls_for_the_next(
    letters: list[str], called: list[str]
) -> None:
    """A nudge that was repeated ends with itself, however much waits."""
    first, second, third = letters
    tasks.post(first)
    assert called == [second]
    tasks.post(first)
    assert called == [second]
    tasks.post(second)
    assert called == [second, third]
    tasks.post(third)
    tasks.post("d-forged")
    assert called == [second, third]


def test_its_last_try_ends_before_the_task_must(settings: Any) -> None:
    house = settings.COUNTERSEAL
    assert delivery.compute_spare_seconds() > 0
    assert delivery.compute_spare_seconds() + house.http_timeout < house.soft_time_limit


def test_a_round_ends_where_letters_fail(letters: list[str], receiver: Service) -> None:
    """The others have theirs through the slow lane, one at a time."""
    receiver.status = 500
    assert delivery.deliver_lane(letters[0]) == [letters[1]]
    assert len(receiver.requests) == 1


def test_a_new_letter_goes_at_once_unless_one_is_on_its_way(
    letters: list[str], called: list[str]
) -> None:
    busy = delivery.claim_delivery(delivery_id=letters[0])
    assert busy is not None
    assert lanes.list_first_in_lanes(letters) == []
    tasks.post_due()
    assert not called
    delivery.record_attempt(
        delivery_id=busy.pk, attempt=1, answer=AttemptResult(200, seconds=0.1)
    )
    assert lanes.list_first_in_lanes(letters) == [letters[1]]


def test_who_tells_calls_for_what_is_first(
    letters: list[str], called: list[str], gate: Gate
) -> None:
    factories.propose(gate.agent, "pay", thread="t-new")
    told = OutboxMessage.objects.filter(task="agents.tasks.tell").latest("pk")
    OutboxMessage.objects.filter(pk=told.pk).update(done_at=None)
    tasks.tell(told.pk)
    assert waiting() == 4
    assert called == [letters[0]]


def test_a_letter_writes_its_time_as_the_api_does(letters: list[str]) -> None:
    payload = Delivery.objects.earliest("pk").payload
    assert re.fullmatch(r"[\d-]{10}T[\d:]{8}\.\d{3}Z", payload["timestamp"])
