"""A Pydantic AI agent whose tool waits for people without a process that waits.

    python pydantic_ai_agent.py start   # proposes, and ends
    python pydantic_ai_agent.py resume  # after people decided

It needs `pip install "counterseal-client[pydantic-ai]"`. To stay runnable without a
model's key, the model is a script: it asks for one note."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.conversation import ConversationTypeAdapter
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.pydantic_ai import build_tool, resume_agent


def call_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stands for a model: one tool call first, then its last words."""
    if len(messages) == 1:
        args = {"to": "ann", "text": "Your parcel is on its way."}
        call = ToolCallPart("send_note", args, "call_1")
        return ModelResponse(parts=[TextPart("Ann waits for news."), call])
    return ModelResponse(parts=[TextPart("I told Ann.")])


def build_agent(gate: Gate) -> Agent[None, Any]:
    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    return Agent(
        FunctionModel(call_model),
        output_type=[str, DeferredToolRequests],
        tools=[build_tool(send_note)],
    )


def main(
    action: str, thread: str = "order_78291", file: str = "pydantic_ai_agent.json"
) -> None:
    with Gate() as gate:
        agent = build_agent(gate)
        if action == "start":
            result = agent.run_sync("Tell Ann.", conversation_id=thread)
        else:
            kept = ConversationTypeAdapter.validate_json(Path(file).read_bytes())
            resumed = resume_agent(agent, kept, gate, wait_seconds=30)
            if resumed is None:
                sys.exit("Nobody has decided yet.")
            result = resumed
    Path(file).write_bytes(ConversationTypeAdapter.dump_json(result.conversation))
    if isinstance(result.output, DeferredToolRequests):
        for waiting in result.output.metadata.values():
            sys.stdout.write(f"Waits for people: {waiting['url']}\n")
    else:
        sys.stdout.write(f"{result.output}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
