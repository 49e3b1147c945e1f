"""Somebody who has only the page docs/authzen.md: its lines verify the state of an
approval, against the real web process."""

from __future__ import annotations

import re
from typing import Any

import httpx2
import jwt
import pytest

from agents import keys
from tests.agents.adapters.authzen.conftest import (
    approve,
    build_denial,
    deployment,
)
from tests.conftest import Gate
from tests.guards import ROOT
from tests.stack import Stack

PAGE = ROOT / "docs" / "authzen.md"
LONGEST = 20


def lines_of_the_page() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    return str(code)


def test_they_are_twenty_at_most() -> None:
    code = [line for line in lines_of_the_page().splitlines() if line.strip()]
    assert len(code) <= LONGEST


@pytest.mark.servers
def test_a_stranger_verifies_what_was_approved(live: Stack, gate: Gate) -> None:
    names: dict[str, Any] = {}
    exec(lines_of_the_page(), names)
    verify = names["verify_approval"]
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    there: dict[str, Any] = {
        "base_url": live.base_url,
        "headers": {"Authorization": f"Bearer {key}"},
        "timeout": 30.0,
        "trust_env": False,
    }
    body = deployment(thread="t-7", time="20:15")
    with httpx2.Client(**there) as client:
        found = client.get("/.well-known/authzen-configuration").json()
        answer = client.post(found["access_evaluation_endpoint"], json=body)
        assert answer.status_code == 200, answer.text
        sent = {**body, "denial": build_denial(answer.json()["context"])}
        answer = client.post(found["access_request_endpoint"], json=sent)
        assert answer.status_code == 202, answer.text
        task = answer.json()["task"]
        approve(gate, task)
        done = client.get(task["status_endpoint"]).json()
        again = {**body, "context": {**body["context"], **done["result"]}}
        assert client.post("/access/v1/evaluation", json=again).json()["decision"]
    approval = done["result"]["approval"]
    state = approval["state"]
    claims = verify(state, live.base_url, **body)
    assert claims["approval_id"] == approval["id"]
    assert claims["approved_by"] == [{"role": "supervisor", "required": 2}]
    later = {**body, "context": {"thread": "t-7", "time": "20:43"}}
    assert verify(state, live.base_url, **later) == claims
    for other in (deployment("v2", thread="t-7"), deployment(thread="t-8")):
        with pytest.raises(ValueError, match="something else"):
            verify(state, live.base_url, **other)
    with pytest.raises(jwt.InvalidIssuerError):
        verify(state, live.base_url.replace("127.0.0.1", "localhost"), **body)
    with pytest.raises(ValueError, match="not the state"):
        verify(sent["denial"]["binding_token"], live.base_url, **body)
    head, claims_part, signature = state.split(".")
    with pytest.raises(jwt.InvalidSignatureError):
        verify(
            ".".join([head, claims_part, "AA" + signature[2:]]), live.base_url, **body
        )
