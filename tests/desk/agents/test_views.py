"""Agents and their runs, as people see them."""

from __future__ import annotations

import pytest
from django.test import Client
from guardian.shortcuts import remove_perm

from policies.models import Queue
from reviews.choices import Scope
from reviews.models import Stop
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.markup import find_element, read_page, read_text

RUN = "/threads/riley/t-1/"
CHECKPOINT = {
    "summary": "Waits. <script>alert(1)</script> Write to dana@mail.example",
    "state": {"step": "refund", "seen": ["order", "carrier"], "done": False},
    "blob": "c2VjcmV0LWJsb2I=",
    "resume_at": "execute",
}


def signed_in(gate: Gate, name: str) -> Client:
    client = Client()
    client.force_login(gate.people[name], "django.contrib.auth.backends.ModelBackend")
    return client


def test_agents_are_seen_by_whom_they_concern(gate: Gate) -> None:
    propose(gate.agent)
    for name in gate.people:
        assert b"Riley" in signed_in(gate, name).get("/agents/").content, name
    for queue in Queue.objects.all():
        remove_perm("policies.decide", gate.rita, queue)
    rita = signed_in(gate, "rita")
    assert b'data-testid="no-agents"' in rita.get("/agents/").content
    for path in ("/agents/riley/", RUN, "/agents/riley/stop/", f"{RUN}stop/"):
        assert rita.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/agents/", "/agents/riley/", RUN])
def test_they_are_read_by_people_who_signed_in(gate: Gate, path: str) -> None:
    propose(gate.agent)
    assert Client().get(path)["Location"].startswith("/sign-in/")
    client = signed_in(gate, "sue")
    assert client.get(path).status_code == 200
    assert client.post(path).status_code == 405


def test_an_agent_shows_its_day(gate: Gate) -> None:
    propose(gate.agent)
    decide(propose(gate.agent, customer="C-2").request, gate.rita, "reject")
    source = read_page(signed_in(gate, "sue").get("/agents/riley/"))
    assert "1 pending" in source
    assert "1 rejected" in source
    assert "Owen Example" in source
    assert "/threads/riley/t-1/" in source


def test_a_run_shows_its_steps_and_whose_turn_it_is(gate: Gate) -> None:
    request = propose(gate.agent, checkpoint=CHECKPOINT).request
    propose(gate.agent, "look")
    propose(gate.agent, "nothing_like_it", args={})
    asks = find_element(read_page(signed_in(gate, "rita").get(RUN)), "asks-you")
    assert f"/requests/{request.pk}/" in asks
    source = read_page(signed_in(gate, "otto").get(RUN))
    assert 'data-testid="asks-you"' not in source
    assert "tool.unknown" in source


def test_a_checkpoint_is_inert_redacted_and_without_its_blob(gate: Gate) -> None:
    propose(gate.agent, checkpoint=CHECKPOINT)
    source = signed_in(gate, "sue").get(RUN).content.decode()
    assert "<script>alert" not in source
    assert "dana@mail.example" not in source
    assert "secret-blob" not in source
    assert "c2VjcmV0" not in source
    assert "seen 2" in source
    checkpoint = find_element(read_page(signed_in(gate, "sue").get(RUN)), "checkpoint")
    for said in ("yes or no", "text", "sha256"):
        assert said in checkpoint


@pytest.mark.parametrize(
    ("path", "most"), [(RUN, 20), ("/agents/riley/", 31), ("/runs/", 16)]
)
def test_a_pages_queries_do_not_grow(
    gate: Gate, path: str, most: int, django_assert_max_num_queries
) -> None:
    client, counts = signed_in(gate, "sue"), set()
    for number in range(3):
        decide(
            propose(gate.agent, "write", args={"to": f"{number}", "text": "x"}).request,
            gate.rita,
            "reject",
        )
        propose(gate.agent, customer=f"C-{number}", thread=f"t-{number}")
        propose(gate.agent, customer=f"D-{number}", checkpoint=CHECKPOINT)
        client.get(path)
        with django_assert_max_num_queries(most) as found:
            client.get(path)
        counts.add(len(found))
    assert len(counts) == 1


def test_nobody_reads_a_run_that_is_not_there(gate: Gate) -> None:
    client = signed_in(gate, "sue")
    assert client.get("/threads/riley/never/").status_code == 404
    assert client.get("/agents/nobody/").status_code == 404


def test_the_owner_stops_their_own_agent(gate: Gate) -> None:
    propose(gate.agent)
    owen = signed_in(gate, "owen")
    sent = {"target": "agent:riley", "mode": "stopped", "reason": "broken"}
    assert owen.post("/agents/riley/stop/", sent).status_code == 302
    assert Stop.objects.get().key == "riley"
    source = owen.get("/agents/riley/").content.decode()
    assert "Stopped" in source
    assert "broken" in source


def test_an_owner_never_stops_anothers(gate: Gate) -> None:
    propose(gate.agent)
    factories.agent(gate.rita, "robin")
    owen = signed_in(gate, "owen")
    for target in ("agent:robin", "thread:robin/t-1", "tool:pay", "everything:"):
        sent = {"target": target, "mode": "stopped", "reason": "mischief"}
        sent["sure"] = "all agents"
        assert owen.post("/agents/riley/stop/", sent).status_code == 403
    assert not Stop.objects.exists()


def test_a_run_runs_only_while_something_of_it_is_open(gate: Gate) -> None:
    owen = signed_in(gate, "owen")
    request = propose(gate.agent).request
    assert read_text(owen.get(RUN), "status") == "Waiting for approval, 1 pending"
    decide(request, gate.sue, "reject")
    request.refresh_from_db()
    assert request.settled_at is not None
    idle = f"Idle since {request.settled_at:%H:%M:%S} UTC"
    assert read_text(owen.get(RUN), "status") == idle
    assert idle in read_page(owen.get("/agents/riley/"))
    propose(gate.agent, "unheard_of")
    assert read_text(owen.get(RUN), "status") == "Blocked, nothing pending"
    propose(gate.agent, amount="5.00", customer="C-9")
    assert read_text(owen.get(RUN), "status") == "Waiting for approval, 1 pending"


def test_a_stopped_run_says_so(gate: Gate) -> None:
    propose(gate.agent)
    stops.create_stop(scope=Scope.THREAD, key="riley/t-1", person=gate.sue, reason="x")
    response = signed_in(gate, "sue").get(RUN)
    assert read_text(response, "status") == "Stopped"
