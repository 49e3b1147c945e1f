"""A server at its address: how one request of a client reaches it, and how its answers
are read."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

import httpx2
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PARAM_HEADER_PREFIX,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)

from .results import Json, RemoteError
from .tool_list import Tool

THREAD_HEADER = "counterseal-thread"
"""By which a client may name its run at the gate."""
SESSION_HEADER = "mcp-session-id"
LARGEST_EVENT = 64 * 1024 * 1024
"""Bytes of one message of the server."""
INTERNAL_ERROR = -32603

NOT_FORWARDED = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        THREAD_HEADER,
    }
)
"""Headers that belong to one connection, in lower case, or that the proxy writes."""

Relay = Callable[[Json], Awaitable[None]]


def select_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that pass through, in either direction."""
    return {
        name.lower(): value
        for name, value in headers.items()
        if name.lower() not in NOT_FORWARDED
    }


@dataclass(slots=True)
class HttpUpstream:
    """The server at its address, for one request of a client. What the server sends
    before its answer goes to `relay`."""

    http: httpx2.AsyncClient
    url: str
    headers: Mapping[str, str]
    relay: Relay | None = None

    async def send_request(
        self, method: str, params: Json, tool: Tool | None = None
    ) -> Json:
        """The server's result. Raises RemoteError; OSError when there is no answer."""
        name = f"counterseal-{uuid.uuid4().hex}"
        body = {"jsonrpc": "2.0", "id": name, "method": method, "params": params}
        headers = build_headers(self.headers, method, params, tool)
        relay = self.relay if method == "tools/call" else None
        try:
            async with self.http.stream(
                "POST", self.url, content=json.dumps(body), headers=headers
            ) as response:
                answer = await self._read_answer(response, name, relay)
        except httpx2.TransportError as error:
            text = str(error) or type(error).__name__
            raise ConnectionError(f"the MCP server: {text}") from error
        refusal = answer.get("error")
        if isinstance(refusal, dict):
            code = refusal.get("code")
            raise RemoteError(
                code if isinstance(code, int) else INTERNAL_ERROR,
                str(refusal.get("message") or ""),
                refusal.get("data"),
            )
        result = answer.get("result")
        return result if isinstance(result, dict) else {}

    async def _read_answer(
        self, response: httpx2.Response, name: str, relay: Relay | None
    ) -> Json:
        async for message in read_messages(response):
            if message.get("id") == name and "method" not in message:
                return message
            if message.get("id") is None and "error" in message:
                return message
            if relay is not None and "method" in message:
                await relay(message)
        raise ConnectionError(
            f"the MCP server answered {response.status_code} without a result"
        )


def build_headers(
    headers: Mapping[str, str], method: str, params: Json, tool: Tool | None
) -> dict[str, str]:
    """The client's headers for another body: those that repeat parts of it are written
    again, for a reviewer may have changed the arguments."""
    prefix = MCP_PARAM_HEADER_PREFIX.lower()
    kept = {
        name: value
        for name, value in select_headers(headers).items()
        if name != MCP_NAME_HEADER and not name.startswith(prefix)
    }
    kept["content-type"] = "application/json"
    if MCP_METHOD_HEADER not in kept:
        return kept
    kept[MCP_METHOD_HEADER] = method
    if tool is None:
        return kept
    kept[MCP_NAME_HEADER] = encode_header_value(str(tool["name"]))
    schema = tool.get("inputSchema")
    if find_invalid_x_mcp_header(schema) is None:
        kept |= mcp_param_headers(x_mcp_header_map(schema), params["arguments"])
    return kept


async def read_messages(response: httpx2.Response) -> AsyncIterator[Json]:
    """The messages of an answer, whether it is one JSON text or a stream of events.
    What is no message is left out."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        text = (await response.aread()).decode("utf-8", "replace")
        if (message := parse_message(text)) is not None:
            yield message
        return
    async for event in httpx2.EventSource(response, max_event_size=LARGEST_EVENT):
        if (message := parse_message(event.data)) is not None:
            yield message


def parse_message(text: str) -> Json | None:
    """One message of JSON-RPC, None for anything else."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None
