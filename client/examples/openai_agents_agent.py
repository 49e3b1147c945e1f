"""An agent of the OpenAI Agents SDK whose tool waits for people without a process that
waits.

    python openai_agents_agent.py start   # proposes, and ends
    python openai_agents_agent.py resume  # after people decided

It needs `pip install "counterseal-client[openai-agents]"`. To stay runnable without a
model's key, the model is a script: it asks for one note.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from agents import (  # type: ignore[attr-defined]
    Agent,
    Model,
    ModelResponse,
    Runner,
    RunState,
    Usage,
    set_tracing_disabled,
)
from counterseal_client import Gate, get_claim
from counterseal_client.adapters.openai_agents import (
    build_tool,
    find_proposal,
    resume_run,
)

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


class ScriptedModel(Model):  # type: ignore[misc]
    """Stands for a model: one tool call first, then its last words."""

    async def get_response(self, *_: Any, input: Any, **__: Any) -> Any:
        output: Any = ResponseFunctionToolCall(
            call_id="call_1",
            name="send_note",
            arguments=json.dumps(NOTE),
            type="function_call",
        )
        if any("output" in item for item in input):
            words = ResponseOutputText(
                text="I told Ann.", type="output_text", annotations=[]
            )
            output = ResponseOutputMessage(
                id="last",
                content=[words],
                role="assistant",
                status="completed",
                type="message",
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def build_agent(gate: Gate) -> Agent[Any]:
    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    return Agent("post", model=ScriptedModel(), tools=[build_tool(send_note)])


async def main(
    action: str, thread: str = "order_78291", file: str = "openai_agents_agent.json"
) -> None:
    set_tracing_disabled(True)
    with Gate() as gate:
        agent = build_agent(gate)
        if action == "start":
            context = {"thread_id": thread}
            result = await Runner.run(agent, "Tell Ann.", context=context)
        else:
            kept = json.loads(Path(file).read_text())
            state = await RunState.from_json(agent, kept)
            resumed = await resume_run(agent, state, gate, wait_seconds=30)
            if resumed is None:
                sys.exit("Nobody has decided yet.")
            result = resumed
        state = result.to_state()
        Path(file).write_text(json.dumps(state.to_json()))
        for item in state.get_interruptions():
            proposal = await find_proposal(item, state)
            if proposal and proposal.request:
                sys.stdout.write(f"Waits for people: {proposal.request.url}\n")
    if not result.interruptions:
        sys.stdout.write(f"{result.final_output}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
