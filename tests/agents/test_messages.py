"""`POST /proposals/{id}/messages`: the agent answers and asks."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Delivery
from agents.webhooks import payloads
from reviews.choices import MessageKind
from reviews.dialogue import messages
from reviews.models import ApprovalRequest, Message
from tests.agents.conftest import Caller
from tests.agents.webhooks import deliveries
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews.dialogue.talking import ask, reply, send_back
from tests.reviews.service import Service


def post(caller: Caller, request: ApprovalRequest, key: str = "m1", **body: Any) -> Any:
    said = {"kind": "answer", "text": "The one of Monday.", **body}
    path = f"/proposals/{request.proposal_id}/messages"
    return caller.post(path, said, **{"Idempotency-Key": key})


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    found: ApprovalRequest = propose(gate.agent).request
    return found


def test_an_answer_returns_the_proposal(
    caller: Caller, gate: Gate, request_: ApprovalRequest
) -> None:
    ask(request_, gate.rita)
    answer = post(caller, request_)
    assert answer.status_code == 200, answer.content
    assert [one["kind"] for one in answer.json()["messages"]] == ["question", "answer"]


def test_the_same_key_sends_one_message(
    caller: Caller, gate: Gate, request_: ApprovalRequest
) -> None:
    ask(request_, gate.rita)
    first, again = post(caller, request_), post(caller, request_)
    assert again["Idempotent-Replayed"] == "true"
    assert again.json() == first.json()
    assert Message.objects.filter(kind="answer").count() == 1
    other = post(caller, request_, text="Another one.")
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")


@pytest.mark.parametrize(
    ("body", "status", "code", "path"),
    [
        ({}, 409, "no_question", ""),
        ({"text": " "}, 422, "invalid", "text"),
        ({"text": "a" * (messages.TEXT_LENGTH + 1)}, 422, "invalid", "text"),
        ({"kind": "guidance"}, 422, "invalid", "kind"),
        ({"kind": "question", "round": 1}, 422, "invalid", "round"),
        ({"round": 0}, 422, "invalid", "round"),
        ({"to": "rita"}, 422, "invalid", "to"),
    ],
)
def test_a_wrong_message_names_what_is_wrong(
    caller: Caller,
    request_: ApprovalRequest,
    body: dict[str, Any],
    status: int,
    code: str,
    path: str,
) -> None:
    answer = post(caller, request_, **body)
    said = answer.json()
    assert (answer.status_code, said["code"]) == (status, code), said
    assert [one["path"] for one in said["errors"]] == ([path] if path else [])
    assert not Message.objects.exists()


def test_an_agent_writes_about_its_own_pending_proposals_only(
    caller: Caller, gate: Gate
) -> None:
    ran = propose(gate.agent, "look")
    answer = caller.post(
        f"/proposals/{ran.pk}/messages",
        {"kind": "question", "text": "Why?"},
        **{"Idempotency-Key": "m2"},
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    answer = caller.post(
        "/proposals/p-nobody/messages",
        {"kind": "question", "text": "Why?"},
        **{"Idempotency-Key": "m3"},
    )
    assert answer.status_code == 404


def test_a_message_of_a_person_wakes_a_waiting_agent_and_its_own_does_not(
    caller: Caller, gate: Gate, request_: ApprovalRequest
) -> None:
    path = f"/proposals/{request_.proposal_id}?wait=1"
    before = caller.get(path)["Counterseal-Wait"]
    reply(gate, request_, kind=MessageKind.QUESTION)
    assert caller.get(path)["Counterseal-Wait"] == before
    ask(request_, gate.rita)
    assert caller.get(path)["Counterseal-Wait"] != before


def test_an_endpoint_hears_what_people_say(
    gate: Gate, request_: ApprovalRequest, receiver: Service
) -> None:
    deliveries.register(gate.agent, receiver.url, gate.owen)
    ask(request_, gate.rita)
    reply(gate, request_)
    reply(gate, request_, kind=MessageKind.QUESTION)
    messages.answer_question(
        request_id=request_.pk, person=gate.rita, version=1, text="Card"
    )
    send_back(request_, gate.tom)
    deliveries.carry()
    said = [one for one in receiver.payloads if "round" in one["data"]]
    assert [(one["type"], one["data"]["round"]) for one in said] == [
        ("request.asked", 1),
        ("request.answered", 2),
        ("request.sent_back", 3),
    ]
    assert {one["data"]["outcome"] for one in said} == {None}
    events = Delivery.objects.filter(kind__in=payloads.REQUEST_EVENTS)
    assert len(set(events.values_list("event", flat=True))) == 3
