"""A Haystack agent whose tool waits for people without a process that waits.

    python haystack_agent.py start   # proposes, and ends
    python haystack_agent.py resume  # after people decided

It needs `pip install "counterseal-client[haystack]"`. To stay runnable without a
model's key, the model is a script: it asks for one note."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.haystack import GateHook, RunPaused, resume_agent

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


@component
class ScriptedModel:
    """Stands for a chat generator: one tool call first, then its last words."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        calls = [ToolCall("send_note", NOTE, id="call_1")]
        reply = ChatMessage.from_assistant("Ann waits for news.", tool_calls=calls)
        if messages[-1].tool_call_results:
            reply = ChatMessage.from_assistant("I told Ann.")
        return {"replies": [reply]}


def build_agent(gate: Gate) -> Agent:
    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    hook = GateHook([send_note])
    return Agent(
        chat_generator=ScriptedModel(),
        tools=hook.tools,
        hooks={"before_run": [hook], "before_tool": [hook]},
    )


def main(
    action: str, thread: str = "order_78291", file: str = "haystack_agent.json"
) -> None:
    with Gate() as gate:
        agent = build_agent(gate)
        try:
            if action == "start":
                message = ChatMessage.from_user("Tell Ann.")
                context = {"thread": thread}
                result = agent.run(messages=[message], hook_context=context)
            else:
                kept = RunPaused.from_dict(json.loads(Path(file).read_text()))
                resumed = resume_agent(agent, kept, gate, wait_seconds=30)
                if resumed is None:
                    sys.exit("Nobody has decided yet.")
                result = resumed
        except RunPaused as paused:
            Path(file).write_text(json.dumps(paused.to_dict()))
            for waiting in paused.waiting:
                sys.stdout.write(f"Waits for people: {waiting['url']}\n")
        else:
            sys.stdout.write(f"{result['last_message'].text}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
