"""A deep agent whose tool waits for people without a process that waits.

    python deepagents_agent.py start   # proposes, and ends
    python deepagents_agent.py resume  # after people decided

It needs `pip install "counterseal-client[deepagents]"`. To stay runnable without a
model's key, the model is a script: it asks for one note."""

from __future__ import annotations

import os
import sqlite3
import sys
from typing import Any

os.environ["LANGSMITH_TRACING"] = "false"

from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.sqlite import SqliteSaver

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.deepagents import GateMiddleware, gate_subagents
from counterseal_client.adapters.langgraph import resume_graph

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


class ScriptedModel(BaseChatModel):
    """Stands for a chat model: one tool call first, then its last words."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> ScriptedModel:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        call = {"id": "call_1", "name": "send_note", "args": NOTE, "type": "tool_call"}
        message = AIMessage("Ann waits for news.", tool_calls=[call])
        if isinstance(messages[-1], ToolMessage):
            message = AIMessage("I told Ann.")
        return ChatResult(generations=[ChatGeneration(message=message)])


def send_note(to: str, text: str) -> str:
    """Send a note to a person."""
    key = get_claim().idempotency_key  # for the service that sends it
    sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
    return f"sent to {to}"


def main(
    action: str, thread: str = "order_78291", file: str = "deepagents_agent.sqlite3"
) -> None:
    config: Any = {"configurable": {"thread_id": thread}}
    with Gate() as gate:
        gated = GateMiddleware(gate, ["send_note", "write_file", "edit_file"])
        store = sqlite3.connect(file, check_same_thread=False)
        agent = create_deep_agent(
            ScriptedModel(),
            tools=[send_note],
            middleware=[gated],
            subagents=gate_subagents([], gated),
            checkpointer=SqliteSaver(store),
        )
        if action == "start":
            agent.invoke({"messages": [HumanMessage("Tell Ann.")]}, config)
        else:
            resume_graph(agent, config, gate, wait_seconds=30)
        for waiting in agent.get_state(config).interrupts:
            sys.stdout.write(f"Waits for people: {waiting.value['url']}\n")
        sys.stdout.write(f"{agent.get_state(config).values['messages'][-1].content}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
