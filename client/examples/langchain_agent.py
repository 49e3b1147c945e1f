"""A LangChain agent whose tool waits for people without a process that waits.

    python langchain_agent.py start   # proposes, and ends
    python langchain_agent.py resume  # after people decided

It needs `pip install "counterseal-client[langchain]"`. To stay runnable without a
model's key, the model is a script: it asks for one note."""

from __future__ import annotations

import sqlite3
import sys
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.sqlite import SqliteSaver

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.langchain import resume_agent, review_by_gate
from counterseal_client.adapters.langgraph import Graph, build_tool

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


class ScriptedModel(BaseChatModel):
    """Stands for a chat model: one tool call first, then its last words."""

    _llm_type = "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **options: Any) -> ChatResult:
        answer = AIMessage("I told Ann.")
        if isinstance(messages[-1], HumanMessage):
            call = {"id": "call_1", "name": "send_note", "args": NOTE}
            answer = AIMessage("Ann waits for news.", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def build_agent(gate: Gate, file: str) -> Graph:
    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    store = sqlite3.connect(file, check_same_thread=False)
    reviews = {"send_note": review_by_gate(send_note)}
    return create_agent(
        ScriptedModel(),
        tools=[build_tool(send_note)],
        middleware=[HumanInTheLoopMiddleware(reviews, interrupt_mode="per_call")],
        checkpointer=SqliteSaver(store),
    )


def main(
    action: str, thread: str = "order_78291", file: str = "langchain_agent.sqlite3"
) -> None:
    config: Any = {"configurable": {"thread_id": thread}}
    with Gate() as gate:
        agent = build_agent(gate, file)
        if action == "start":
            agent.invoke({"messages": [HumanMessage("Tell Ann.")]}, config)
        else:
            resume_agent(agent, config, gate, wait_seconds=30)
        if agent.get_state(config).interrupts:
            sys.stdout.write("Waits for people.\n")
        sys.stdout.write(f"{agent.get_state(config).values['messages'][-1].content}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
