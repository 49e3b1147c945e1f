"""In which zone pages say times: the person's, labelled; UTC, labelled, where it is not
known, in what is kept or sent, and in what the log is asked for."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from zoneinfo import ZoneInfo

import pytest
from django.core.mail import EmailMessage
from django.test import Client
from django.utils import timezone

from desk.log.filters import _parse_moment
from notifications.channels import email
from policies.models import Person
from reviews.choices import Scope
from reviews.models import Decision
from reviews.people import preferences
from reviews.stops import stops
from tests import factories, pages
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import propose
from tests.reviews import states
from tests.reviews.batches.batching import formed

KOLKATA = ZoneInfo("Asia/Kolkata")
CLOCK = re.compile(r"\d\d:\d\d:\d\d(?: \w+)?")
SIGN_IN = {"username": "rita", "password": factories.PASSWORD}


class Times(HTMLParser):
    """The visible text of a page, and each `<time>` with what it says."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.tag, self.at = "", "", ""
        self.said: list[tuple[datetime, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tag, self.at = tag, dict(attrs).get("datetime") or ""

    def handle_endtag(self, tag: str) -> None:
        self.tag = ""

    def handle_data(self, data: str) -> None:
        if self.tag in {"script", "style"}:
            return
        self.text += f"{data} "
        if self.tag == "time" and CLOCK.match(data):
            self.said.append((datetime.fromisoformat(self.at), data))


def live(person: Person, zone: str) -> None:
    preferences.save_preferences(
        person=person, display=preferences.DisplayPreferences(zone=zone)
    )


def place(gate: Gate, name: str) -> str:
    """The address of a page that says times."""
    if name == "batch":
        return f"/batches/{formed(gate, *['7.00'] * 5).pk}/"
    request = states.recallable(gate)
    waiting = propose(gate.agent, customer="C-2").request
    if name == "stop":
        stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="x")
    return {
        "queue": "/queue/",
        "waiting": "/queue/?tab=waiting",
        "request": f"/requests/{waiting.pk}/",
        "outcome": f"/requests/{request.pk}/",
        "log": "/log/",
        "run": f"/threads/riley/{request.proposal.thread}/",
        "agent": "/agents/riley/",
        "stop": "/stop/",
    }[name]


PLACES = [
    *("queue", "waiting", "request", "outcome", "log"),
    *("batch", "run", "agent", "stop"),
]


@pytest.mark.parametrize("name", PLACES)
def test_a_page_says_times_in_the_persons_zone(
    gate: Gate, as_: SignIn, name: str
) -> None:
    live(gate.sue, "Asia/Kolkata")
    path, client = place(gate, name), as_("sue")
    client.get("/help/")  # the session learns it from the first page
    page = Times(client.get(path).content.decode())
    assert page.said
    for at, said in page.said:
        if not said.endswith("UTC"):
            assert said.startswith(f"{at.astimezone(KOLKATA):%H:%M:%S} IST"), said
    clocks = CLOCK.findall(page.text)
    assert any(one.endswith("IST") for one in clocks)
    # What is kept as it was seen is in UTC, and says so.
    assert [one for one in clocks if not one.endswith((" IST", " UTC"))] == []


@pytest.mark.parametrize("name", PLACES)
def test_a_page_says_utc_where_the_zone_is_not_known(
    gate: Gate, as_: SignIn, name: str
) -> None:
    path, client = place(gate, name), as_("sue")
    page = Times(client.get(path).content.decode())
    assert [one for one in CLOCK.findall(page.text) if not one.endswith(" UTC")] == []
    for at, said in page.said:
        assert said.startswith(f"{at.astimezone(UTC):%H:%M:%S} UTC"), said


def test_signing_in_tells_the_zone_once(gate: Gate) -> None:
    client = Client()
    client.post("/sign-in/", {**SIGN_IN, "zone": "America/New_York"})
    assert kept(gate) == "America/New_York"
    source = client.get(waiting(gate)).content.decode()
    assert re.search(r"Expires\s+<time [^>]*>[\d:]{8} E[SD]T<", source)
    Client().post("/sign-in/", {**SIGN_IN, "zone": "Asia/Kolkata"})
    assert kept(gate) == "America/New_York"


@pytest.mark.parametrize("zone", ["", "undefined", "Mars/Olympus", "../etc/passwd"])
def test_what_is_no_zone_is_not_kept(gate: Gate, zone: str) -> None:
    client = Client()
    answer = client.post("/sign-in/", {**SIGN_IN, "zone": zone})
    assert answer.status_code == 302
    assert kept(gate) == ""
    assert b" UTC</time>" in client.get(waiting(gate)).content


def waiting(gate: Gate) -> str:
    """The address of a request that waits, whose page says when it expires."""
    return f"/requests/{propose(gate.agent).request.pk}/"


def kept(gate: Gate) -> str:
    person = Person.objects.get(pk=gate.rita.pk)
    return preferences.load_preferences(person).display.zone


def test_another_zone_is_chosen_and_holds_at_once(gate: Gate, as_: SignIn) -> None:
    client = as_("rita")
    chosen = preferences.DisplayPreferences().model_dump()
    wrong = client.post("/me/display/", {**chosen, "zone": "Berlin"})
    assert wrong.status_code == 422
    source = wrong.content.decode()
    assert preferences.NO_ZONE_MESSAGE in source
    assert 'value="Berlin"' in source
    client.post("/me/display/", {**chosen, "zone": "America/Sao_Paulo"})
    assert b" UTC-03</time>" in client.get(waiting(gate)).content


def test_what_was_seen_reads_the_same_in_every_zone(gate: Gate, as_: SignIn) -> None:
    live(gate.rita, "Asia/Kolkata")
    live(gate.otto, "America/New_York")
    request = propose(gate.agent).request
    client = as_("rita")
    client.get("/help/")
    sent = {
        "seen": pages.token(request),
        "verdict": "approve",
        "version": request.version,
        "action_hash": request.action_hash,
        "reason_code": "",
        "reason": "",
    }
    client.post(f"/requests/{request.pk}/decide/", sent)
    decision = Decision.objects.get()
    auditor = as_("otto")
    auditor.get("/help/")
    path = f"/requests/{request.pk}/as-seen/{decision.pk}/"
    assert 'data-finding="identical"' in auditor.get(path).content.decode()


def test_a_mail_says_utc_wherever_it_is_written(
    gate: Gate, mailoutbox: list[EmailMessage]
) -> None:
    at = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
    facts = {"kind": "declared", "incident": {"at": at}}
    with timezone.override(KOLKATA):
        email._send_template(gate.rita, "Incident", "mail/incident.txt", facts)
    assert "2026-11-24 12:00:00 UTC" in str(mailoutbox[0].body)


def test_the_log_is_asked_for_in_utc(db: None) -> None:
    with timezone.override(KOLKATA):
        assert _parse_moment("2026-11-24") == datetime(2026, 11, 24, tzinfo=UTC)
        assert _parse_moment("2026-11-24T08:30") == datetime(
            2026, 11, 24, 8, 30, tzinfo=UTC
        )
