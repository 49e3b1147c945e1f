"""`/queue/` and what is new in it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from journal import clock
from policies.choices import Role
from reviews.choices import Scope, StopMode
from reviews.models import Stop
from reviews.stops import stops
from tests import factories, worlds
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.factories import decide, propose
from tests.markup import read_page

MOST_QUERIES = 14
SWITCHED = 'data-testid="switched"'


def test_it_lists_what_i_can_decide(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    response = as_("rita").get("/queue/")
    assert response.status_code == 200
    assert f"/requests/{request.pk}/" in read_page(response)
    assert "(1) Queue" in read_page(response)


@pytest.mark.parametrize("arrived", [True, False])
def test_a_conflict_of_claim_and_fact_is_stored_and_stands_on_the_row(
    gate: Gate, as_: SignIn, arrived: bool
) -> None:
    said = "The customer says lost; the carrier says delivered"
    document = factories.document_of_tests()
    document["tools"]["pay"] |= {
        "facts": ["arrived"],
        "review": {
            "conflicts": [
                {
                    "id": "arrived",
                    "text": said,
                    "when": "args.customer == 'C-1' && before.arrived",
                }
            ]
        },
    }
    factories.policy(gate.people, document)
    worlds.WORLD["facts"] = {"arrived": arrived}
    stored = propose(gate.agent).current.facts["conflicts"]
    assert [(one["id"], one["text"]) for one in stored] == (
        [("arrived", said)] if arrived else []
    )
    source = read_page(as_("rita").get("/queue/"))
    assert (said in source) is arrived


def test_it_is_for_people_who_signed_in(gate: Gate) -> None:
    response = Client().get("/queue/")
    assert response.status_code == 302
    assert response["Location"].startswith("/sign-in/?next=/queue/")


def test_it_only_reads(gate: Gate, as_: SignIn) -> None:
    assert as_("rita").post("/queue/").status_code == 405


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("rita", "/queue/"),
        ("sue", "/overview/"),
        ("otto", "/overview/"),
        ("adam", "/overview/"),
        ("owen", "/agents/"),
    ],
)
def test_each_role_starts_where_its_work_is(
    gate: Gate, as_: SignIn, name: str, page: str
) -> None:
    client = as_(name)
    assert client.get("/")["Location"] == page
    assert client.get(page).status_code == 200
    assert client.get("/sign-in/")["Location"] == "/"
    sent = {"username": name, "password": factories.PASSWORD}
    assert Client().post("/sign-in/", sent)["Location"] == "/"


def test_who_is_owner_and_reviewer_starts_in_the_queue(gate: Gate, as_: SignIn) -> None:
    gate.owen.groups.add(Group.objects.get(name=Role.REVIEWER))
    assert as_("owen").get("/")["Location"] == "/queue/"


def test_htmx_gets_the_table_alone(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    response = as_("rita", **HTMX).get("/queue/?tab=open")
    assert read_page(response).lstrip().startswith('<div id="queue-table"')
    assert response["Vary"].count("HX-Request") == 1


def test_a_history_restore_gets_the_whole_page(gate: Gate, as_: SignIn) -> None:
    client = as_("rita", **HTMX, HTTP_HX_HISTORY_RESTORE_REQUEST="true")
    assert b"<!doctype html>" in client.get("/queue/").content


@pytest.mark.parametrize("name", ["rita", "sue", "otto"])
@pytest.mark.parametrize("rows", [1, 12])
def test_its_queries_do_not_grow_with_the_rows(
    gate: Gate, as_: SignIn, django_assert_max_num_queries, name: str, rows: int
) -> None:
    for number in range(rows):
        propose(gate.agent, customer=f"C-{number}", thread=f"t-{number}")
    client = as_(name)
    client.get("/queue/")  # the policy is parsed once a process
    # A person who has not decided for a while may be offered a warm-up.
    away = int(name != "otto")
    with django_assert_max_num_queries(MOST_QUERIES + away):
        client.get("/queue/")
    if away:
        decide(propose(gate.agent, amount="899.00").request, gate.sue)
        decide(propose(gate.agent, customer="C-90").request, gate.rita, "reject")
        with django_assert_max_num_queries(MOST_QUERIES):
            client.get("/queue/")


@pytest.mark.parametrize("tab", ["waiting", "done"])
def test_the_other_tabs_stay_within_the_same(
    gate: Gate, as_: SignIn, django_assert_max_num_queries, tab: str
) -> None:
    decide(propose(gate.agent, amount="899.00").request, gate.sue)
    decide(propose(gate.agent, customer="C-2").request, gate.sue, "reject")
    client = as_("sue")
    client.get("/queue/")
    with django_assert_max_num_queries(MOST_QUERIES):
        client.get(f"/queue/?tab={tab}")


def fresh(client: Client, since: str, etag: str = "") -> Any:
    query = urlencode({"since": since, "back": "/queue/?tab=open"})
    return client.get(f"/queue/fresh/?{query}", headers={"If-None-Match": etag})


def test_new_arrivals_are_counted_and_never_moved_in(gate: Gate, as_: SignIn) -> None:
    client = as_("rita", **HTMX)
    since = clock.now().isoformat()
    propose(gate.agent)
    response = fresh(client, since)
    source = read_page(response)
    assert "1 new · show" in source
    assert 'id="badge-queue"' in source
    assert "<tr" not in source
    assert fresh(client, since, response["ETag"]).status_code == 204


def test_nothing_new_says_nothing(gate: Gate, as_: SignIn) -> None:
    since = (clock.now() + timedelta(seconds=1)).isoformat()
    source = read_page(fresh(as_("rita", **HTMX), since))
    assert "show" not in source


def test_the_way_back_is_never_anothers_address(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    since = (clock.now() - timedelta(minutes=1)).isoformat()
    query = urlencode({"since": since, "back": "//evil.example/queue/"})
    source = read_page(as_("rita").get(f"/queue/fresh/?{query}"))
    assert 'href="/queue/"' in source
    assert 'href="//evil' not in source


def test_without_a_moment_there_is_nothing(gate: Gate, as_: SignIn) -> None:
    assert as_("rita").get("/queue/fresh/?since=yesterday").status_code == 404


@pytest.mark.parametrize(
    ("scope", "key", "flag"),
    [
        (Scope.AGENT, "riley", "Agent paused"),
        (Scope.THREAD, "riley/t-1", "Run paused"),
        (Scope.TOOL, "pay", "Tool paused"),
    ],
)
def test_a_row_says_what_of_it_is_paused(
    gate: Gate, as_: SignIn, scope: Scope, key: str, flag: str
) -> None:
    request = propose(gate.agent).request
    key = request.tool_name if scope is Scope.TOOL else key
    client = as_("rita")
    assert flag not in read_page(client.get("/queue/"))
    pause(gate, scope, key)
    assert flag in read_page(client.get("/queue/"))


@pytest.mark.parametrize("page", ["/queue/", "/requests/{}/", "/batches/"])
def test_every_page_says_which_agent_is_paused(
    gate: Gate, as_: SignIn, page: str
) -> None:
    request = propose(gate.agent).request
    stop = pause(gate, Scope.AGENT, "riley")
    source = read_page(as_("rita").get(page.format(request.pk)))
    assert "Agent riley was paused at " in source
    assert f"by {gate.sue}" in source
    assert "“Maintenance”" in source
    assert f'href="/stop/{stop.pk}/"' in source
    stops.lift_stop(stop_id=stop.pk, person=gate.sue, reason="over")
    assert SWITCHED not in read_page(as_("rita").get("/queue/"))


def test_a_stranger_to_an_agent_is_not_told_that_it_is_paused(
    gate: Gate, as_: SignIn
) -> None:
    pause(gate, Scope.AGENT, "riley")
    assert SWITCHED not in read_page(as_("rita").get("/queue/"))


def pause(gate: Gate, scope: Scope, key: str) -> Stop:
    return stops.create_stop(
        scope=scope,
        key=key,
        mode=StopMode.PAUSED,
        person=gate.sue,
        reason="Maintenance",
    )
