"""One person with every role walks the whole way, as `counterseal up --solo` lets them;
the same steps are refused to them in a gate for several people."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.models import Agent
from journal.errors import Conflict, DomainError, NotPermitted
from journal.log import SYSTEM
from journal.models import LogRecord
from policies import people, versions
from policies.choices import Role
from policies.models import Person, PolicyVersion, Queue
from policies.people import NewPerson
from reviews import permissions
from reviews.choices import RequestStatus, Scope, Verdict
from reviews.governance import voters
from reviews.models import ApprovalRequest
from reviews.stops import stops
from tests import factories
from tests.markup import read_page
from world.cast import put_in_force

DEPLOY = {"ref": "v1"}


def set_solo(settings: Any, on: bool) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update={"solo": on})


@pytest.fixture
def solo(db: None, empty_world: None, settings: Any) -> Person:
    """The one person of a solo gate, whose policy and agent are theirs."""
    set_solo(settings, True)
    person = factories.person("ann", Role.ADMINISTRATOR)
    person.groups.set(factories._groups().values())
    document = factories.document_of_tests()
    put_in_force(document, person, person, admit=lambda: factories._admit([person]))
    return Person.objects.get(pk=person.pk)


@pytest.fixture
def agent(solo: Person) -> Agent:
    return factories.agent(solo)


def propose(agent: Agent, tool: str = "pay", **fields: Any) -> ApprovalRequest:
    factories.propose(agent, tool, thread=factories.new_thread(), **fields)
    return ApprovalRequest.objects.latest("opened_at")


def test_one_vote_decides_what_takes_two(agent: Agent, solo: Person) -> None:
    request = propose(agent, amount="900.00")
    assert request.sealed.steps == [{"role": "supervisor", "required": 1}]
    assert list(voters.list_undecidable_requests()) == []
    factories.decide(request, solo)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED


def test_their_records_say_so(agent: Agent, solo: Person) -> None:
    factories.decide(propose(agent), solo)
    mine = LogRecord.objects.filter(actor_kind="person")
    assert mine.exists()
    assert all(row.data["solo"] is True for row in mine)
    others = LogRecord.objects.exclude(actor_kind="person")
    assert not any("solo" in row.data for row in others)


def test_they_decide_what_they_escalated_and_what_they_changed(
    agent: Agent, solo: Person
) -> None:
    request = propose(agent)
    factories.decide(request, solo, Verdict.ESCALATE)
    args = {"customer": "C-1", "amount": "60.00", "currency": "USD"}
    factories.decide(request, solo, Verdict.MODIFY, args=args)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED
    assert request.sealed.revision.args == args


def test_they_resume_everything(solo: Person) -> None:
    stop = stops.create_stop(scope=Scope.EVERYTHING, person=solo, reason="try")
    assert stops.lift_stop(stop_id=stop.pk, person=solo, reason="tried").lifted_at


def test_pages_say_so_and_activate_their_own_draft(
    agent: Agent, solo: Person, client: Client
) -> None:
    client.force_login(solo, "django.contrib.auth.backends.ModelBackend")
    document = {**factories.document_of_tests(), "name": "another"}
    draft = versions.save_draft(text_or_mapping=document, author=solo)
    page = read_page(client.get(f"/policies/{draft.number}/"))
    assert "Solo mode" in page
    assert "Another administrator must activate it" not in page
    versions.activate_version(version_id=draft.pk, by=solo)
    factories.decide(propose(agent), solo)
    assert "Solo mode" in read_page(client.get("/log/")).replace("<b>Solo mode", "")


def test_nobody_else_gets_an_account(solo: Person) -> None:
    other = NewPerson("bob", "bob@example.com", factories.PASSWORD, Role.REVIEWER)
    with pytest.raises(Conflict, match="solo mode"):
        people.add_person(other, by=SYSTEM)


def test_without_it_the_same_person_decides_nothing(
    agent: Agent, solo: Person, settings: Any
) -> None:
    request = propose(agent)
    draft = versions.save_draft(
        text_or_mapping={**factories.document_of_tests(), "name": "another"},
        author=solo,
    )
    set_solo(settings, False)
    with pytest.raises(NotPermitted):
        factories.decide(request, solo)
    with pytest.raises(DomainError, match="second administrator"):
        versions.activate_version(version_id=draft.pk, by=solo)
    assert PolicyVersion.objects.get(pk=draft.pk).status == "draft"
    assert permissions.find_deciding_role(solo) is None
    assert voters.list_voters(Queue.objects.get(name="money").pk) == []
