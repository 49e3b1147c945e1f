"""`/api/v1/standing-grants`: issue, list and revoke, for people's programs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from policies.models import Person, StandingGrant
from reviews.people import tokens
from tests.conftest import Gate
from tests.factories import new_thread
from tests.reviews.standing_grants.allowing import allow_tags, is_asked, issue, tag

LIST = "/api/v1/standing-grants"


def open_client(person: Person) -> Client:
    token = tokens.create_token(person=person, name="script")
    return Client(headers={"Authorization": f"Bearer {token}"})


def send(client: Client, path: str, **body: Any) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


@pytest.fixture
def sue(gate: Gate) -> Client:
    allow_tags(gate, uses=3)
    return open_client(gate.sue)


def test_one_is_issued_listed_and_revoked(gate: Gate, sue: Client) -> None:
    request = tag(gate).request
    path = f"/api/v1/requests/{request.pk}/standing-grant"
    answer = send(sue, path, reason="fifty tags")
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert (made["tool"], made["thread"], made["request"]) == ("tag", "t-1", request.pk)
    assert (made["uses"], made["budget"], made["in_force"]) == (0, 3, True)
    assert not is_asked(tag(gate, label="b"))
    listed = sue.get(LIST).json()
    assert [one["uses"] for one in listed["items"]] == [1]
    assert send(sue, path, reason="again").status_code == 409
    revoked = send(sue, f"{LIST}/{made['id']}/revoke").json()
    assert (revoked["in_force"], revoked["can_revoke"]) == (False, False)
    assert revoked["revoked_at"]
    assert is_asked(tag(gate, label="c"))
    assert send(sue, f"{LIST}/{made['id']}/revoke").status_code == 409


def test_a_person_whom_the_policy_does_not_name_issues_none(
    gate: Gate, sue: Client
) -> None:
    request = tag(gate).request
    path = f"/api/v1/requests/{request.pk}/standing-grant"
    refused = send(open_client(gate.rita), path, reason="fifty tags")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_yours")
    assert send(sue, path, reason="").status_code == 422
    assert not StandingGrant.objects.exists()


def test_the_list_has_pages(gate: Gate, sue: Client) -> None:
    made = [issue(gate, tag(gate, thread=new_thread()).request).pk for _ in range(3)]
    first = sue.get(f"{LIST}?limit=2").json()
    rest = sue.get(f"{LIST}?limit=2&cursor={first['next_cursor']}").json()
    found = [one["id"] for one in first["items"] + rest["items"]]
    assert found == made[::-1]
    assert rest["next_cursor"] is None
    assert sue.get(f"{LIST}?page=2").status_code == 422
