"""A worker that breaks at any point of a letter's way: the letter arrives all the same,
under one id, and is promised once."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from agents import acknowledgements, representation
from agents.models import Acknowledgement, Delivery, DeliveryAttempt
from journal import clock, failpoints
from journal.failpoints import InjectedFault
from tests.agents.webhooks import deliveries
from tests.conftest import Gate
from tests.reviews.service import Service

pytestmark = pytest.mark.django_db
# How often the endpoint hears of it: what was sent before the break is sent again.
HEARD = {
    "deliveries_uncommitted": 1,
    "delivery_taken": 1,
    "delivery_answered": 2,
    "delivery_uncommitted": 2,
}


def break_at(point: str, folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """The next one who passes is thrown out."""
    patch.setattr(failpoints, "ARMED", str(folder))
    flag = folder / point
    flag.write_text(failpoints.FaultAction.RAISE)
    return flag


@pytest.mark.parametrize("point", HEARD)
def test_a_letter_arrives_whoever_breaks(
    gate: Gate,
    receiver: Service,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
) -> None:
    deliveries.register(gate.agent, receiver.url, gate.owen)
    proposal = deliveries.rejected(gate)
    event = representation.compute_settled_id(proposal.pk)
    flag = break_at(point, tmp_path, monkeypatch)
    with suppress(InjectedFault):
        deliveries.carry()
    assert not flag.exists()
    past = clock.now() - timedelta(seconds=1)
    Delivery.objects.filter(busy_until__isnull=False).update(busy_until=past)
    deliveries.carry()
    assert set(Delivery.objects.values_list("status", flat=True)) == {"delivered"}
    assert Delivery.objects.count() == 2  # that it was opened, and settled
    ids = [headers["webhook-id"] for _, headers, _ in receiver.requests]
    broken = max(ids, key=ids.count)
    assert ids.count(broken) == HEARD[point]
    assert len(set(ids)) == 2
    assert event in ids
    assert DeliveryAttempt.objects.count() == 2
    assert Acknowledgement.objects.get().pk == event


def test_an_acknowledgement_is_whole_or_not_there(
    gate: Gate, receiver: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.status = 500
    deliveries.register(gate.agent, receiver.url, gate.owen)
    proposal = deliveries.rejected(gate)
    deliveries.carry()
    event = representation.compute_settled_id(proposal.pk)
    break_at("acknowledged_uncommitted", tmp_path, monkeypatch)
    for status, count in (("waiting", 0), ("taken", 1)):
        with suppress(InjectedFault):
            acknowledgements.acknowledge_outcome(
                agent=gate.agent, proposal_id=proposal.pk, outcome=event
            )
        assert Delivery.objects.get(event=event).status == status
        assert Acknowledgement.objects.count() == count
