"""An older agent of LangChain whose tool waits for people without a process that waits.

    python langchain_classic_agent.py start   # proposes, and ends
    python langchain_classic_agent.py resume  # after people decided

It needs `pip install "counterseal-client[langchain-classic]"`. To stay runnable without
a model's key, the model is a script: it asks for one note."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from langchain_classic.agents import create_tool_calling_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.langchain_classic import (
    GateExecutor,
    StoredRun,
    build_tool,
    resume_run,
    start_run,
)

NOTE = {"to": "ann", "text": "Your parcel is on its way."}
CALL = AIMessage("", tool_calls=[{"name": "send_note", "args": NOTE, "id": "call_1"}])
PROMPT = ChatPromptTemplate.from_messages(
    [("human", "{input}"), ("placeholder", "{agent_scratchpad}")]
)


class ScriptedModel(FakeMessagesListChatModel):
    """Stands for a model: one tool call first, then its last words."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def main(
    action: str, thread: str = "order_78291", file: str = "langchain_classic_agent.json"
) -> None:
    with Gate() as gate:

        @gate.tool
        def send_note(to: str, text: str) -> dict[str, str]:
            """Send a note to a person."""
            key = get_claim().idempotency_key  # for the service that sends it
            sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
            return {"sent": to}

        said = [CALL] if action == "start" else [AIMessage("I told Ann.")]
        model = ScriptedModel(responses=said)
        tools = [build_tool(send_note)]
        agent = create_tool_calling_agent(model, tools, PROMPT)
        executor = GateExecutor(agent=agent, tools=tools)
        if action == "start":
            first = start_run({"input": "Tell Ann about her parcel."}, thread=thread)
            run = executor.continue_run(first)
        else:
            stored = StoredRun.from_dict(json.loads(Path(file).read_text()))
            resumed = resume_run(executor, stored, gate, wait_seconds=30)
            if resumed is None:
                sys.exit("Nobody has decided yet.")
            run = resumed
        Path(file).write_text(json.dumps(run.to_dict()))
        for waiting in run.waiting:
            sys.stdout.write(f"Waits for people: {waiting['url']}\n")
        if run.output:
            sys.stdout.write(f"{run.output['output']}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
