"""The log and its records, exports, pages as seen, versions, revealed values."""

from __future__ import annotations

from functools import partial

from django.test import Client
from playwright.sync_api import Page

from agents import registry
from agents.registry import AgentChange
from desk.log import exports, search_entries
from journal import sequencer
from journal.models import LogPosition, LogRecord
from policies import people
from policies.choices import Risk
from policies.money import Money
from policies.people import PersonChange
from reviews.models import Decision
from reviews.people import preferences
from tests.factories import decide
from tests.gallery.scene import SceneGroup, at, send, url
from tests.gallery.scenes.decisions import rejects
from tests.gallery.scenes.review import revised
from tests.gallery.store import StoreGate, hidden_mail
from tests.security.world import BACKEND

RECORDS = SceneGroup(
    "records",
    shows=(
        "reviews:log_record",
        "reviews:log_new",
        "reviews:as_seen",
        "reviews:version",
        "reviews:reveal",
        "reviews:peek",
    ),
)
REVEAL = {"name": "body", "reason_code": "other", "reason": ""}


@RECORDS.preparation
def fill_log(gate: StoreGate) -> None:
    """One day of the log."""
    gate.adopt(hidden_mail())
    gate.refunded()
    reason = {"reason_code": "other", "reason": "The parcel came this morning."}
    decide(gate.refund("24.00"), gate.rita, "reject", **reason)
    decide(gate.refund("25.00"), gate.rita, "escalate", reason_code="unclear")
    gate.hold(gate.mail(), gate.tom)
    search_entries.add_missing_entries()
    for name, query in (
        ("refused", "verdict=reject"),
        ("this week", "after=2026-11-16"),
    ):
        preferences.create_saved_view(
            person=gate.otto, page="log", name=name, query=query
        )


RECORDS.add("log", "rejected the request", "/log/")
RECORDS.add("log-auditor", "Export results:", "/log/", "otto")
RECORDS.add("log-filters", "Clear all filters", "/log/?risk=high&actor=rita")
RECORDS.add("log-search", "Rita", "/log/?q=24.00")
RECORDS.add("log-decisions", "rejected", "/log/?kind=decision")


def narrow(gate: StoreGate) -> None:
    """Less for a reviewer, and less for an agent."""
    limit = Money(100_00, "USD")
    people.change_person(gate.tom, PersonChange(ceiling=limit), by=gate.adam)
    less = AgentChange(tools=gate.agent.tools[:2], risk_ceiling=Risk.LOW)
    registry.change_agent(agent=gate.agent, change=less, by=gate.adam)


@RECORDS.scene("log-people", "100.00 USD", "otto")
def log_people(gate: StoreGate) -> str:
    """What was done to a person, with values before and after."""
    narrow(gate)
    return f"/log/?q={gate.tom.public_id}"


@RECORDS.scene("record-agent-changed", "Maximum risk", "otto")
def record_agent_changed(gate: StoreGate) -> str:
    """What changed of an agent."""
    narrow(gate)
    return find_record("agent.changed", gate)


def find_record(kind: str, gate: StoreGate) -> str:
    sequencer.sequence_records()
    return f"/log/{LogPosition.objects.filter(record__kind=kind).latest('pk').seq}/"


for kind in (
    "decision.recorded",
    "request.opened",
    "execution.succeeded",
    "policy.activated",
    "hold.taken",
):
    name = f"record-{kind.replace('.', '-')}"
    RECORDS.add(name, "Position in the log", partial(find_record, kind), "otto")


@RECORDS.scene("record-new", "Position in the log", "otto")
def record_new(gate: StoreGate) -> str:
    """A record that has no number yet."""
    gate.hold(gate.mail(), gate.rita)
    return f"/log/new/{LogRecord.objects.latest('pk').pk}/"


@RECORDS.scene("exports", "CSV", "otto")
def exported(gate: StoreGate) -> str:
    done = exports.create_export(
        person=gate.otto, file_format="csv", query="kind=decision"
    )
    exports.write_export(done.pk)
    exports.create_export(person=gate.otto, file_format="jsonl", query="")
    return "/log/exports/"


@RECORDS.scene("as-seen", "Matches what was shown")
def as_seen(gate: StoreGate) -> str:
    """A decision with the page that it was made on."""
    request = gate.refund("59.00")
    client = Client()
    client.force_login(gate.rita, BACKEND)
    sent = rejects(request)
    client.post(sent.path, sent.fields)
    return url(request, "as-seen", str(Decision.objects.get(request=request).pk))


@RECORDS.scene("as-seen-none", "No page was shown.", "otto")
def as_seen_none(gate: StoreGate) -> str:
    request = decide(gate.refund(), gate.rita)
    return url(request, "as-seen", str(request.decisions.get().pk))


def print_page(gate: StoreGate, page: Page) -> None:
    page.emulate_media(media="print")


RECORDS.add("as-seen-print", "Matches what was shown", as_seen, act=print_page)
RECORDS.add("print", "What changes", StoreGate.refund, act=print_page)
RECORDS.add("version", "Version 1", at(revised, "versions", "1"))
RECORDS.add("reveal", "Reveal Text…", at(StoreGate.mail, "reveal"), "sue")
RECORDS.add(
    "reveal-refused",
    "Enter why you need",
    send(StoreGate.mail, "reveal", **REVEAL),
    "sue",
)
RECORDS.add(
    "revealed",
    "shown for 60 seconds",
    send(StoreGate.mail, "reveal", **REVEAL | {"reason_code": "decide"}),
    "sue",
)
RECORDS.add("peek", "What changes", at(StoreGate.refund, "peek"))
