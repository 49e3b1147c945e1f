"""The page of incidents, and what every other page says while one is open."""

from __future__ import annotations

import re
from typing import Any

import pytest
from guardian.shortcuts import remove_perm

from desk.forms import IncidentForm
from policies.models import Queue
from reviews.models import ApprovalRequest, Incident
from reviews.stops import incidents
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import propose
from tests.markup import read_page, read_text

URL = "/incidents/"
FROZEN = 'data-testid="frozen"'


def declare(gate: Gate, queue: str = "") -> Incident:
    of = Queue.objects.get(name=queue) if queue else None
    return incidents.declare_incident(person=gate.sue, reason="disk on fire", queue=of)


def test_a_supervisor_freezes_and_thaws(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    client = as_("sue")
    response = client.post(
        URL, {"queue": "every", "reason": "disk on fire"}, follow=True
    )
    assert read_text(response, "paused-requests").startswith("1 open request,")
    incidents.advance_frozen_deadlines()
    source = read_page(client.get(f"/requests/{request.pk}/"))
    assert "Paused, <b>" in source
    assert "data-warn" not in source
    row = Incident.objects.get()
    response = client.post(f"{URL}{row.pk}/end/", follow=True)
    assert 'data-testid="no-incident"' in read_page(response)
    assert "Expires" in client.get(f"/requests/{request.pk}/").content.decode()


def test_every_page_of_the_people_concerned_says_it(gate: Gate, as_: SignIn) -> None:
    declare(gate, "money")
    for name in ("rita", "sue", "adam", "otto"):
        for page in ("/queue/", "/me/", "/agents/"):
            text = read_text(as_(name).get(page), "frozen")
            assert " in Money since " in text, (name, page)
            assert "disk on fire" in text
    remove_perm("policies.decide", gate.rita, Queue.objects.get(name="money"))
    assert FROZEN not in as_("rita").get("/queue/").content.decode()
    assert FROZEN not in as_("owen").get("/agents/").content.decode()
    assert "disk on fire" not in as_("rita").get(URL).content.decode()
    declare(gate)
    for name in ("rita", "owen"):
        text = read_text(as_(name).get("/agents/"), "frozen")
        assert "Money" not in text
        assert "since" in text


def test_lists_show_what_is_left_and_that_it_stays(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    declare(gate)
    incidents.advance_frozen_deadlines()
    source = as_("rita").get("/queue/").content.decode()
    assert "Paused, " in source
    assert "data-until" not in source


def test_what_the_sweep_did_not_reach_still_waits(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    declare(gate)
    incidents.advance_frozen_deadlines()
    past = request.opened_at
    ApprovalRequest.objects.filter(pk=request.pk).update(
        expires_at=past, frozen_through=past
    )
    source = read_page(as_("rita").get(f"/requests/{request.pk}/"))
    assert "Paused, <b>0 s left</b>" in source
    assert "Expired" not in source


@pytest.mark.parametrize("name", ["rita", "otto", "owen"])
def test_others_read_and_change_nothing(gate: Gate, as_: SignIn, name: str) -> None:
    row = declare(gate)
    client = as_(name)
    source = client.get(URL).content.decode()
    assert "disk on fire" in source
    assert 'data-testid="declare"' not in source
    assert 'data-testid="end-incident"' not in source
    assert client.post(URL, {"reason": "me too"}).status_code == 403
    assert client.post(f"{URL}{row.pk}/end/").status_code == 403
    assert Incident.objects.get().ended_at is None


def test_a_reason_is_needed_and_the_choice_is_kept(gate: Gate, as_: SignIn) -> None:
    money = Queue.objects.get(name="money")
    response = as_("sue").post(URL, {"queue": money.pk, "reason": " "})
    source = read_page(response)
    assert response.status_code == 422
    assert 'data-testid="problem"' in source
    assert f'<option value="{money.pk}" selected>' in source
    response = as_("sue").post(URL, {"queue": "404", "reason": "a fire"})
    assert response.status_code == 422
    assert "a fire" in response.content.decode()
    assert not Incident.objects.exists()


def test_who_comes_second_keeps_their_words(gate: Gate, as_: SignIn) -> None:
    as_("sam").post(URL, {"queue": "every", "reason": "a fire"})
    said = {"queue": "every", "reason": "a fire in the north"}
    page = as_("sue").post(URL, said)
    assert page.status_code == 409
    assert "a fire in the north" in page.content.decode()
    assert Incident.objects.count() == 1


def test_who_comes_second_freezes_no_more_by_pressing_again(
    gate: Gate, as_: SignIn
) -> None:
    """What they had chosen is no choice any more, and nothing takes its place."""
    said = {"queue": str(declare(gate, "money").queue_id), "reason": "a fire"}
    page = as_("sue").post(URL, said)
    assert page.status_code == 409
    choices = re.findall(r"<option ([^>]*)>", page.content.decode())
    chosen = [one for one in choices if "selected" in one]
    assert chosen == ['value="" selected disabled']
    page = as_("sue").post(URL, {"queue": "", "reason": "a fire"})
    assert page.status_code == 422
    assert str(IncidentForm({}).errors["queue"][0]) in read_text(page, "problem")
    assert 'value="" selected disabled' in page.content.decode()
    assert Incident.objects.count() == 1


def test_where_all_is_frozen_their_words_are_kept_too(gate: Gate, as_: SignIn) -> None:
    for name in ("", *Queue.objects.values_list("name", flat=True)):
        declare(gate, name)
    said = {"queue": "every", "reason": "a fire in the north"}
    page = as_("sue").post(URL, said)
    assert page.status_code == 409
    source = page.content.decode()
    assert 'data-testid="declare"' not in source
    assert "a fire in the north" in source


def test_wrong_methods_and_what_is_not_there(gate: Gate, as_: SignIn) -> None:
    row = declare(gate)
    client = as_("adam")
    assert client.put(URL).status_code == 405
    assert client.get(f"{URL}{row.pk}/end/").status_code == 405
    assert client.post(f"{URL}987654321/end/").status_code == 404
    assert client.post(URL, {"queue": "every", "reason": "again"}).status_code == 409


def test_the_ended_are_listed(gate: Gate, as_: SignIn) -> None:
    incidents.end_incident(incident_id=declare(gate, "money").pk, person=gate.adam)
    source = as_("otto").get(URL).content.decode()
    assert 'data-testid="no-incident"' in source
    assert "Adam Example" in source


def test_no_more_queries_however_many_there_are(
    gate: Gate, as_: SignIn, django_assert_num_queries: Any
) -> None:
    client = as_("sue")
    for name in ("money", "mail"):
        declare(gate, name)
    client.get(URL)
    with django_assert_num_queries(10) as few:
        client.get(URL)
    declare(gate, "odd")
    declare(gate)
    with django_assert_num_queries(len(few.captured_queries)):
        client.get(URL)
