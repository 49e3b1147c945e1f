"""Two accounts that are one person's have one vote [I10]."""

from __future__ import annotations

import pytest

from journal import errors
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.choices import RequestStatus
from reviews.grants import approvers
from reviews.models import Decision
from reviews.people import identities
from reviews.requests import versions
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose

LOOKS_LIKE_SUE = "su\u0435@example.com"  # no one index can fold every letter


@pytest.fixture
def twin(gate: Gate) -> Person:
    """Made past `people.add`, by somebody who writes rows."""
    return factories.admitted("sue.l", Role.SUPERVISOR, email=LOOKS_LIKE_SUE)


def test_the_second_account_of_a_voter_does_not_vote(gate: Gate, twin: Person) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    request.refresh_from_db()
    assert permissions.describe_why_cannot_decide(twin, request, request.sealed)
    known = permissions.load_decider_facts(twin, [request.pk])
    assert permissions.describe_why_cannot_decide(twin, request, request.sealed, known)
    with pytest.raises(errors.NotPermitted, match="already decided"):
        decide(request, twin)
    decide(request, gate.sam)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED


def test_nor_where_the_first_ones_step_is_complete(gate: Gate, twin: Person) -> None:
    factories.admitted("una", Role.SUPERVISOR)
    request = propose(gate.agent).request
    decide(request, gate.rita, "escalate")
    request.refresh_from_db()
    decide(request, gate.sue)
    request.refresh_from_db()
    decide(request, gate.sam, "escalate")
    request.refresh_from_db()
    assert request.sealed.carried == [gate.sue.public_id]
    with pytest.raises(errors.NotPermitted, match="already decided"):
        decide(request, twin)


def test_votes_of_one_person_are_counted_once_before_the_effect(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    request.refresh_from_db()
    given = approvers.list_votes(approvers.load_ballots([request])[0])
    evaluation = versions.parse_evaluation(request.sealed.revision)
    assert approvers.has_enough_votes(given, evaluation, queue="money")
    Person.objects.filter(pk=gate.sam.pk).update(email=LOOKS_LIKE_SUE)
    given = approvers.list_votes(approvers.load_ballots([request])[0])
    assert not approvers.has_enough_votes(given, evaluation, queue="money")
    assert Decision.objects.filter(request=request).count() == 2


def test_no_address_is_nobodys_twin() -> None:
    assert not identities.is_same_mailbox("", "")
    assert identities.is_same_mailbox("sue@example.com", LOOKS_LIKE_SUE)
    assert not identities.is_same_mailbox("sue@example.com", "sam@example.com")
