"""A tool calling agent of smolagents whose tool waits for people without a process that
waits.

    python smolagents_agent.py start   # proposes, and ends
    python smolagents_agent.py resume  # after people decided

It needs `pip install "counterseal-client[smolagents]"`. To stay runnable without a
model's key, the model is a script: it asks for one note."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from smolagents import LogLevel, Model
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
)

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.smolagents import GateAgent, RunPaused, resume_agent

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


class ScriptedModel(Model):
    """Stands for a model: one tool call first, then its last words."""

    def generate(self, messages: list[ChatMessage], **_: Any) -> ChatMessage:
        name, arguments = "send_note", NOTE
        if messages[-1].role == MessageRole.TOOL_RESPONSE:
            name, arguments = "final_answer", {"answer": "I told Ann."}
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        call = ChatMessageToolCall(function=function, id="call_1", type="function")
        return ChatMessage(role=MessageRole.ASSISTANT, tool_calls=[call])


def main(
    action: str, thread: str = "order_78291", file: str = "smolagents_agent.json"
) -> None:
    with Gate() as gate:

        @gate.tool
        def send_note(to: str, text: str) -> dict[str, str]:
            """Send a note to a person."""
            key = get_claim().idempotency_key  # for the service that sends it
            sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
            return {"sent": to}

        agent = GateAgent(
            [send_note],
            thread=thread,
            model=ScriptedModel(),
            verbosity_level=LogLevel.OFF,
        )
        try:
            if action == "start":
                answer = agent.run("Tell Ann.")
            else:
                paused = RunPaused.from_dict(json.loads(Path(file).read_text()))
                answer = resume_agent(agent, paused, gate, wait_seconds=30)
        except RunPaused as paused:
            Path(file).write_text(json.dumps(paused.to_dict()))
            for waiting in paused.waiting:
                sys.stdout.write(f"Waits for people: {waiting['url']}\n")
        else:
            sys.stdout.write(f"{answer or 'Nobody has decided yet.'}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
