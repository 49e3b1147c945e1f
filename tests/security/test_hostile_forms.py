"""What no field of a form or of a body may be, sent in every field of every route that
takes one: an answer that says so, never an error of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import transaction

from tests.security import routes
from tests.security.routes import ROUTES
from tests.security.world import Who, World

HOSTILE = {
    "nul": "a\0b",
    "digits": "9" * 30,
    "large": 2**53 - 1,
    "surrogate": "a\ud800b",
    "long": "x" * 5000,
    "time": "0001-01-01T00:00",
}
# What views and forms read besides the fields that a working write sends.
FIELDS = (
    "action_hash", "answer", "beat", "channel", "do", "document", "expect", "filters",
    "format", "from", "happened", "hold", "item", "leaning", "leaving", "minutes",
    "mode", "name", "narrow", "near_miss", "not_after", "not_before", "page",
    "pause", "query", "reason", "reason_code", "row", "seen", "shown", "step", "sure",
    "target", "to", "usual", "verdict", "version", "weight", "written", "zone",
)  # fmt: skip


@contextmanager
def _undone() -> Iterator[None]:
    """Takes back what a call wrote, for the next one."""
    block = transaction.atomic()
    block._from_testcase = True  # type: ignore[attr-defined]  # operations begin in it
    with block:
        yield
        transaction.set_rollback(True)


def _list_calls(world: World) -> Iterator[tuple[str, Who]]:
    for name, row in sorted(ROUTES.items()):
        if row.post:
            yield name, sorted(row.post, key=lambda who: who.name)[0]


def _replace_each(body: Any, text: object) -> Iterator[Any]:
    """The body with the text in place of one value, and of one key, at a time."""
    parts = body.items() if isinstance(body, dict) else enumerate(body)
    for key, value in parts:
        if isinstance(value, dict | list) and value:
            inner = _replace_each(value, text)
        else:
            inner = iter([text])
        for one in inner:
            copy = body.copy()
            copy[key] = one
            yield copy


def _post(world: World, who: Who, name: str, path: str, body: Any) -> Any:
    client = world.clients[who]
    if name.startswith("api:"):
        headers = {"Idempotency-Key": "k-1"}
        data, kind = json.dumps(body).encode(), "application/json"
        return client.post(path, data, content_type=kind, headers=headers)
    data = urlencode(body, doseq=True, errors="surrogatepass").encode()
    kind = "application/x-www-form-urlencoded"
    return client.post(path, data, content_type=kind)


def _bodies(world: World, name: str, text: object) -> Iterator[Any]:
    working = ROUTES[name].body(world)
    yield from _replace_each(working, text)
    if name.startswith("api:"):
        return
    yield {**dict.fromkeys(FIELDS, text), **dict.fromkeys(working, text)}
    yield {**dict.fromkeys(FIELDS, text), **working}


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_field_of_any_post_breaks_a_page(world: World, kind: str) -> None:
    text = HOSTILE[kind]
    broken = set()
    for name, who in _list_calls(world):
        world.caller = who
        path = routes.address(name, world.ids)
        for body in _bodies(world, name, text):
            with _undone():
                status = _post(world, who, name, path, body).status_code
            if status >= 500 or (kind == "nul" and status < 400):
                differing = [key for key, value in body.items() if value == text]
                broken.add((name, status, tuple(differing)[:3]))
    assert not broken
