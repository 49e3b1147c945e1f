"""Who could still give a vote that counts: no escalation ends where nobody can decide,
and people are named only while nobody has voted."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from guardian.shortcuts import assign_perm, remove_perm

from journal import errors
from policies.choices import Role
from policies.models import Person, Queue
from reviews.choices import RequestStatus, Scope
from reviews.governance import voters
from reviews.models import ApprovalRequest, Decision
from reviews.people import tokens
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.markup import read_page

BACKEND = "django.contrib.auth.backends.ModelBackend"


def page(request: ApprovalRequest, person: Person) -> str:
    client = Client()
    client.force_login(person, BACKEND)
    return read_page(client.get(f"/requests/{request.pk}/"))


def others(request: ApprovalRequest, person: Person) -> str:
    source = page(request, person)
    found = re.search(r"<dt>Can (?:also )?decide</dt><dd>([^<]*)</dd>", source)
    assert found is not None
    return found[1]


def test_nobody_escalates_what_then_nobody_could_decide(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    with pytest.raises(errors.PolicyViolation) as refused:
        decide(request, gate.sue, "escalate")
    (error,) = refused.value.errors
    assert error["path"] == "verdict"
    assert error["message"].startswith("only 1 of 3 supervisors could decide it")
    assert not Decision.objects.exists()
    request.refresh_from_db()
    assert (request.status, request.version) == (RequestStatus.PENDING, 1)


def test_the_only_supervisor_hands_nothing_up(gate: Gate) -> None:
    Person.objects.filter(pk=gate.sam.pk).update(is_active=False)
    request = propose(gate.agent).request
    with pytest.raises(errors.PolicyViolation, match="Too few people"):
        decide(request, gate.sue, "escalate")
    decide(request, gate.rita, "escalate")
    decide(request, gate.tom)
    decide(request, gate.sue)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED


def test_with_enough_people_it_is_escalated_and_decided(gate: Gate) -> None:
    more = [factories.admitted(name, Role.SUPERVISOR) for name in ("sid", "sol")]
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue, "escalate")
    for person in (gate.sam, *more):
        decide(request, person)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED


@pytest.mark.parametrize("shut", ["inactive", "stopped", "ceiling", "barred", "queue"])
def test_whose_vote_would_not_count_is_not_counted_on(gate: Gate, shut: str) -> None:
    factories.admitted("sid", Role.SUPERVISOR)
    sol = factories.admitted("sol", Role.SUPERVISOR)
    more: dict[str, Any] = (
        {"on_behalf_of": {"kind": "user", "id": "sol"}} if shut == "barred" else {}
    )
    request = propose(gate.agent, amount="899.00", **more).request
    if shut == "inactive":
        Person.objects.filter(pk=sol.pk).update(is_active=False)
    elif shut == "stopped":
        key = sol.public_id
        stops.create_stop(
            scope=Scope.REVIEWER, key=key, person=gate.adam, reason="away"
        )
    elif shut == "ceiling":
        Person.objects.filter(pk=sol.pk).update(
            ceiling_minor=80000, ceiling_currency="USD"
        )
    elif shut == "queue":
        remove_perm("policies.decide", sol, Queue.objects.get(name="money"))
    with pytest.raises(errors.PolicyViolation):
        decide(request, gate.sue, "escalate")
    assert others(request, gate.sue) == "Sam Example and Sid Example"


def test_the_page_says_why_it_cannot_be_escalated(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    source = page(request, gate.sue)
    said = "You cannot escalate this: too few other supervisors can decide."
    assert said in source
    assert 'data-testid="verb-escalate"' not in source
    assert 'data-testid="verb-reject"' in source


def test_the_people_s_api_says_so_too(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    token = tokens.create_token(person=gate.sue, name="script")
    headers = {"Authorization": f"Bearer {token}"}
    path = f"/api/v1/requests/{request.pk}"
    told = Client().get(path, headers=headers).json()
    assert told["can_decide"] is True
    assert told["verdicts"] == ["approve", "reject", "modify"]


def test_others_are_named_only_while_nobody_has_voted(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    assert others(request, gate.sue) == "Sam Example"
    assert others(request, gate.rita) == "Sam Example and Sue Example"
    decide(request, gate.sue)
    for person in (gate.rita, gate.sue):
        assert others(request, person) == "1 other person"
    assert others(request, gate.sam) == "Nobody else"
    for person in (gate.rita, gate.sam):
        assert "Sue Example" not in page(request, person)


def test_others_of_an_escalated_request_are_a_number(gate: Gate) -> None:
    request = propose(gate.agent).request
    names = "Sam Example, Sue Example and Tom Example"
    assert others(request, gate.rita) == names
    decide(request, gate.rita, "escalate")
    assert others(request, gate.tom) == "2 other people"
    decide(request, gate.tom)  # the reviewer's place is taken
    assert others(request, gate.tom) == "2 other people"
    assert others(request, gate.sue) == "1 other person"


def test_whose_own_run_it_is_reads_no_names(gate: Gate) -> None:
    request = propose(gate.agent).request
    assert others(request, gate.owen) == "4 other people"


def test_each_role_is_asked_for_once(gate: Gate) -> None:
    for name in ("sid", "sol"):
        factories.admitted(name, Role.SUPERVISOR)
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue, "escalate")
    assert "0 of 3 (3 supervisors)" in page(request, gate.sam)


def test_two_accounts_of_one_person_are_one_voter(gate: Gate) -> None:
    twin = factories.person("samantha", Role.SUPERVISOR, email="sam+2@example.com")
    for queue in Queue.objects.all():
        assign_perm("policies.decide", twin, queue)
    queue = Queue.objects.get(name="money")
    request = propose(gate.agent, amount="899.00").request
    people = voters.list_voters(queue.pk)
    assert len(people) == 5
    left = voters.list_remaining_voters(people, request, request.sealed, [])
    assert len(left) == 2
