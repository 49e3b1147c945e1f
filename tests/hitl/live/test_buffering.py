from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from hitl.live import buffering
from hitl.live.buffering import (
    BODY_LIMIT,
    SMALL_BODY,
    BodyMemory,
    BodyReservation,
    BufferedResponse,
    ClientDisconnected,
    Message,
    read_body,
)
from tests import loops


def read(chunks: list[Message], length: int | None = None) -> Any:
    """Read a body that arrives in these messages."""
    rest = iter(chunks)

    async def receive() -> Message:
        for message in rest:
            return message
        await asyncio.sleep(60)
        raise AssertionError

    declared = [] if length is None else [(b"content-length", b"%d" % length)]
    scope = {"method": "POST", "path": "/api/v1/ä", "headers": declared}
    return loops.run(read_body(scope, receive))


def chunk(body: bytes, *, more: bool) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_in_pieces_is_whole() -> None:
    assert read([chunk(b"ab", more=True), chunk(b"c", more=False)]) == b"abc"


def test_a_body_of_exactly_the_limit_is_taken() -> None:
    body = b"x" * BODY_LIMIT
    assert read([chunk(body, more=False)], BODY_LIMIT) == body


@pytest.mark.parametrize("length", [None, BODY_LIMIT + 1])
def test_a_larger_body_is_refused_whatever_was_declared(length: int | None) -> None:
    chunks = [chunk(b"x" * BODY_LIMIT, more=True), chunk(b"x", more=False)]
    answer = read(chunks, length)
    assert isinstance(answer, BufferedResponse)
    assert answer.status == 413
    assert json.loads(answer.body)["code"] == "too_large"
    assert answer.header(b"content-type") == "application/problem+json"
    assert answer.header(b"content-length") == str(len(answer.body))


def test_a_body_that_stops_coming_is_refused(settings: Settings) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"body_timeout": 0.05}
    )
    assert read([chunk(b"x", more=True)]).status == 408


MIB = 1024 * 1024


def test_whoever_fills_the_room_leaves_it_to_the_others() -> None:
    async def story() -> None:
        room = BodyMemory(most=3 * MIB, each=MIB)
        with room.of("loud") as first, room.of("loud") as second:
            assert await upload(first, MIB) == b"x" * MIB
            refused = await upload(second, MIB)
            assert isinstance(refused, BufferedResponse)
            assert refused.status == 429
            assert json.loads(refused.body)["code"] == "too_many"
            assert refused.header(b"connection") == "close"
            small = await upload(second, SMALL_BODY)
            assert small == b"x" * SMALL_BODY, "as a sign-in is"
            with room.of("quiet") as other:
                assert await upload(other, MIB) == b"x" * MIB
        with room.of("loud") as third:
            assert await upload(third, MIB) == b"x" * MIB, "who has gone makes room"
        assert not room._taken

    loops.run(story())


def test_all_together_have_only_so_much_room() -> None:
    async def story() -> None:
        room = BodyMemory(most=2 * MIB, each=MIB)
        with contextlib.ExitStack() as stack:
            said = [
                await upload(stack.enter_context(room.of(f"caller-{n}")), MIB)
                for n in range(4)
            ]
        refused = [isinstance(one, BufferedResponse) for one in said]
        assert refused == [False, False, True, True]

    loops.run(story())


async def upload(share: BodyReservation, size: int) -> bytes | BufferedResponse:
    pieces = iter([chunk(b"x" * (size // 4), more=n < 3) for n in range(4)])

    async def receive() -> Message:
        return next(pieces)

    scope = {"method": "POST", "path": "/api/v1/proposals", "headers": []}
    return await read_body(scope, receive, share)


def test_what_is_refused_early_has_the_headers_of_every_answer() -> None:
    own = {"content-type", "content-length", "x-request-id", "cache-control"}
    own |= {"vary", "expires"}  # of a page that looks at a cookie and is never kept
    own |= {"counterseal-caller"}  # taken off before it leaves
    given = Client().get("/livez").items()
    usual = {n.lower(): value for n, value in given if n.lower() not in own}
    answer = read([chunk(b"", more=False)], BODY_LIMIT + 1)
    found = {n.decode(): v.decode() for n, v in answer.headers}
    assert usual.items() <= found.items()
    assert "content-security-policy" in usual
    assert found["cache-control"] == "private, no-store"
    assert found["connection"] == "close"
    assert len(found["x-request-id"]) == 32
    assert len(found) == len(answer.headers), "none stands twice"


def test_what_is_refused_early_over_https_says_so_to_the_browser(
    settings: Settings,
) -> None:
    settings.SECURE_SSL_REDIRECT, settings.SECURE_HSTS_SECONDS = True, 60
    scope = {"method": "GET", "path": "/", "scheme": "https"}
    answer = buffering.build_refusal(scope, 429, "too_many", "Wait.", retry_after=3)
    assert answer.header(b"strict-transport-security") == "max-age=60"
    assert answer.header(b"retry-after") == "3"
    plain = buffering.build_refusal(
        {**scope, "scheme": "http"}, 413, "too_large", "Less."
    )
    assert (plain.status, plain.header(b"location")) == (413, "")


def test_a_client_that_leaves_in_the_middle_is_gone() -> None:
    with pytest.raises(ClientDisconnected):
        read([chunk(b"x", more=True), {"type": "http.disconnect"}])
