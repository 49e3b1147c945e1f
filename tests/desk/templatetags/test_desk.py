"""Names on pages: links for readers who may open what they name, text for others."""

from __future__ import annotations

import pytest

from journal.models import LogRecord
from policies import people
from policies.models import Person, Queue
from reviews.choices import Scope
from reviews.decisions import drafts
from reviews.holds import take
from reviews.stops import incidents, stops
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import decide, propose
from tests.markup import find_element, read_page

AGENT = '<a href="/agents/riley/">riley</a>'


def link(person: Person) -> str:
    return f'<a href="/people/{person.public_id}/">{person}</a>'


def bold_link(person: Person) -> str:
    return f'<a href="/people/{person.public_id}/"><b>{person}</b></a>'


@pytest.fixture
def rejected(gate: Gate) -> str:
    """The page of a request with a note by Tom that Rita rejected."""
    request = propose(gate.agent).request
    drafts.add_note(request_id=request.pk, person=gate.tom, text="seen before")
    decide(request, gate.rita, "reject", reason_code="unsafe", reason="no")
    return f"/requests/{request.pk}/"


def test_votes_notes_and_history_of_a_request_link_to_people(
    gate: Gate, as_: SignIn, rejected: str
) -> None:
    source = read_page(as_("alma").get(rejected))
    assert link(gate.rita) in find_element(source, "progress")
    assert link(gate.tom) in find_element(source, "notes")
    history = find_element(source, "history")
    assert f"{bold_link(gate.rita)} rejected" in history
    assert '<a href="/agents/riley/"><b>riley</b></a> proposed' in history
    assert "<a " not in find_element(source, "agent-text")


def test_the_state_of_a_request_links_to_who_claimed_or_rejected_it(
    gate: Gate, as_: SignIn, rejected: str
) -> None:
    source = read_page(as_("alma").get(rejected))
    assert f"Rejected by {link(gate.rita)}" in find_element(source, "state")
    assert f"Rejected by {link(gate.rita)}" in find_element(source, "outcome")
    request = propose(gate.agent, customer="C-9").request
    take.take_hold(request_id=request.pk, person=gate.rita)
    for page in ("/queue/", f"/requests/{request.pk}/"):
        source = read_page(as_("alma").get(page))
        assert f"Claimed by {link(gate.rita)} since" in source
        source = read_page(as_("sue").get(page))
        assert "Claimed by Rita Example since" in source


def test_who_may_not_read_people_gets_names_without_links(
    gate: Gate, as_: SignIn, rejected: str
) -> None:
    source = read_page(as_("sue").get(rejected))
    assert "Rita Example" in find_element(source, "progress")
    assert "/people/" not in source
    assert "/people/" not in read_page(as_("sue").get("/log/"))


def test_the_owner_of_a_run_reads_no_name(
    gate: Gate, as_: SignIn, rejected: str
) -> None:
    source = read_page(as_("owen").get(rejected))
    assert "A reviewer" in find_element(source, "progress")
    assert "Rita Example" not in source
    assert gate.rita.public_id not in source


def test_a_stop_and_its_banner_link_to_who_raised_it(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    row = stops.create_stop(
        scope=Scope.AGENT, key="riley", person=gate.sue, reason="it loops"
    )
    alma = as_("alma")
    source = read_page(alma.get(f"/stop/{row.pk}/"))
    assert link(gate.sue) in find_element(source, "switch")
    assert link(gate.sue) in find_element(source, "switched")
    assert link(gate.sue) in find_element(
        read_page(alma.get("/agents/riley/")), "held-back"
    )
    assert link(gate.sue) not in read_page(as_("sam").get(f"/stop/{row.pk}/"))


def test_an_incident_links_to_who_declared_it(gate: Gate, as_: SignIn) -> None:
    incidents.declare_incident(queue=None, reason="outage", person=gate.sue)
    assert f"by {link(gate.sue)}" in read_page(as_("alma").get("/incidents/"))


def test_the_log_links_the_actor_and_the_subject(gate: Gate, as_: SignIn) -> None:
    queue = Queue.objects.get(name="money")
    people.dismiss_from_queues(gate.tom, [queue], by=people.build_actor(gate.alma))
    source = read_page(as_("otto").get("/log/?kind=person"))
    record = LogRecord.objects.filter(kind="person.dismissed").get()
    own = f'href="/log/new/{record.pk}/"'
    assert (
        f'{bold_link(gate.alma)}<a class="effect" {own} data-row>removed</a>'
        f'{bold_link(gate.tom)}<a class="effect" {own}>from ' in source
    )
    heading = read_page(as_("otto").get(f"/log/new/{record.pk}/"))
    assert f"{bold_link(gate.alma)} removed {bold_link(gate.tom)} from" in heading


def test_each_row_of_the_log_is_one_stop_of_the_keys(
    gate: Gate, as_: SignIn, rejected: str
) -> None:
    source = read_page(as_("alma").get("/log/"))
    assert source.count(" data-row>") == source.count("<tr data-kind=")
