"""An AutoGen assistant whose tool waits for people without a process that waits.

    python autogen_agent.py start   # proposes, and ends
    python autogen_agent.py resume  # after people decided

It needs `pip install "counterseal-client[autogen]"`. To stay runnable without a model's
key, the model is a script: it asks for one note.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, RequestUsage

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.autogen import GateTools, RunPaused, resume_agent

NOTE = {"to": "ann", "text": "Your parcel is on its way."}
USAGE = RequestUsage(prompt_tokens=0, completion_tokens=0)


class ScriptedModel(ChatCompletionClient):
    """Stands for a model's client: one tool call first, then its last words."""

    async def create(self, messages: Any, **_: Any) -> CreateResult:
        content: Any = [FunctionCall("call_1", json.dumps(NOTE), "send_note")]
        if messages[-1].type == "FunctionExecutionResultMessage":
            content = "I told Ann."
        return CreateResult(
            finish_reason="stop", content=content, usage=USAGE, cached=False
        )

    def create_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        """There is nothing to close."""

    def actual_usage(self) -> RequestUsage:
        return USAGE

    def total_usage(self) -> RequestUsage:
        return USAGE

    def count_tokens(self, *_: Any, **__: Any) -> int:
        return 0

    def remaining_tokens(self, *_: Any, **__: Any) -> int:
        return 1000

    @property
    def capabilities(self) -> Any:
        return self.model_info

    @property
    def model_info(self) -> Any:
        return {"vision": False, "function_calling": True, "family": "unknown"}


async def run_agent(action: str, gate: Gate, thread: str, file: Path) -> None:
    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    tools = GateTools([send_note], thread=thread)
    model = tools.watch_model(ScriptedModel())
    agent = AssistantAgent(
        "post", model, workbench=[tools.workbench], max_tool_iterations=5
    )
    try:
        if action == "start":
            result = await agent.run(task="Tell Ann.")
        else:
            kept = json.loads(file.read_text())
            await agent.load_state(kept["state"])
            paused = RunPaused.from_dict(kept["paused"])
            result = await resume_agent(agent, paused, tools, gate, wait_seconds=30)
            if result is None:
                sys.exit("Nobody has decided yet.")
    except RunPaused as paused:
        state = dict(await agent.save_state())
        file.write_text(json.dumps({"state": state, "paused": paused.to_dict()}))
        for waiting in paused.waiting:
            sys.stdout.write(f"Waits for people: {waiting['url']}\n")
    else:
        sys.stdout.write(f"{result.messages[-1].to_text()}\n")


def main(
    action: str, thread: str = "order_78291", file: str = "autogen_agent.json"
) -> None:
    with Gate() as gate:
        asyncio.run(run_agent(action, gate, thread, Path(file)))


if __name__ == "__main__":
    main(*sys.argv[1:])
