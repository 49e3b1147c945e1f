"""What no name, address or number may be, sent to every place that takes one: an
answer that says so, never an error of ours."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import pytest
from django.urls import NoReverseMatch, reverse
from pytest_django import Settings

from agents.models import Agent
from reviews import redaction
from reviews.tool_services import readers
from tests.agents.conftest import Caller
from tests.security import routes
from tests.security.routes import ROUTES
from tests.security.world import Who, World

NASTY = (
    "\0",
    "a\0b",
    "'; DROP TABLE x; --",
    "../../etc/passwd",
    "\u202e\U0001f600\u2028",
    "x" * 3000,
    "-1",
    "99999999999999999999",
    "\u0663",  # a digit, though not one of ours
    "1e400",
    "2020-13-45T99:99:99Z",
    "0001-01-01T00:00:00+23:59",
    "%s%n{{7*7}}${x}",
)
QUERIES = {
    "reviews:queue": ("q", "tool", "agent", "tab", "sort", "risk", "tier", "before"),
    "reviews:queue_fresh": ("since", "back"),
    "reviews:request_detail": ("from", "version"),
    "reviews:decide": ("arm",),
    "reviews:log": ("q", "kind", "agent", "before", "after", "actor", "digest"),
    "reviews:stop": ("agent", "thread", "tool"),
    "reviews:sign_in": ("next",),
    "api:list_requests": ("status", "agent", "tool", "limit"),
    "api:list_proposals": ("status", "thread", "cursor"),
    "api:get_proposal": ("wait",),
}


READERS = (
    Who.SUPERVISOR,
    Who.AGENT,
    Who.REVIEWER,
    Who.AUDITOR,
    Who.ADMINISTRATOR,
)


def _reader(name: str) -> Who:
    row = ROUTES[name]
    return next(who for who in READERS if who in row.get)


def _in_the_query(world: World, text: str) -> Iterator[tuple[str, str]]:
    for name, names in QUERIES.items():
        path = routes.address(name, world.ids).partition("?")[0]
        for one in names:
            yield name, f"{path}?{urlencode({one: text}, errors='replace')}"


def _in_the_address(text: str) -> Iterator[tuple[str, str]]:
    for name, row in ROUTES.items():
        if row.get and row.ids and not set(row.ids) & {"number"}:
            ids = dict.fromkeys(row.ids, text)
            with suppress(NoReverseMatch):  # not even an address
                yield name, reverse(name, kwargs=ids)


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_no_address_and_no_query_breaks_a_page(world: World, text: str) -> None:
    sent = [*_in_the_query(world, text), *_in_the_address(text)]
    for name, path in sent:
        response = world.clients[_reader(name)].get(path)
        assert response.status_code < 500, (name, path[:80])


def test_a_header_of_a_fragment_may_say_anything(world: World) -> None:
    client = world.clients[Who.REVIEWER]
    path = routes.address("reviews:live", world.ids)
    for tag in ("", "9999999999-x", '"1-pending"', "\u0663-x", "-.-", "x" * 5000):
        headers = {"If-None-Match": tag, "HX-Request": "true"}
        assert client.get(path, headers=headers).status_code in {200, 204, 286}


def test_a_form_may_say_anything(world: World) -> None:
    client = world.clients[Who.SUPERVISOR]
    for name in (
        "reviews:decide",
        "reviews:stop",
        "reviews:lift",
        "reviews:unknown_one",
    ):
        path = routes.address(name, world.ids)
        for text in NASTY:
            fields = ("verdict", "version", "action_hash", "reason_code", "reason")
            more = ("target", "mode", "happened", "arg.amount", "password")
            sent = dict.fromkeys((*fields, *more), text)
            assert client.post(path, sent).status_code < 500, (name, text[:40])


def _cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01|p-1",
        "2026-01-01T00:00:00+00:00|p-\0",
        "0001-01-01T00:00:00+23:59|p-1",
        "9999-12-31T23:59:59-23:59|p-1",
        "2026-01-01T00:00:00+00:00|' OR 1=1",
    ],
)
def test_a_forged_cursor_finds_no_others(world: World, text: str) -> None:
    client = world.clients[Who.OTHER_AGENT]
    response = client.get(f"/api/v1/proposals?cursor={_cursor(text)}")
    assert response.status_code in {200, 422}
    if response.status_code == 200:
        agents = {item["thread"] for item in response.json()["items"]}
        assert agents <= {"o-1"}


@pytest.fixture
def caller(world: World) -> Caller:
    key = world.clients[Who.AGENT].defaults["HTTP_AUTHORIZATION"].split()[1]
    return Caller(key, iter(range(1000)))


def proposing(caller: Caller, **more: Any) -> Any:
    """A body that only the server has checked."""
    body = {"thread": "t-1", "tool": "look", "args": {"q": "a"}, **more}
    key = f"n{next(caller.numbers)}"
    return caller.post("/proposals", body, **{"Idempotency-Key": key})


@pytest.mark.parametrize("name", [".", ".."])
def test_a_run_that_nobody_could_open_is_not_begun(caller: Caller, name: str) -> None:
    assert proposing(caller, thread=name).status_code == 422
    assert proposing(caller, thread=f"{name}a").status_code == 201


def test_a_tool_taken_away_is_not_revised(caller: Caller, world: World) -> None:
    Agent.objects.filter(slug="riley").update(tools=["look"])
    args = {"customer": "C-1", "amount": "1.00", "currency": "USD"}
    path = f"/proposals/{world.ids['proposal']}/revisions"
    response = caller.post(path, {"args": args}, **{"Idempotency-Key": "r"})
    assert response.status_code == 403
    assert response.json()["code"] == "tool_not_allowed"


@pytest.mark.parametrize(
    "checkpoint",
    [
        {"state": {"x": "y" * 70_000}},
        {"state": {str(n): [n] for n in range(9_000)}},
        {"summary": "x" * 20_001},
        {"blob": "A" * 800_000},
    ],
)
def test_a_checkpoint_has_a_size(caller: Caller, checkpoint: Any) -> None:
    assert proposing(caller, checkpoint=checkpoint).status_code in {413, 422}


def test_an_agent_over_its_caps_makes_no_service_work(
    caller: Caller, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"agent_rate_per_minute": 1}
    )
    proposing(caller)  # what it proposed before may be a minute ago
    monkeypatch.setattr(readers, "read_state", lambda *_, **__: asked.append("reader"))
    args = {"customer": "C-9", "amount": "1.00", "currency": "USD"}
    assert proposing(caller, tool="pay", args=args).status_code == 429
    assert asked == []


def test_the_words_around_a_proposal_have_a_size(caller: Caller) -> None:
    item = {"kind": "message", "text": "a\n" * 9_000}
    assert proposing(caller, evidence=[item] * 4).status_code == 201
    assert proposing(caller, evidence=[item] * 8).status_code == 413


def test_a_deep_state_is_refused(caller: Caller) -> None:
    deep = b'{"a":' * 40 + b"1" + b"}" * 40
    raw = b'{"thread":"t","tool":"look","args":{"q":"a"},"checkpoint":{"state":%s}}' % (
        deep
    )
    response = caller.post("/proposals", raw, **{"Idempotency-Key": "d"})
    assert (response.status_code, response.json()["code"]) == (400, "invalid_json")


@pytest.mark.parametrize("field", ["status", "id", "agent", "barred", "tier", "risk"])
def test_no_field_of_ours_is_set_from_outside(caller: Caller, field: str) -> None:
    response = proposing(caller, **{field: "x"})
    assert response.status_code == 422
    assert response.json()["errors"][0]["path"] == field


PUMPS = ("A.", "a.", "1", "1 ", "Aa ", "line1: 1", "a@b.", "password=", "0-", "Via-")


@pytest.mark.parametrize("unit", PUMPS)
def test_redaction_costs_in_proportion(unit: str) -> None:
    def cost(size: int) -> float:
        text = unit * (size // len(unit))
        return min(_seconds(text) for _ in range(3))

    small = max(cost(3_000), 0.001)
    assert cost(30_000) < 40 * small


def _seconds(text: str) -> float:
    start = time.process_time()
    redaction.redact_text(text, key=b"k" * 32)
    return time.process_time() - start
