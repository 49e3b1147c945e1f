"""Slack, proved against a server that checks what Slack's Web API requires and answers
in its recorded shapes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest

from journal import clock
from notifications import delivery
from notifications.channels import slack
from notifications.channels.content import MessageSummary
from policies.choices import Risk
from reviews.models import ApprovalRequest, Notice
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.hitl.tasks.draining import drain
from tests.notifications.channels.apis import (
    Answer,
    Api,
    Call,
    activate_routes,
    running,
)
from tests.notifications.test_plan import chooses

pytestmark = pytest.mark.django_db

TOKEN = "xoxb-100-200-abcdefghijkl"
ROOM, ROOM_ID = "#refunds", "C024BE91L"
MEMBERS = {"sue@example.com": "U02SUE", "rita@example.com": "U02RITA"}
ticks = itertools.count(1503435956)


def slack_rules(call: Call) -> Answer:
    """What Slack requires of a call, and its answer."""
    if call.headers["authorization"] != f"Bearer {TOKEN}":
        return Answer(body={"ok": False, "error": "invalid_auth"})
    if call.path == "/users.lookupByEmail":
        assert call.headers["content-type"].startswith("application/x-www-form")
        (email,) = parse_qs(call.body.decode())["email"]
        if email not in MEMBERS:
            return Answer(body={"ok": False, "error": "users_not_found"})
        return Answer(body={"ok": True, "user": {"id": MEMBERS[email]}})
    assert call.headers["content-type"] == "application/json; charset=utf-8"
    said = call.json
    if said["channel"] not in {ROOM, ROOM_ID}:
        return Answer(body={"ok": False, "error": "channel_not_found"})
    check_blocks(said["blocks"])
    assert 0 < len(said["text"]) <= 40_000
    if call.path == "/chat.update":
        assert said["channel"] == ROOM_ID  # it takes no name
        return Answer(body={"ok": True, "channel": ROOM_ID, "ts": said["ts"]})
    assert call.path == "/chat.postMessage"
    ts = f"{next(ticks)}.000247"
    return Answer(body={"ok": True, "channel": ROOM_ID, "ts": ts, "message": {}})


def check_blocks(blocks: list[dict[str, Any]]) -> None:
    """The limits of Block Kit's reference."""
    assert 0 < len(blocks) <= 50
    for block in blocks:
        assert block["type"] in {"header", "section"}, "nothing that decides"
        limit = 150 if block["type"] == "header" else 3000
        if "text" in block:
            assert 0 < len(block["text"]["text"]) <= limit
        for one in block.get("fields", []):
            assert 0 < len(one["text"]) <= 2000
        assert len(block.get("fields", [])) <= 10


@pytest.fixture
def api(settings: Any) -> Iterator[Api]:
    slack._look_up_member.cache_clear()
    with running(slack_rules) as found:
        changed = {
            "slack_bot_token": TOKEN,
            "slack_channel": ROOM,
            "slack_api_url": found.url,
            "http_timeout": 1,
        }
        settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
        yield found


def test_a_request_is_one_thread_whose_first_message_shows_the_outcome(
    gate: Gate, api: Api
) -> None:
    activate_routes(gate, {"to": ["slack"]})
    request = propose(gate.agent).request
    drain("request.opened")
    decide(request, gate.rita, "escalate")
    drain("request.escalated")
    request.refresh_from_db()
    decide(request, gate.sue, "reject")
    drain("request.settled")
    first, reply, outcome = api.calls
    opened = Notice.objects.get(kind="opened")
    room, _, ts = opened.message_id.partition("/")
    assert (first.path, first.json["channel"]) == ("/chat.postMessage", ROOM)
    assert request.pk in str(first.json["blocks"])
    assert (reply.json["thread_ts"], reply.json["channel"]) == (ts, room)
    assert reply.json["reply_broadcast"]
    assert (outcome.path, outcome.json["ts"]) == ("/chat.update", ts)
    assert outcome.json["text"].startswith("Resolved, rejected: pay")
    assert not Notice.objects.exclude(person=None, attempts=1).exists()


def test_a_critical_request_mentions_who_is_on_call(gate: Gate, api: Api) -> None:
    chooses(gate.sue, on_call=True)
    chooses(gate.sam, on_call=True)  # has no account there
    notice = planned(gate, risk=Risk.CRITICAL)
    assert delivery.deliver_notice(notice)
    said = str(api.calls[-1].json["blocks"])
    assert "<@U02SUE>" in said
    assert "U02RITA" not in said
    chooses(gate.sue)
    chooses(gate.sam)
    assert delivery.deliver_notice(planned(gate, risk=Risk.CRITICAL))
    said = str(api.calls[-1].json["blocks"])
    assert "<@U02RITA>" in said
    assert "<@U02SUE>" in said


def planned(gate: Gate, risk: Risk = Risk.HIGH) -> Notice:
    request = propose(gate.agent, customer=f"C-{next(ticks)}").request
    ApprovalRequest.objects.filter(pk=request.pk).update(risk=risk)
    request.refresh_from_db()
    now, about = clock.now(), {"request": request, "version": request.version}
    when = {"at": now, "due_at": now}
    return Notice.objects.create(kind="opened", channel="slack", **about, **when)


LIMITED = Answer(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": "37"})
NO_ROOM = Answer(body={"ok": False, "error": "channel_not_found"})


@pytest.mark.parametrize(
    ("trouble", "error", "seconds"),
    [
        (LIMITED, "Slack: too many messages", 37),
        (Answer(503), "Slack: status 503", 5),
        (Answer(hangs=True), "Slack: sent, but no complete answer", 5),
        (Answer(body=b"<html>"), "Slack: status 200 without an answer of Slack's", 5),
        (NO_ROOM, "Slack: channel_not_found", None),
    ],
)
def test_a_trouble_is_recorded_and_the_message_sent_again(
    gate: Gate, api: Api, trouble: Answer, error: str, seconds: int | None
) -> None:
    api.troubles.append(trouble)
    notice = planned(gate)
    assert not delivery.deliver_notice(notice)
    notice.refresh_from_db()
    assert notice.error == error
    if seconds is None:
        assert notice.let_go == "undeliverable"
        return
    wait = notice.due_at - clock.now()
    assert timedelta(seconds=seconds - 4) < wait <= timedelta(seconds=seconds)
    assert delivery.deliver_notice(notice)


def test_nothing_that_a_message_says_is_obeyed() -> None:
    hostile = "<!channel> & <http://evil.example|here>"
    summary = MessageSummary(hostile, hostile, hostile, [("Tool", hostile)], "l", "r")
    for block in slack.build_blocks(summary, []):
        for text in [block.get("text"), *block.get("fields", [])]:
            marked = text is not None and text["type"] == "mrkdwn"
            assert not marked or "<!" not in text["text"]
            assert not marked or "<http://evil" not in text["text"]
