"""What the search of every page finds, and for whom."""

from __future__ import annotations

import pytest

from agents.models import Thread
from desk.log import search_entries
from desk.search.page import SearchPage, build_search_page
from journal import clock
from policies.models import Person
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import decide, propose


def search(person: Person, query: str) -> dict[str, list[str]]:
    page: SearchPage = build_search_page(person, query, clock.now())
    return {group.label: [hit.url for hit in group.hits] for group in page.groups}


def test_requests_are_found_by_words_and_number_open_or_decided(gate: Gate) -> None:
    request = propose(gate.agent, customer="C-4711").request
    search_entries.add_missing_entries()
    url = f"/requests/{request.pk}/"
    for query in ("c-4711", "4711", request.pk, request.proposal_id):
        assert search(gate.rita, query)["Requests"] == [url], query
    decide(request, gate.rita)
    assert search(gate.rita, "4711")["Requests"] == [url]


def test_a_request_of_another_queue_is_not_found(gate: Gate) -> None:
    request = propose(gate.agent, customer="C-4711").request
    search_entries.add_missing_entries()
    outsider = Person.objects.create_user("outsider")
    for query in ("4711", request.pk):
        assert "Requests" not in search(outsider, query)


@pytest.mark.parametrize(
    ("who", "people"), [("adam", True), ("otto", True), ("rita", False)]
)
def test_people_are_found_by_who_may_see_them(
    gate: Gate, who: str, *, people: bool
) -> None:
    hits = search(getattr(gate, who), str(gate.sue).split()[0].lower())
    assert hits.get("People", []) == (
        [f"/people/{gate.sue.public_id}/"] if people else []
    )


def test_agents_and_runs_are_found_by_the_beginning_of_their_name(gate: Gate) -> None:
    propose(gate.agent, thread="ticket-81")
    Thread.objects.get_or_create(
        agent=gate.agent,
        name="ticket-81",
        defaults={"status": "running", "started_at": clock.now()},
    )
    slug = gate.agent.slug
    assert f"/agents/{slug}/" in search(gate.owen, slug)["Agents"]
    assert search(gate.owen, "ticket-8")["Runs"] == [f"/threads/{slug}/ticket-81/"]


def test_pages_are_those_that_the_person_may_open(gate: Gate) -> None:
    assert "/people/" in search(gate.adam, "people")["Pages"]
    assert "Pages" not in search(gate.rita, "people")
    assert "/policies/" in search(gate.rita, "")["Pages"]


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("sessions", "/me/sessions/"),
        ("second factor", "/me/second-factor/"),
        ("2fa", "/me/second-factor/"),
        ("passkey", "/me/passkeys/"),
        ("password", "/me/password/"),
        ("settings", "/me/"),
        ("single sign-on", "/people/provisioning/"),
        ("single sign-on", "/health/"),
    ],
)
def test_pages_are_found_by_what_people_call_them(
    gate: Gate, query: str, page: str
) -> None:
    assert page in search(gate.adam, query)["Pages"]


@pytest.mark.parametrize("who", ["rita", "sue", "adam", "otto", "owen"])
def test_each_page_opens_for_whom_it_is_listed(
    gate: Gate, as_: SignIn, who: str
) -> None:
    pages = search(getattr(gate, who), "")["Pages"]
    client = as_(who)
    answers = {url: client.get(url).status_code for url in pages}
    assert answers == dict.fromkeys(pages, 200)


@pytest.mark.parametrize("query", ["'", "%", "a" * 500, "\u202e", "& | !", "  "])
def test_no_text_breaks_it(gate: Gate, query: str) -> None:
    page = build_search_page(gate.sue, query, clock.now())
    assert len(page.query) <= 200
