from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
import rfc8785
from django.test import Client

from agents.adapters.authzen import entities
from agents.adapters.authzen.entities import AccessTuple
from agents.schemas.authzen import EvaluationIn
from journal.errors import InvalidInput
from reviews.people import tokens
from tests.agents.adapters.authzen.conftest import (
    EVALUATION,
    EnforcementPoint,
    payment,
    request_of,
)
from tests.conftest import Gate
from tests.desk.api.test_people import call
from tests.markup import read_text

DOCUMENT = {"type": "document", "id": "q4-plan"}
USER = {"type": "user", "id": "alice@example.com"}


def access_tuple(
    resource: dict[str, Any], action: dict[str, Any], **context: Any
) -> AccessTuple:
    body = {
        "subject": USER,
        "resource": resource,
        "action": action,
        "context": context,
    }
    return entities.build_access_tuple(EvaluationIn.model_validate(body))


@pytest.mark.parametrize("name", ["invoke", "tools/call"])
def test_a_tool_takes_the_properties_of_the_action(name: str) -> None:
    access = access_tuple(
        {"type": "tool", "id": "pay"}, {"name": name, "properties": {"amount": "1.00"}}
    )
    call = entities.find_tool_call(access)
    assert (call.tool, call.args) == ("pay", {"amount": "1.00"})


def test_another_resource_is_what_a_tool_of_both_names_acts_upon() -> None:
    access = access_tuple(
        {**DOCUMENT, "properties": {"folder": "plans"}},
        {"name": "can_read", "properties": {"method": "GET"}},
    )
    call = entities.find_tool_call(access)
    assert call.tool == "document.can_read"
    assert call.args == {"id": "q4-plan", "folder": "plans", "method": "GET"}


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "action.name": ({"type": "tool", "id": "pay"}, {"name": "can_read"}),
    "resource.properties": (
        {"type": "tool", "id": "pay", "properties": {"a": 1}},
        {"name": "invoke"},
    ),
    "resource.id": ({"type": "tool", "id": "no tool"}, {"name": "invoke"}),
    "resource.type": ({"type": "docu ment", "id": "1"}, {"name": "can_read"}),
    "resource.properties.id": ({**DOCUMENT, "properties": {"id": "x"}}, {"name": "r"}),
    "action.properties.id": (DOCUMENT, {"name": "r", "properties": {"id": "x"}}),
    "action.properties.a": (
        {**DOCUMENT, "properties": {"a": 1}},
        {"name": "r", "properties": {"a": 1}},
    ),
}


@pytest.mark.parametrize("path", REFUSED)
def test_what_would_be_no_part_of_the_action_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        entities.find_tool_call(access_tuple(*REFUSED[path]))
    assert [fault["path"] for fault in refused.value.errors] == [path]


def test_the_hash_is_the_profiles() -> None:
    """Section 21.1.4: JCS of the four members, SHA-256, base64url without padding."""
    access = access_tuple(DOCUMENT, {"name": "can_read"}, thread="t-1", time="now")
    said = {
        "subject": USER,
        "resource": DOCUMENT,
        "action": {"name": "can_read"},
        "context": {"thread": "t-1"},
    }
    digest = hashlib.sha256(rfc8785.dumps(said)).digest()
    expected = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert access.compute_hash() == expected


def test_other_arguments_go_where_the_first_ones_were() -> None:
    access = access_tuple(
        {**DOCUMENT, "properties": {"folder": "plans"}},
        {"name": "can_read", "properties": {"method": "GET"}},
    )
    args = {"id": "q3-plan", "folder": "old", "method": "HEAD"}
    other = entities.replace_action(access, args, {"version": 7})
    assert entities.find_tool_call(other).args == args
    assert other.action == {"name": "can_read", "properties": {"method": "HEAD"}}
    assert other.context == {"preconditions": {"version": 7}}
    same = {"id": "q4-plan", "folder": "plans", "method": "GET"}
    assert entities.replace_action(access, same, {}) == access


@pytest.mark.parametrize("name", ["can_read", "invoke"])
def test_a_left_out_object_stays_left_out(name: str) -> None:
    resource = DOCUMENT if name == "can_read" else {"type": "tool", "id": "crm"}
    access = access_tuple(resource, {"name": name})
    args = entities.find_tool_call(access).args
    assert entities.replace_action(access, args, {}) == access


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"args": {"amount": "1.005"}}, "action.properties.amount"),
        ({"args": {"more": 1}}, "action.properties.more"),
        ({"preconditions": {"colour": 1}}, "context.preconditions.colour"),
        ({"thread": "DE89370400440532013000"}, "context.thread"),
    ],
)
def test_a_refusal_names_the_members_that_were_sent(
    pep: EnforcementPoint, changes: dict[str, Any], path: str
) -> None:
    body = payment()
    body["action"]["properties"].update(changes.pop("args", {}))
    body["context"].update(changes)
    answer = pep.call("POST", "/access/v1/evaluation", body)
    assert answer.status_code == 400
    assert [fault["path"] for fault in answer.json()["errors"]] == [path]


@pytest.mark.parametrize(
    ("act", "path"),
    [
        ({"sub": "robin"}, "subject.properties.act.sub"),
        ("riley", "subject.properties.act.sub"),
        ({"sub": "riley", "act": {"sub": "robin"}}, "subject.properties.act.act"),
    ],
)
def test_an_actor_that_the_key_does_not_prove_is_refused(
    pep: EnforcementPoint, act: Any, path: str
) -> None:
    body = payment()
    body["subject"]["properties"] = {"act": act}
    answer = pep.call("POST", "/access/v1/evaluation", body)
    assert answer.status_code == 400
    assert [fault["path"] for fault in answer.json()["errors"]] == [path]


def test_the_actor_may_move_to_the_client_of_the_request(
    pep: EnforcementPoint,
) -> None:
    evaluated = payment()
    evaluated["subject"]["properties"] = {"act": {"sub": "riley"}}
    denial = pep.denial(evaluated)
    client = {"actor": {"id": "riley", "type": "ai_agent"}}
    sent = {**payment(), "denial": denial, "client": client}
    assert pep.submit(sent).status_code == 202
    for actor in ({"id": "robin"}, {"id": "riley", "act": {"sub": "robin"}}):
        refused = pep.submit({**sent, "client": {"actor": actor}})
        assert refused.status_code == 400
        assert refused.json()["errors"][0]["path"].startswith("client.actor")


def test_the_subject_is_who_asked_and_may_not_decide(
    pep: EnforcementPoint, gate: Gate
) -> None:
    body = payment()
    body["subject"] = {"type": "identity", "id": gate.rita.email}
    task = pep.request(body)
    request = request_of(task)
    assert request.proposal.on_behalf_of["kind"] == "user"
    assert gate.rita.public_id in request.proposal.barred


def test_an_agent_that_asks_for_itself_asks_on_nobodys_behalf(
    pep: EnforcementPoint,
) -> None:
    body = payment()
    body["subject"] = {"type": "agent", "id": "riley"}
    assert request_of(pep.request(body)).proposal.on_behalf_of == {}


CLAIMS = {"clearance": "level nine", "limit": 9, "roles": ["treasurer"]}


@pytest.mark.parametrize("subject", [("user", "alice"), ("agent", "riley")])
def test_what_is_said_about_the_subject_is_read_where_people_decide(
    pep: EnforcementPoint, gate: Gate, subject: tuple[str, str]
) -> None:
    body = payment(preconditions={"row_version": 7})
    body["subject"] = {"type": subject[0], "id": subject[1], "properties": CLAIMS}
    request = request_of(pep.request(body))
    client = Client()
    client.force_login(gate.rita, "django.contrib.auth.backends.ModelBackend")
    page = read_text(client.get(f"/requests/{request.pk}/"))
    token = tokens.create_token(person=gate.rita, name="script")
    claims = call(f"/requests/{request.pk}", token=token).json()["claims"]
    said = {one["heading"]: one["text"] for one in claims}
    lines = ["clearance: level nine", "limit: 9", 'roles: ["treasurer"]']
    assert said["Says about them"].split("\n") == lines
    assert said["Only if the record has"] == "row_version: 7"
    assert "level nine" in page
    assert "treasurer" in page
    assert "row_version" in page


def test_more_properties_than_people_read_are_refused(pep: EnforcementPoint) -> None:
    body = payment()
    many = {f"p{number}": number for number in range(33)}
    body["subject"] = {"type": "user", "id": "alice", "properties": many}
    answer = pep.call("POST", EVALUATION, body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["path"] == "subject.properties"
