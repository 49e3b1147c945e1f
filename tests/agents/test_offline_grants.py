"""A tool's service that never asks the gate: real HTTP, and the published keys."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import httpx2
import pytest
from django.test import Client

from reviews.executions import run
from reviews.grants import tokens
from reviews.models import ApprovalRequest, Execution, Grant
from tests import factories
from tests.agents.conftest import Caller
from tests.client import offline
from tests.conftest import Gate
from tests.factories import decide, propose

AUDIENCE = "https://deploys.example"


def published() -> Any:
    return Client().get("/.well-known/jwks.json").json()


def asks(service: offline.Deploys, **body: Any) -> Any:
    url = f"http://127.0.0.1:{service.server_port}/"
    return httpx2.post(url, json={"preconditions": {}, **body}).json()


def redeemed(caller: Caller, gate: Gate, **args: str) -> Any:
    """What the gate answers when the agent takes its grant, and the token before."""
    caller.propose("deploy", args=args or {"ref": "v1"})
    request = ApprovalRequest.objects.latest("opened_at")
    decide(request, gate.sue)
    decide(request, gate.sam)
    ticket = caller.get(f"/proposals/{request.proposal_id}").json()["grant"]["token"]
    return caller.post("/grants/redeem", {"token": ticket}).json() | {"ticket": ticket}


@pytest.fixture
def deploys(gate: Gate) -> None:
    """The agent's tool, its grants for a service of that name."""
    document = factories.document_of_tests()
    document["tools"]["deploy"]["audience"] = AUDIENCE
    factories.policy(gate.people, document)


def test_what_the_agent_redeemed_is_done_once(
    caller: Caller, gate: Gate, deploys: None
) -> None:
    taken = redeemed(caller, gate)
    with offline.running(published(), AUDIENCE) as service:
        done = asks(service, grant=taken["grant"], args=taken["args"])
        again = asks(service, grant=taken["grant"], args=taken["args"])
    assert done == again
    assert done["result"] == {"deployed": {"ref": "v1"}, "number": 1}
    assert len(service.done) == 1


def test_anything_else_is_refused_and_nothing_is_done(
    caller: Caller, gate: Gate, deploys: None
) -> None:
    taken, other = redeemed(caller, gate), redeemed(caller, gate, ref="v2")
    claims = dict(tokens.verify_token(taken["grant"]))
    attempts = {
        "other_action": [
            {"args": {"ref": "v3"}},
            {"grant": other["grant"]},
            {"preconditions": {"row_version": 1}},
        ],
        "not_redeemed": [{"grant": taken["ticket"]}],
        "expired": [{"grant": tokens.sign_claims({**claims, "exp": 1})}],
        "wrong_audience": [
            {"grant": tokens.sign_claims({**claims, "aud": "tool:pay"})}
        ],
        "other_tool": [{"grant": tokens.sign_claims({**claims, "tool": "preview"})}],
        "forged": [{"grant": taken["grant"][:-40] + "A" * 40}],
    }
    honest = {"grant": taken["grant"], "args": taken["args"]}
    with offline.running(published(), AUDIENCE) as service:
        for code, bodies in attempts.items():
            for body in bodies:
                answer = asks(service, **{**honest, **body})
                assert answer == {
                    "status": "failed",
                    "error": {"code": f"grant_{code}"},
                }
        assert not service.done
        assert asks(service, **honest)["status"] == "succeeded"


def test_what_the_gate_asks_for_itself_carries_a_grant(
    gate: Gate, settings: Any
) -> None:
    """By webhook; the service is called by the origin of its address."""
    local = {"webhook_networks": [ip_network("127.0.0.1/32")]}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=local)
    with offline.running(published(), "") as service:
        origin = f"http://127.0.0.1:{service.server_port}"
        service.audience, service.tool = origin, "pay"
        document = factories.document_of_tests()
        executor = {"kind": "webhook", "url": f"{origin}/pay"}
        document["tools"]["pay"]["executor"] = executor
        factories.policy(gate.people, document)
        request = propose(gate.agent, preconditions={"row_version": 1}).request
        decide(request, gate.rita)
        execution = Execution.objects.get()
        run.run_execution(execution.pk)
        execution.refresh_from_db()
        assert execution.status == "succeeded"
        assert list(service.done) == [execution.grant_id]

        service.audience = "https://another.example"
        refused = propose(gate.agent, customer="C-2").request
        decide(refused, gate.rita)
        execution = Execution.objects.get(proposal=refused.proposal)
        run.run_execution(execution.pk)
        execution.refresh_from_db()
        assert (execution.status, execution.code) == ("failed", "grant_wrong_audience")


def test_a_change_of_keys_leaves_grants_that_were_given_out(
    caller: Caller, gate: Gate, deploys: None, settings: Any
) -> None:
    before = redeemed(caller, gate)
    old, new = settings.COUNTERSEAL.grant_key, bytes([9]) * 32
    update: dict[str, Any] = {"grant_keys_next": [new]}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=update)
    kept = published()  # while the old key still signs
    update = {"grant_key": new, "grant_keys_next": [], "grant_keys_retired": [old]}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=update)
    after = redeemed(caller, gate, ref="v2")
    assert {key["kid"] for key in kept["keys"]} == {
        key["kid"] for key in published()["keys"]
    }
    for keys in (kept, published()):
        with offline.running(keys, AUDIENCE) as service:
            for taken in (before, after):
                done = asks(service, grant=taken["grant"], args=taken["args"])
                assert done["status"] == "succeeded"


def test_what_is_no_token_is_not_found(caller: Caller, gate: Gate) -> None:
    caller.propose("deploy")
    request = ApprovalRequest.objects.get()
    decide(request, gate.sue)
    decide(request, gate.sam)
    token = tokens.load_token(Grant.objects.get().pk)
    for value in (token, token[:-2], "g-1.AAAA", "a.b.c", "ä.ö.ü", "..", "x" * 5000):
        answer = caller.post("/grants/redeem", {"token": value + "A"})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert caller.post("/grants/redeem", {"token": "x" * 20000}).status_code == 422
