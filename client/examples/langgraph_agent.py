"""A LangGraph agent whose tool waits for people without a process that waits.

    python langgraph_agent.py start   # proposes, and ends
    python langgraph_agent.py resume  # after people decided

It needs `pip install "counterseal-client[langgraph]" langgraph-checkpoint-sqlite`. To
stay runnable without a model's key, the model is a script: it asks for one note."""

from __future__ import annotations

import sqlite3
import sys
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.langgraph import Graph, build_tool, resume_graph


def call_model(state: MessagesState) -> dict[str, Any]:
    """Stands for a chat model: one tool call first, then its last words."""
    if isinstance(state["messages"][-1], HumanMessage):
        args = {"to": "ann", "text": "Your parcel is on its way."}
        call = {"id": "call_1", "name": "send_note", "args": args, "type": "tool_call"}
        return {"messages": [AIMessage("Ann waits for news.", tool_calls=[call])]}
    return {"messages": [AIMessage("I told Ann.")]}


def build_graph(gate: Gate, file: str) -> Graph:
    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    graph = StateGraph(MessagesState)
    graph.add_node("model", call_model)
    graph.add_node("tools", ToolNode([build_tool(send_note)]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    store = sqlite3.connect(file, check_same_thread=False)
    return graph.compile(checkpointer=SqliteSaver(store))


def main(
    action: str, thread: str = "order_78291", file: str = "langgraph_agent.sqlite3"
) -> None:
    config: Any = {"configurable": {"thread_id": thread}}
    with Gate() as gate:
        graph = build_graph(gate, file)
        if action == "start":
            graph.invoke({"messages": [HumanMessage("Tell Ann.")]}, config)
        else:
            resume_graph(graph, config, gate, wait_seconds=30)
        for waiting in graph.get_state(config).interrupts:
            sys.stdout.write(f"Waits for people: {waiting.value['url']}\n")
        sys.stdout.write(f"{graph.get_state(config).values['messages'][-1].content}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
