from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents import keys
from agents.keys import AgentScope
from hitl.api import build_description
from hitl.live.per_key_limit import is_proposal
from tests.agents.adapters.authzen.conftest import (
    EVALUATION,
    REQUESTS,
    EnforcementPoint,
    payment,
    request_of,
)
from tests.conftest import Gate
from tests.security.world import BACKEND

METADATA = "/.well-known/authzen-configuration"


def test_the_metadata_names_what_there_is(client: Client, settings: Any) -> None:
    answer = client.get(METADATA)
    assert answer["Content-Type"] == "application/json"
    assert answer["Cache-Control"] == "public, max-age=300"
    found, here = answer.json(), settings.COUNTERSEAL.base_url
    assert found["policy_decision_point"] == here
    assert found["access_evaluation_endpoint"] == here + EVALUATION
    assert found["access_request_endpoint"] == here + REQUESTS
    assert client.get(found["jwks_uri"].removeprefix(here)).status_code == 200
    paths = build_description()["paths"]
    assert {EVALUATION, REQUESTS} <= set(paths)
    assert client.post(METADATA).status_code == 405


@pytest.mark.django_db
def test_the_description_lists_the_endpoints(client: Client) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    ours = {path: set(methods) for path, methods in paths.items() if "access" in path}
    assert ours == {
        EVALUATION: {"post"},
        REQUESTS: {"post"},
        f"{REQUESTS}/{{task_id}}": {"get"},
        f"{REQUESTS}/{{task_id}}/cancel": {"post"},
    }
    page = client.get("/api/v1/docs").content.decode().replace("<wbr>", "")
    assert all(path in page for path in ours)


@pytest.mark.parametrize("key", ["", "cs_wrong_key"])
def test_without_a_key_nothing_is_answered(gate: Gate, key: str) -> None:
    nobody = EnforcementPoint(key)
    calls = [
        ("POST", EVALUATION),
        ("POST", REQUESTS),
        ("GET", f"{REQUESTS}/p-1"),
        ("POST", f"{REQUESTS}/p-1/cancel"),
    ]
    for method, path in calls:
        answer = nobody.call(method, path, payment())
        assert (answer.status_code, answer.json()["code"]) == (401, "bad_key")
        assert answer["WWW-Authenticate"] == "Bearer"
        assert answer["Content-Type"] == "application/problem+json"


def test_a_key_that_only_reads_polls_only(gate: Gate, pep: EnforcementPoint) -> None:
    task = pep.request(payment())
    key = keys.issue_key(agent=gate.agent, by=gate.owen, scopes=(AgentScope.READ,))
    reader = EnforcementPoint(key)
    assert reader.poll(task)["task"]["status"] == "pending"
    for path in (EVALUATION, REQUESTS, f"{REQUESTS}/{task['id']}/cancel"):
        assert reader.call("POST", path, payment()).status_code == 403


def test_an_answer_carries_the_id_that_its_call_has(pep: EnforcementPoint) -> None:
    """Authorization API 1.0, section "Request Identification"."""
    given = "bfe9eb29-ab87-4ca3-be83-a1d5d8305716"
    for body in (payment(), {}):
        answer = pep.call("POST", EVALUATION, body, **{"X-Request-ID": given})
        assert answer["X-Request-ID"] == given
    for odd in ("", "a b", "x" * 129, "é"):
        answer = pep.call("POST", EVALUATION, payment(), **{"X-Request-ID": odd})
        assert answer["X-Request-ID"] not in {odd, ""}
    answer = pep.call("GET", "/api/v1/whoami", **{"X-Request-ID": given})
    assert answer["X-Request-ID"] != given


def test_an_unknown_address_is_a_problem(pep: EnforcementPoint) -> None:
    answer = pep.call("GET", "/access/v1/nothing")
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"


def test_a_flood_of_requests_is_refused_like_one_of_proposals() -> None:
    for path in (REQUESTS, "/api/v1/proposals"):
        assert is_proposal({"method": "POST", "path": path})
    assert not is_proposal({"method": "POST", "path": EVALUATION})


def test_the_request_page_shows_it_like_any_other(
    pep: EnforcementPoint, gate: Gate
) -> None:
    """Its texts are inert: they come as text, never as markup."""
    words = "<img src=x onerror=alert(1)> Approve at once."
    body = payment(business_justification=words)
    body["subject"]["id"] = "<b>alice</b>"
    request = request_of(pep.request(body))
    browser = Client()
    browser.force_login(gate.rita, BACKEND)
    page = browser.get(f"/requests/{request.pk}/").content.decode()
    assert "40.00" in page
    assert "&lt;img src=x" in page
    assert "<img src=x" not in page
    assert "<b>alice" not in page
