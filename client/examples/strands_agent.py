"""A Strands agent whose tool waits for people without a process that waits.

    python strands_agent.py start   # proposes, and ends
    python strands_agent.py resume  # after people decided

It needs `pip install "counterseal-client[strands]"`. To stay runnable without a model's
key, the model is a script: it asks for one note.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from strands import Agent
from strands.models import Model
from strands.session.file_session_manager import FileSessionManager

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.strands import (
    build_tool,
    list_interrupts,
    resume_agent,
)

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


class ScriptedModel(Model):
    """Stands for a model: one tool call first, then its last words."""

    def update_config(self, **_: Any) -> None:
        """There is nothing to configure."""

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        answered = any("toolResult" in block for block in messages[-1]["content"])
        yield {"messageStart": {"role": "assistant"}}
        if answered:
            yield {"contentBlockDelta": {"delta": {"text": "I told Ann."}}}
        else:
            use = {"name": "send_note", "toolUseId": "call_1"}
            delta = {"toolUse": {"input": json.dumps(NOTE)}}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if answered else "tool_use"}}


def main(
    action: str, thread: str = "order_78291", folder: str = "strands_agent_runs"
) -> None:
    with Gate() as gate:

        @gate.tool
        def send_note(to: str, text: str) -> dict[str, str]:
            """Send a note to a person."""
            key = get_claim().idempotency_key  # for the service that sends it
            sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
            return {"sent": to}

        agent = Agent(
            ScriptedModel(),
            tools=[build_tool(send_note, thread=thread)],
            agent_id="post",
            session_manager=FileSessionManager(thread, storage_dir=folder),
            callback_handler=None,
        )
        if action == "start":
            agent("Tell Ann.")
        else:
            resume_agent(agent, gate, wait_seconds=30)
        for interrupt in list_interrupts(agent).values():
            sys.stdout.write(f"Waits for people: {interrupt.reason['url']}\n")
        sys.stdout.write(f"{agent.messages[-1]['content'][0].get('text', '')}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
