"""Webhook deliveries and endpoints as people manage them."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from standardwebhooks.webhooks import Webhook

from agents.choices import DeliveryStatus
from agents.models import Delivery, Endpoint
from desk.agents.deliveries import STATUS_WORDS
from journal import clock
from journal.models import LogRecord
from policies.choices import Role
from reviews.alarms import standing
from reviews.models import Alarm
from tests import factories
from tests.agents.webhooks import deliveries
from tests.conftest import Gate
from tests.desk.agents.test_views import signed_in
from tests.markup import find_element, read_page, read_text
from tests.reviews.service import Service

pytestmark = pytest.mark.django_db
PAGE, ENDPOINTS = "/deliveries/", "/agents/riley/endpoints/"
SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{44}")


@pytest.fixture
def dead(gate: Gate, receiver: Service) -> Delivery:
    """A delivery that failed for three days."""
    receiver.status = 500
    deliveries.register(gate.agent, f"{receiver.url}?key=k3y-of-ours", gate.owen)
    factories.propose(gate.agent, "pay")
    deliveries.carry()
    past = clock.now() - timedelta(seconds=1)
    Delivery.objects.update(next_at=past, give_up_at=past)
    deliveries.carry()
    return Delivery.objects.get(status="dead")


def source(client: Client, path: str) -> str:
    return read_page(client.get(path))


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("adam", 200),
        ("otto", 200),
        ("sue", 200),
        ("owen", 200),
        ("rita", 404),
    ],
)
def test_they_are_read_by_whom_they_concern(
    gate: Gate, dead: Delivery, name: str, status: int
) -> None:
    client = signed_in(gate, name)
    for path in (PAGE, f"{PAGE}{dead.pk}/", ENDPOINTS):
        assert client.get(path).status_code == status, path
        assert Client().get(path)["Location"].startswith("/sign-in/")


def test_another_owner_sees_their_own_agents_only(gate: Gate, dead: Delivery) -> None:
    gate.people["olga"] = factories.person("olga", Role.OWNER)
    factories.agent(gate.people["olga"], "other")
    olga = signed_in(gate, "olga")
    assert "riley" not in source(olga, PAGE)
    assert olga.get(f"{PAGE}{dead.pk}/").status_code == 404
    again = olga.post(f"{PAGE}{dead.pk}/again/")
    assert again.status_code == 404


def test_what_did_not_arrive_is_sent_again_by_the_owner(
    gate: Gate, dead: Delivery, receiver: Service
) -> None:
    owen = signed_in(gate, "owen")
    text = source(owen, PAGE)
    assert "status 500" in find_element(text, "failed")
    assert f"/deliveries/{dead.pk}/again/" in text
    assert "k3y-of-ours" not in text  # a query may be a secret
    assert owen.get(f"{PAGE}{dead.pk}/again/").status_code == 405
    answer = owen.post(f"{PAGE}{dead.pk}/again/")
    assert answer["Location"] == f"{PAGE}{dead.pk}/"
    receiver.status = 200
    deliveries.carry()
    page = owen.get(f"{PAGE}{dead.pk}/")
    assert read_text(page, "status") == STATUS_WORDS[DeliveryStatus.DELIVERED][0]
    attempts = read_text(page, "attempts")
    assert (attempts.count("Status 500"), attempts.count(", 200")) == (2, 1)


@pytest.mark.parametrize("name", ["sue", "adam", "otto"])
def test_its_alarm_leads_to_it(gate: Gate, dead: Delivery, name: str) -> None:
    client, alarm = signed_in(gate, name), Alarm.objects.get(kind="delivery_dead")
    link = f'<a href="{PAGE}{dead.pk}/">Delivery</a>'
    for page in ("/alarms/", f"/alarms/{alarm.pk}/"):
        assert link in source(client, page), page
    assert client.get(f"{PAGE}{dead.pk}/").status_code == 200
    standing.close_alarm(alarm_id=alarm.pk, person=gate.sue, note="it listens again")
    closed = source(client, f"/alarms/{alarm.pk}/")
    assert link not in closed, "it may be forgotten from now on"


def test_who_only_reads_sends_nothing_again(gate: Gate, dead: Delivery) -> None:
    for name in ("otto", "sue"):
        client = signed_in(gate, name)
        assert "/again/" not in source(client, PAGE)
        for path in (
            f"{PAGE}{dead.pk}/again/",
            f"/endpoints/{dead.endpoint_id}/again/",
            f"/endpoints/{dead.endpoint_id}/switch/",
            f"/endpoints/{dead.endpoint_id}/secret/",
        ):
            assert client.post(path).status_code == 403, path
        assert client.post(ENDPOINTS, {"url": "https://a.example/"}).status_code == 403


def test_all_of_an_endpoint_are_sent_again(
    gate: Gate, dead: Delivery, receiver: Service
) -> None:
    adam = signed_in(gate, "adam")
    path = f"/endpoints/{dead.endpoint_id}/again/"
    assert adam.post(path)["Location"] == PAGE
    assert Delivery.objects.get().status == "waiting"
    assert adam.post(path).status_code == 409
    kinds = LogRecord.objects.filter(kind="delivery.again")
    assert kinds.get().actor_id == gate.adam.public_id


def test_an_endpoint_is_switched_off_and_on(gate: Gate, dead: Delivery) -> None:
    owen, path = signed_in(gate, "owen"), f"/endpoints/{dead.endpoint_id}/switch/"
    owen.post(path, {"to": "off"})
    assert Endpoint.objects.get().off_why == "person"
    assert 'name="to" value="on"' in source(owen, PAGE)
    owen.post(path, {"to": "on"})
    assert Endpoint.objects.get().off_at is None
    assert 'name="to" value="off"' in source(owen, PAGE)


def test_a_secret_is_shown_once(gate: Gate, receiver: Service) -> None:
    owen = signed_in(gate, "owen")
    shown = owen.post(ENDPOINTS, {"url": receiver.url})
    (first,) = SECRET.findall(shown.content.decode())
    assert "no-store" in shown["Cache-Control"]
    assert not SECRET.findall(source(owen, ENDPOINTS))
    endpoint = Endpoint.objects.get()
    renewed = owen.post(f"/endpoints/{endpoint.pk}/secret/").content.decode()
    (second,) = SECRET.findall(renewed)
    assert first != second
    factories.propose(gate.agent, "pay")
    deliveries.carry()
    _, headers, body = receiver.requests[-1]
    for secret in (first, second):
        Webhook(secret).verify(body, headers)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", ""),
        ("ftp://agent.example/", "http and https"),
        ("http://10.0.0.1/hook", "is not public"),
        ("https://user:pass@agent.example/", "user name"),
    ],
)
def test_a_wrong_address_is_refused_and_kept(gate: Gate, url: str, said: str) -> None:
    answer = signed_in(gate, "owen").post(ENDPOINTS, {"url": url})
    assert answer.status_code == 422
    text = read_page(answer)
    assert said in find_element(text, "url-error")
    assert f'value="{url}"' in text


def test_the_pages_queries_do_not_grow(gate: Gate, receiver: Service) -> None:
    receiver.status = 500
    owen = signed_in(gate, "owen")
    counts = []
    for number in range(6):
        deliveries.register(gate.agent, f"{receiver.url}/{number}", gate.owen)
        factories.propose(gate.agent, "pay", thread=f"t-{number}")
        deliveries.carry()
        if number % 4 == 1:
            with CaptureQueriesContext(
                connection,
            ) as found:
                assert owen.get(PAGE).status_code == 200
            counts.append(len(found))
    assert len(set(counts)) == 1
    assert counts[0] <= 20


def test_the_agents_page_says_where_it_hears_back(gate: Gate, dead: Delivery) -> None:
    page = signed_in(gate, "owen").get("/agents/riley/")
    assert read_text(page, "webhooks") == "1 endpoint"
    assert ENDPOINTS not in source(signed_in(gate, "rita"), "/agents/riley/")


def test_a_command_registers_one_and_prints_its_secret(
    gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("register_endpoint", "riley", "https://a.example/hook", by="adam")
    assert SECRET.fullmatch(capsys.readouterr().out.strip())
    for wrong in (["riley", "https://a.example/hook"], ["nobody", "https://b.example"]):
        with pytest.raises(CommandError):
            call_command("register_endpoint", *wrong, by="adam")
    with pytest.raises(CommandError, match="not public"):
        call_command("register_endpoint", "riley", "http://10.0.0.1/", by="adam")


def test_an_owner_sends_a_test_event_and_reads_the_answer(
    gate: Gate, receiver: Service
) -> None:
    endpoint, _ = deliveries.register(gate.agent, f"{receiver.url}?key=k3y", gate.owen)
    receiver.status, receiver.body = 500, b"<script>alert(1)</script> broken"
    path = f"/endpoints/{endpoint.pk}/test/"
    answer = signed_in(gate, "owen").post(path)
    shown = find_element(read_page(answer), "test-result")
    assert answer.status_code == 200
    assert "The test event was answered with 500 in " in shown
    assert "broken" in shown
    assert "<script>alert" not in answer.content.decode()
    assert "k3y" not in answer.content.decode()
    assert len(receiver.requests) == 1
    for name, status in (("otto", 403), ("rita", 404)):
        assert signed_in(gate, name).post(path).status_code == status, name
    assert signed_in(gate, "owen").get(path).status_code == 405
    assert len(receiver.requests) == 1
    assert LogRecord.objects.filter(kind="endpoint.tested").count() == 1


def test_an_address_of_a_proposal_is_not_tested(gate: Gate, receiver: Service) -> None:
    factories.propose(gate.agent, callback_url=receiver.url)
    assert Endpoint.objects.get().by_proposal
    assert 'data-testid="test"' not in source(signed_in(gate, "owen"), ENDPOINTS)
