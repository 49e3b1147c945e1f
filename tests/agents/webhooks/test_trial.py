"""A test event to an endpoint, against a real server that answers well or badly."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from standardwebhooks.webhooks import Webhook

from agents.models import Delivery, Endpoint
from agents.webhooks import endpoints, trial
from journal.models import LogRecord
from tests.agents.webhooks.deliveries import register
from tests.conftest import Gate
from tests.reviews.service import Service

pytestmark = pytest.mark.django_db


@pytest.fixture
def placed(gate: Gate, receiver: Service) -> tuple[Endpoint, str]:
    return register(gate.agent, receiver.url, gate.owen)


def test_a_test_event_is_signed_and_names_no_proposal(
    gate: Gate, receiver: Service, placed: tuple[Endpoint, str]
) -> None:
    endpoint, secret = placed
    receiver.body = b"thank you"
    result = trial.send_test_event(endpoint=endpoint, by=gate.owen)
    assert (result.status, result.well, result.start) == (200, True, "thank you")
    ((_, headers, body),) = receiver.requests
    event = Webhook(secret).verify(body, headers)
    assert (event["type"], event["data"]["proposal"]) == ("endpoint.test", "")
    assert event["data"]["endpoint"] == endpoint.pk


def test_a_test_event_is_logged_without_the_address(
    gate: Gate, receiver: Service, placed: tuple[Endpoint, str]
) -> None:
    receiver.status = 500
    trial.send_test_event(endpoint=placed[0], by=gate.owen)
    record = LogRecord.objects.get(kind="endpoint.tested")
    assert record.data == {"endpoint": placed[0].pk, "code": "500"}
    assert receiver.url not in json.dumps(record.data)


def test_a_bad_answer_changes_nothing_of_the_endpoint(
    gate: Gate, receiver: Service, placed: tuple[Endpoint, str]
) -> None:
    endpoint, _ = placed
    receiver.status = 410
    result = trial.send_test_event(endpoint=endpoint, by=gate.owen)
    assert (result.status, result.well) == (410, False)
    endpoint.refresh_from_db()
    assert (endpoint.off_at, endpoint.slow_since) == (None, None)
    assert not Delivery.objects.exists()


def test_only_the_beginning_of_an_answer_is_read(
    gate: Gate, receiver: Service, placed: tuple[Endpoint, str]
) -> None:
    receiver.body = b"\xff" + b"x" * 200_000
    result = trial.send_test_event(endpoint=placed[0], by=gate.owen)
    assert result.status == 200
    assert len(result.start) == trial.MAX_SHOWN
    assert result.start[:2] == "\N{REPLACEMENT CHARACTER}x"


def test_an_address_that_is_not_allowed_any_more_gets_nothing(
    gate: Gate,
    receiver: Service,
    placed: tuple[Endpoint, str],
    networks: Callable[..., None],
) -> None:
    networks()
    result = trial.send_test_event(endpoint=placed[0], by=gate.owen)
    assert (result.status, receiver.connections) == (None, 0)
    assert result.error.startswith("Nothing was sent: ")
    assert LogRecord.objects.get(kind="endpoint.tested").data["code"] == "no_answer"


def test_a_silent_endpoint_is_not_waited_for(
    gate: Gate,
    receiver: Service,
    placed: tuple[Endpoint, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trial, "LONGEST_SECONDS", 0.3)
    receiver.trick = "hang"
    result = trial.send_test_event(endpoint=placed[0], by=gate.owen)
    receiver.over.set()
    assert (result.status, result.milliseconds < 3000) == (None, True)
    assert result.error.startswith("The event was sent: ")


def test_a_former_secret_signs_it_too(
    gate: Gate, receiver: Service, placed: tuple[Endpoint, str]
) -> None:
    endpoint, former = placed
    endpoints.renew_secret(endpoint_id=endpoint.pk, by=gate.owen)
    endpoint.refresh_from_db()
    trial.send_test_event(endpoint=endpoint, by=gate.owen)
    ((_, headers, body),) = receiver.requests
    Webhook(former).verify(body, headers)
