"""A model that makes the given calls, one after the other, and keeps the results that
it would read. The server is that of the conformance kit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from counterseal_conformance import messages_server

ToolUse = tuple[str, dict[str, Any]]


@dataclass
class ScriptedModel:
    """The calls that the model makes, and what it read about each of them."""

    calls: Sequence[ToolUse]
    results: dict[str, str] = field(default_factory=dict)
    url: str = ""

    def build_events(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """The stream of one answer to `POST /v1/messages`."""
        for message in asked["messages"]:
            blocks = message["content"]
            for block in blocks if isinstance(blocks, list) else []:
                if block.get("type") == "tool_result":
                    self.results[block["tool_use_id"]] = json.dumps(block["content"])
        number = len(self.results)
        if not asked.get("tools") or number >= len(self.calls):
            return messages_server.build_stream(asked, "Done.", [])
        use = (f"toolu_{number + 1:04d}", *self.calls[number])
        return messages_server.build_stream(asked, "", [use])


@contextmanager
def running(calls: Sequence[ToolUse]) -> Iterator[ScriptedModel]:
    """The server on a free port of loopback."""
    model = ScriptedModel(calls)
    with messages_server.serve_messages(model) as model.url:
        yield model
