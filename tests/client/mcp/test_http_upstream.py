from __future__ import annotations

from typing import Any

import pytest

from counterseal_client.mcp.http_upstream import (
    build_headers,
    parse_message,
    select_headers,
)

SCHEMA = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}
TOOL = {"name": "deploy", "inputSchema": SCHEMA}
SENT = {
    "Authorization": "Bearer client",
    "Host": "proxy",
    "Content-Length": "9",
    "Counterseal-Thread": "order_1",
    "Mcp-Session-Id": "s",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "deploy",
    "Mcp-Param-Region": "eu",
}


def test_headers_of_one_connection_stay_there() -> None:
    kept = select_headers(SENT)
    assert kept["authorization"] == "Bearer client"
    assert kept["mcp-session-id"] == "s"
    assert not {"host", "content-length", "counterseal-thread"} & set(kept)


@pytest.mark.parametrize(
    ("args", "region"), [({"region": "us"}, "us"), ({"region": "ü"}, "=?base64?w7w=?=")]
)
def test_headers_repeat_the_approved_arguments(
    args: dict[str, Any], region: str
) -> None:
    built = build_headers(SENT, "tools/call", {"arguments": args}, TOOL)
    assert built["Mcp-Param-Region"] == region
    assert "mcp-param-region" not in built
    assert built["mcp-name"] == "deploy"


def test_an_argument_that_a_reviewer_removed_has_no_header() -> None:
    built = build_headers(SENT, "tools/call", {"arguments": {}}, TOOL)
    assert not [name for name in built if name.lower().startswith("mcp-param")]


def test_another_request_has_its_own_method_and_no_name() -> None:
    built = build_headers(SENT, "tools/list", {}, None)
    assert built["mcp-method"] == "tools/list"
    assert "mcp-name" not in built
    legacy = {"Mcp-Session-Id": "s"}
    assert "mcp-method" not in build_headers(legacy, "tools/list", {}, None)


@pytest.mark.parametrize("text", ["", "[]", "[{}]", "1", "{", "[" * 100_000])
def test_what_is_no_single_message_is_none(text: str) -> None:
    assert parse_message(text) is None
    assert parse_message('{"id": 1}') == {"id": 1}
