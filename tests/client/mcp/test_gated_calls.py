from __future__ import annotations

import pytest

from counterseal_client import InvalidArguments
from counterseal_client.mcp.gated_calls import (
    REMEMBERED_REQUESTS,
    CallNames,
    RequestedCall,
    build_session_thread,
)


def asked(
    request_id: int | None = None, *, to: str = "ann", session: str = "s"
) -> RequestedCall:
    return RequestedCall("send_note", {"to": to}, "t", session, request_id)


def test_equal_calls_are_one_until_the_end_is_delivered() -> None:
    names = CallNames()
    first = names.name_call(asked(1))
    assert names.name_call(asked(2)) == first
    assert names.name_call(asked(3, to="bob")).call_id != first.call_id
    names.settle_call(first)
    second = names.name_call(asked(4))
    assert second.call_id != first.call_id
    names.settle_call(first)  # late: the second has not ended
    assert names.name_call(asked(5)) == second


def test_a_repeated_request_is_the_call_that_it_was() -> None:
    names = CallNames()
    first = names.name_call(asked(1))
    names.settle_call(first)
    assert names.name_call(asked(1)) == first
    assert names.name_call(asked(1, session="other")) != first


def test_an_id_for_another_call_is_refused() -> None:
    names = CallNames()
    names.name_call(asked(1))
    with pytest.raises(InvalidArguments, match="used it for another call"):
        names.name_call(asked(1, to="eve"))


def test_without_a_session_an_id_says_nothing() -> None:
    names = CallNames()
    first = names.name_call(asked(1, session=""))
    names.settle_call(first)
    assert names.name_call(asked(1, session="")) != first
    names.name_call(asked(1, to="eve", session=""))


def test_the_oldest_requests_are_forgotten() -> None:
    names = CallNames()
    for number in range(REMEMBERED_REQUESTS + 1):
        names.name_call(asked(number))
    names.name_call(asked(0, to="eve"))


def test_a_new_process_names_a_call_as_the_one_before_it() -> None:
    assert CallNames().name_call(asked(1)) == CallNames().name_call(asked(9))


def test_a_sessions_id_is_not_shown() -> None:
    thread = build_session_thread("secret-session")
    assert thread.startswith("mcp-")
    assert "secret" not in thread
