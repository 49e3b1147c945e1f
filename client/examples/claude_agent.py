"""An agent of the Claude Agent SDK whose tool waits for people without a process that
waits.

    python claude_agent.py start   # proposes, and ends
    python claude_agent.py resume  # after people decided

It needs `pip install "counterseal-client[claude-agent-sdk]" counterseal-conformance`.
To stay runnable without a model's key, Claude Code talks to a server of the conformance
kit in this program, which asks for one note. Leave the server and `environment` out to
use Claude."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.claude_agent import (
    GateServer,
    PausedSession,
    resume_session,
)
from counterseal_conformance.messages_server import build_stream, serve_messages

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


class ScriptedModel:
    """Stands for Claude: one tool call first, then its last words."""

    def build_events(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        if "tool_result" in json.dumps(asked["messages"][-1]["content"]):
            return build_stream(asked, "I told Ann.", [])
        call = ("call_1", "mcp__counterseal__send_note", NOTE)
        return build_stream(asked, "Ann waits for news.", [call])


async def show_run(
    messages: AsyncIterator[Any], server: GateServer, file: Path
) -> None:
    async for message in messages:
        if isinstance(message, ResultMessage):
            sys.stdout.write(f"{message.result or message.stop_reason}\n")
    if server.paused is not None:
        file.write_text(json.dumps(server.paused.to_dict()))
        for waiting in server.paused.waiting:
            sys.stdout.write(f"Waits for people: {waiting['url']}\n")


def main(
    action: str, thread: str = "order_78291", file: str = "claude_agent.json"
) -> None:
    with Gate() as gate, serve_messages(ScriptedModel()) as model:

        @gate.tool
        def send_note(to: str, text: str) -> dict[str, str]:
            """Send a note to a person."""
            key = get_claim().idempotency_key  # for the service that sends it
            sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
            return {"sent": to}

        environment = {
            "ANTHROPIC_BASE_URL": model,
            "ANTHROPIC_API_KEY": "sk-ant-scripted",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "NO_PROXY": "127.0.0.1",
        }
        options = ClaudeAgentOptions(tools=[], setting_sources=[], env=environment)
        server = GateServer([send_note], thread=thread)
        if action == "start":
            messages = query(prompt="Tell Ann.", options=server.add_to(options))
        else:
            paused = PausedSession.from_dict(json.loads(Path(file).read_text()))
            messages = resume_session(paused, server, options, gate, wait_seconds=30)
        asyncio.run(show_run(messages, server, Path(file)))


if __name__ == "__main__":
    main(*sys.argv[1:])
