"""The people's API through its flows, against the product."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from counterseal_client import InvalidAnswer
from counterseal_client.calls import Connection, HttpAnswer, encode_body
from counterseal_client.people import PeopleOperations

PEOPLE = PeopleOperations(Connection("https://gate.example.com/", "csp_token"))


def answer_flow(flow: Generator[Any, Any, Any], *bodies: dict[str, Any]) -> Any:
    """Run a flow on these answers; returns what it asked for and its value."""
    calls = [next(flow)]
    for body in bodies:
        try:
            calls.append(flow.send(HttpAnswer(200, {}, encode_body(body))))
        except StopIteration as end:
            return calls, end.value
    raise AssertionError("the flow asks for more")


def build_row(name: str) -> dict[str, Any]:
    return {"id": name, "title": "Pay", "version": 1, "action_hash": "sha256:00"}


def test_a_list_has_every_page() -> None:
    calls, found = answer_flow(
        PEOPLE.list_requests(),
        {"items": [build_row("r-1")], "next_cursor": "a b"},
        {"items": [build_row("r-2")], "next_cursor": None},
    )
    assert [row.id for row in found] == ["r-1", "r-2"]
    assert [call.url.rpartition("/v1")[2] for call in calls] == [
        "/requests",
        "/requests?cursor=a+b",
    ]
    assert calls[0].headers["Authorization"] == "Bearer csp_token"


def test_what_is_no_list_is_refused() -> None:
    with pytest.raises(InvalidAnswer):
        answer_flow(PEOPLE.list_requests(), {"items": [{"id": "r-1"}, 7]})


def test_an_id_cannot_leave_its_place_in_an_address() -> None:
    name = "r-1/../../x?y"
    calls, _ = answer_flow(PEOPLE.get_request(name), build_row(name))
    assert calls[0].url.endswith("/api/v1/requests/r-1%2F..%2F..%2Fx%3Fy")
    assert PEOPLE.build_page_url(name) == (
        "https://gate.example.com/requests/r-1%2F..%2F..%2Fx%3Fy/"
    )
