"""What was: the log, its records, exports, pages as seen, versions, revealed values."""

from __future__ import annotations

from functools import partial

from django.test import Client
from playwright.sync_api import Page

from journal import sequencer
from journal.models import LogPosition, LogRecord
from reviews.desk.log import exports, search_entries
from reviews.holds import take
from reviews.models import Decision
from reviews.people import preferences
from tests import factories
from tests.factories import decide
from tests.gallery import shop
from tests.gallery.scene import Room, Sent
from tests.gallery.stage import BACKEND, Stage, path

from .over import ran
from .refusals import panel

ROOM = Room("records")
LOG, RECORD = "reviews:log", "reviews:log_record"


@ROOM.furnished
def furnish(stage: Stage) -> None:
    """One day of the log."""
    document = shop.policy()
    document["tools"]["send_email"]["sensitive"] = ["body"]
    factories.policy(stage.gate.people, document)
    ran(stage)
    said = {"reason_code": "other", "reason": "The parcel came this morning."}
    decide(stage.refund("24.00"), stage.rita, "reject", **said)
    decide(stage.refund("25.00"), stage.rita, "escalate", reason_code="unclear")
    take.take_hold(request_id=stage.mail().pk, person=stage.tom)
    search_entries.add_missing_entries()
    for name, query in (
        ("refused", "verdict=reject"),
        ("this week", "after=2026-11-16"),
    ):
        preferences.create_saved_view(
            person=stage.otto, page="log", name=name, query=query
        )


ROOM.page("log", LOG, "/log/", "rejected it")
ROOM.page("log-auditor", LOG, "/log/", "Export what fits:", who="otto")
ROOM.page("log-filters", LOG, "/log/?risk=high&actor=rita", "Clear all filters")
ROOM.page("log-search", LOG, "/log/?q=24.00", "Rita")
ROOM.page("log-decisions", LOG, "/log/?kind=decision", "rejected")


def record(stage: Stage, kind: str) -> str:
    sequencer.sequence_records()
    found = LogPosition.objects.filter(record__kind=kind).latest("pk")
    return f"/log/{found.seq}/"


KINDS = (
    "decision.recorded",
    "request.opened",
    "execution.succeeded",
    "policy.activated",
    "lease.taken",
)
for kind in KINDS:
    name = f"record-{kind.replace('.', '-')}"
    build = partial(record, kind=kind)
    ROOM.scene(name, RECORD, "Its place", who="otto")(build)


@ROOM.scene("record-new", "reviews:log_new", "Its place", who="otto")
def record_new(stage: Stage) -> str:
    """A record that has no number yet."""
    take.take_hold(request_id=stage.mail().pk, person=stage.rita)
    return f"/log/new/{LogRecord.objects.latest('pk').pk}/"


@ROOM.scene("exports", "reviews:exports", "CSV", who="otto")
def exported(stage: Stage) -> str:
    done = exports.create_export(
        person=stage.otto, file_format="csv", query="kind=decision"
    )
    exports.write_export(done.pk)
    exports.create_export(person=stage.otto, file_format="jsonl", query="")
    return "/log/exports/"


def _decided(stage: Stage) -> Decision:
    """A decision with the page that it was made on."""
    request = stage.refund("59.00")
    client = Client()
    client.force_login(stage.rita, BACKEND)
    client.post(path(request, "decide"), panel(request, "reject"))
    return Decision.objects.get(request=request)


@ROOM.scene("as-seen", "reviews:as_seen", "Matches what was shown")
def as_seen(stage: Stage) -> str:
    decision = _decided(stage)
    return path(decision.request, "as-seen", str(decision.pk))


@ROOM.scene("as-seen-none", "reviews:as_seen", "No page was shown.", who="otto")
def as_seen_none(stage: Stage) -> str:
    request = decide(stage.refund(), stage.rita)
    return path(request, "as-seen", str(request.decisions.get().pk))


def _printed(stage: Stage, page: Page) -> None:
    page.emulate_media(media="print")


@ROOM.scene("as-seen-print", "reviews:as_seen", "Matches what was shown", act=_printed)
def as_seen_print(stage: Stage) -> str:
    return as_seen(stage)


@ROOM.scene("print", "reviews:request_detail", "What changes", act=_printed)
def printed(stage: Stage) -> str:
    return path(stage.refund())


@ROOM.scene("version", "reviews:version", "Version 1")
def version(stage: Stage) -> str:
    request = stage.refund()
    args = {**request.sealed.revision.args, "amount": "58.50", "partial": True}
    factories.revised(stage.agent, request.proposal, args)
    return path(request, "versions", "1")


@ROOM.scene("reveal", "reviews:reveal", "Reveal Text…", who="sue")
def reveal(stage: Stage) -> str:
    return path(stage.mail(), "reveal")


@ROOM.scene("reveal-refused", "reviews:reveal", "Say why you need", who="sue")
def reveal_refused(stage: Stage) -> Sent:
    asked = {"name": "body", "reason_code": "other", "reason": ""}
    return Sent(path(stage.mail(), "reveal"), asked)


@ROOM.scene("revealed", "reviews:reveal", "shown for 60 seconds", who="sue")
def revealed(stage: Stage) -> Sent:
    asked = {"name": "body", "reason_code": "decide", "reason": ""}
    return Sent(path(stage.mail(), "reveal"), asked)


@ROOM.scene("peek", "reviews:peek", "What changes")
def peek(stage: Stage) -> str:
    return path(stage.refund(), "peek")
