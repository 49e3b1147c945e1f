"""An agent's word that it has an outcome against the letter that tells it so: whoever
comes second sees what the first wrote, and nothing is sent after the word."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from agents import acknowledgements, representation, transitions
from agents.models import Acknowledgement, Delivery
from agents.webhooks import enqueue
from journal.models import OutboxMessage
from journal.state_machine import PROPOSAL_TOLD
from reviews.models import Proposal
from tests.agents.webhooks import deliveries
from tests.conftest import Gate
from tests.races.together import Call, at_once, while_held

pytestmark = [pytest.mark.django_db(transaction=True)]
URL = "http://127.0.0.1:8099/"  # never asked: nothing is carried


@pytest.fixture
def both(gate: Gate, networks: Callable[..., None]) -> tuple[str, Call, Call]:
    """The outcome of a proposal that was rejected, the letter's promise and the
    agent's word."""
    networks("127.0.0.1/32")
    deliveries.register(gate.agent, URL, gate.owen)
    proposal = deliveries.rejected(gate)
    told = OutboxMessage.objects.filter(
        topic=PROPOSAL_TOLD, subject=proposal.pk
    ).latest("pk")
    outcome = representation.compute_settled_id(proposal.pk)
    return (
        outcome,
        partial(enqueue.enqueue_deliveries, message=told),
        word(gate, proposal),
    )


def word(gate: Gate, proposal: Proposal) -> Call:
    return partial(
        acknowledgements.acknowledge_outcome,
        agent=gate.agent,
        proposal_id=proposal.pk,
        outcome=representation.compute_settled_id(proposal.pk),
    )


def statuses(outcome: str) -> list[str]:
    assert Acknowledgement.objects.filter(pk=outcome).exists()
    return list(Delivery.objects.filter(event=outcome).values_list("status", flat=True))


def test_the_word_waits_for_a_letter_that_is_being_written(
    both: tuple[str, Call, Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, promise, said = both
    rival = while_held(monkeypatch, transitions.delivery, "create_many", said)
    assert len(promise()) == 1
    assert rival.result.won
    assert statuses(outcome) == ["taken"]


def test_no_letter_is_written_beside_the_word(
    both: tuple[str, Call, Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, promise, said = both
    rival = while_held(monkeypatch, acknowledgements, "record_acknowledgement", promise)
    said()
    assert rival.result.value == []
    assert statuses(outcome) == []


def test_at_once_nothing_is_left_to_send(
    gate: Gate, networks: Callable[..., None]
) -> None:
    networks("127.0.0.1/32")
    deliveries.register(gate.agent, URL, gate.owen)
    for number in range(30):
        proposal = deliveries.rejected(gate, thread=f"t-{number}")
        told = OutboxMessage.objects.filter(topic=PROPOSAL_TOLD, subject=proposal.pk)
        promise = partial(enqueue.enqueue_deliveries, message=told.latest("pk"))
        results = at_once(promise, word(gate, proposal))
        assert all(result.won for result in results)
        assert "waiting" not in statuses(representation.compute_settled_id(proposal.pk))
