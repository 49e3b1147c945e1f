"""Who must not be named to whom: reviewers to agents, to owners and to one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from agents import keys
from journal.models import LogRecord
from reviews.executions import run
from reviews.models import ApprovalRequest, Execution
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.security.world import BACKEND

NOTE = "a note that only the log keeps"


def signed_in(gate: Gate, name: str) -> Client:
    client = Client()
    client.force_login(gate.people[name], BACKEND)
    return client


def pages(client: Client, request: ApprovalRequest) -> Iterator[tuple[str, str]]:
    """Everything a person can read of one request."""
    paths = [
        f"/requests/{request.pk}/",
        f"/requests/{request.pk}/live/",
        f"/requests/{request.pk}/decide/?arm=reject",
        f"/api/v1/requests/{request.pk}",
        "/api/v1/requests?status=authorized",
        "/queue/",
        "/queue/?tab=done",
        "/queue/?tab=waiting",
        "/escalations/",
        "/announced/",
        "/log/",
        f"/log/?q={request.pk}",
        "/agents/riley/",
        "/threads/riley/t-1/",
        "/stop/?agent=riley&thread=t-1",
    ]
    records = LogRecord.objects.filter(proposal=request.proposal_id)
    paths += [f"/log/new/{pk}/" for pk in records.values_list("pk", flat=True)]
    for path in paths:
        yield path, client.get(path).content.decode()


def marks(gate: Gate, *names: str) -> list[str]:
    """What would tell who they are."""
    people = [gate.people[name] for name in names]
    return [
        mark
        for one in people
        for mark in (str(one), one.public_id, one.email, f">{one.username}<")
    ]


def test_a_second_approver_does_not_see_the_first(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue, reason=NOTE)
    request.refresh_from_db()
    for path, source in pages(signed_in(gate, "sam"), request):
        for mark in [*marks(gate, "sue"), NOTE]:
            assert mark not in source, path


def test_who_escalated_is_not_named_while_it_is_open(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "escalate", reason=NOTE)
    request.refresh_from_db()
    for path, source in pages(signed_in(gate, "tom"), request):
        for mark in marks(gate, "rita"):
            assert mark not in source, path


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_the_owner_never_learns_who_decided(gate: Gate, verdict: str) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, verdict)
    if verdict == "approve":
        run.run_execution(Execution.objects.get().pk)
    request.refresh_from_db()
    for path, source in pages(signed_in(gate, "owen"), request):
        for mark in marks(gate, "rita"):
            assert mark not in source, path


def test_agents_are_told_no_names(gate: Gate) -> None:
    settled = propose(gate.agent).request
    open_ = propose(gate.agent, customer="C-9").request
    decide(settled, gate.rita, "reject", reason="do it by hand")
    decide(open_, gate.tom, "escalate")
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    client = Client(headers={"Authorization": f"Bearer {key}"})
    paths = [f"/proposals/{one.proposal_id}" for one in (settled, open_)]
    for path in [*paths, "/proposals", "/threads/t-1/checkpoint", "/whoami", "/tools"]:
        said: Any = client.get(f"/api/v1{path}").content.decode()
        for mark in marks(gate, *gate.people):
            assert mark not in said, path


def test_an_open_vote_is_no_decision_for_the_agent(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue, reason=NOTE)
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    client = Client(headers={"Authorization": f"Bearer {key}"})
    said = client.get(f"/api/v1/proposals/{request.proposal_id}").json()
    assert said["decision"] is None
    assert NOTE not in str(said)
