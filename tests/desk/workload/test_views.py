"""The banner over a queue that is too long, and where its three actions lead."""

from __future__ import annotations

import pytest
from django.core import mail

from desk.queue import page
from desk.workload.page import DUTY_RULE
from desk.workload.views import _describe_extension, _describe_sharing
from reviews.models import ApprovalRequest
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import decide
from tests.markup import find_element, read_page, read_text
from tests.reviews.test_workload import waiting


@pytest.fixture(autouse=True)
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each at the desk is enough, two are too many."""
    monkeypatch.setattr(page, "_ENOUGH", "2")
    monkeypatch.setattr(page, "MAX_OPEN_EACH", 1)


def test_supervisors_have_three_ways_out_and_reviewers_are_told(
    gate: Gate, as_: SignIn
) -> None:
    waiting(gate, 2)
    source = find_element(read_page(as_("sue").get("/queue/")), "overload")
    for way in ('href="/queue/load/#people"', 'href="/queue/load/#agents"'):
        assert way in source
    assert 'action="/queue/load/extend/"' in source
    told = read_page(as_("rita").get("/queue/"))
    assert 'data-testid="overload"' in told
    assert "/queue/load/" not in told


def test_one_press_extends_all_and_says_how_many(gate: Gate, as_: SignIn) -> None:
    before = {one.pk: one.expires_at for one in waiting(gate, 2)}
    response = as_("sue").post("/queue/load/extend/", follow=True)
    assert _describe_extension(2, 2) in read_text(response, "message")
    for one in ApprovalRequest.objects.all():
        assert one.expires_at > before[one.pk] - (one.expires_at - one.opened_at)
    again = as_("sue").post("/queue/load/extend/", follow=True)
    assert _describe_extension(0, 0) in read_text(again, "message")


def test_five_are_given_to_a_colleague(gate: Gate, as_: SignIn) -> None:
    waiting(gate, 6)
    client = as_("sue")
    source = client.get("/queue/load/").content.decode()
    assert f'name="to" value="{gate.tom.public_id}"' in source
    assert "Assign 5 requests" in read_text(client.get("/queue/load/"))
    to = {"to": gate.tom.public_id}
    done = client.post("/queue/load/share/", to, follow=True)
    assert _describe_sharing(5, "Tom Example") in read_text(done, "message")
    assert ApprovalRequest.objects.filter(assignee=gate.tom).count() == 5
    assert mail.outbox == []  # the worker's, after the commit


def test_a_press_offers_what_it_assigns(gate: Gate, as_: SignIn) -> None:
    waiting(gate, 2)
    client = as_("sue")
    assert "Assign 2 requests to Tom Example" in read_text(client.get("/queue/load/"))
    client.post("/queue/load/share/", {"to": gate.tom.public_id})
    text = read_text(client.get("/queue/load/"))
    assert "Assign 2" not in text
    assert "Nothing unclaimed that they can decide" in text


def test_it_counts_who_is_on_duty_as_the_overview_does(gate: Gate, as_: SignIn) -> None:
    first, _ = waiting(gate, 2)
    client = as_("sue")
    assert "Nobody is on duty in your queues." in read_text(client.get("/queue/load/"))
    assert "nobody is on duty" in read_text(client.get("/overview/"))
    decide(first, gate.rita)
    for path in ("/queue/load/", "/overview/"):
        assert DUTY_RULE in read_text(client.get(path))
    assert "1 person is on duty" in read_text(client.get("/queue/load/"))
    assert "nobody is on duty" not in read_text(client.get("/overview/"))


def test_only_colleagues_are_asked(gate: Gate, as_: SignIn) -> None:
    waiting(gate, 1)
    for to in (gate.sue.public_id, gate.otto.public_id, "u-nobody", ""):
        sent = as_("sue").post("/queue/load/share/", {"to": to})
        assert sent.status_code == 404
    assert not ApprovalRequest.objects.filter(assignee__isnull=False).exists()


@pytest.mark.parametrize("name", ["rita", "adam", "otto", "owen"])
def test_it_is_the_supervisors_page(gate: Gate, as_: SignIn, name: str) -> None:
    client = as_(name)
    assert client.get("/queue/load/").status_code == 404
    assert client.post("/queue/load/extend/").status_code == 404
    to = {"to": gate.tom.public_id}
    assert client.post("/queue/load/share/", to).status_code == 404
    assert client.post("/queue/load/").status_code in {404, 405}
    assert client.get("/queue/load/extend/").status_code == 405


def test_the_page_links_to_the_pause_of_who_asks_the_most(
    gate: Gate, as_: SignIn
) -> None:
    waiting(gate, 2)
    source = as_("sue").get("/queue/load/").content.decode()
    assert 'href="/agents/riley/stop/?mode=paused"' in source
    shown = as_("sue").get("/agents/riley/stop/?mode=paused").content.decode()
    assert 'value="paused" checked' in shown
