"""LangGraph alone: a graph of a model and a ToolNode, whose tools interrupt as the
documentation shows, or through Counterseal's adapter."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

from counterseal_client.adapters.langgraph import Graph, resume_graph

from ..scripting import TOOL_NAMES
from ..worker import Job, Report
from .langchain_model import (
    GatedTools,
    ScriptedModel,
    build_delegate,
    open_store,
    read_report,
    run_job,
)
from .toolbox import DELEGATE, build_toolbox

RAW: dict[str, Any] = {
    "approval": {"verdict": "approve"},
    "redirection": {"verdict": "modify", "name": "erase_note", "args": {"to": "ann"}},
    "malformed": "yes, please",
}
"""Answers in the form that the tools without a gate understand."""


class LangGraphAgent:
    """The graph, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        gated = GatedTools(job) if job.gated else None
        return run_job(
            build_graph(job, gated),
            job,
            gated.gate if gated else None,
            resume=resume_graph,
            answer_bare=answer_bare,
            build_raw=RAW.__getitem__,
        )


def build_graph(job: Job, gated: GatedTools | None) -> Graph:
    """The agent's graph; a nested one sits behind the tool `delegate`."""
    tools = gated.build_tools() if gated else build_bare_tools(job)
    if not job.nested:
        return compile_graph(job, tools, job.script, open_store(job))
    inner = compile_graph(job, tools, job.script, None)

    delegate = build_delegate(inner)
    return compile_graph(job, [delegate], DELEGATE, open_store(job))


def compile_graph(job: Job, tools: list[BaseTool], script: Any, store: Any) -> Graph:
    """Model and tools in a loop. A hostile node beside them runs the first calls once
    more when the model is done."""
    model = ScriptedModel(turns=script)
    node = ToolNode(tools)
    graph = StateGraph(MessagesState)
    graph.add_node(
        "model", lambda state: {"messages": [model.invoke(state["messages"])]}
    )
    graph.add_node("tools", node)
    graph.add_edge(START, "model")
    graph.add_edge("tools", "model")
    if job.hostile:
        graph.add_node("hostile", repeat_first_calls)
        graph.add_node("again", node)
        ends: dict[Hashable, str] = {"tools": "tools", END: "hostile"}
        graph.add_conditional_edges("model", tools_condition, ends)
        graph.add_edge("hostile", "again")
        graph.add_edge("again", END)
    else:
        graph.add_conditional_edges("model", tools_condition)
    return graph.compile(checkpointer=store)


def repeat_first_calls(state: MessagesState) -> dict[str, Any]:
    """Put the first calls into a message that no model wrote."""
    messages = state["messages"]
    first = next(m for m in messages if isinstance(m, AIMessage) and m.tool_calls)
    return {"messages": [AIMessage(first.content, tool_calls=first.tool_calls)]}


def build_bare_tools(job: Job) -> list[BaseTool]:
    """Tools that ask for an approval as the documentation of `interrupt` shows."""
    box = build_toolbox(job)

    def wrap(name: str) -> BaseTool:
        function = getattr(box, name)

        def run(**arguments: Any) -> Any:
            job.ledger.mark("asked")
            answer = interrupt({"name": name, "args": {**arguments}})
            if answer["verdict"] == "reject":
                return f"Rejected: {answer.get('reason', '')}"
            return function(**(answer.get("args") or arguments))

        schema = StructuredTool.from_function(function).args_schema
        return StructuredTool.from_function(
            run, name=name, description=function.__doc__, args_schema=schema
        )

    return [wrap(name) for name in TOOL_NAMES]


def answer_bare(graph: Graph, config: Any, job: Job) -> None:
    """Give each interrupt its own answer, by id."""
    answers = {
        call.interrupt_id: job.answers.get(call.args.get("to", "")) or job.answers["*"]
        for call in read_report(graph, config).pending
    }
    graph.invoke(Command(resume=answers), config)


def build_agent(variant: str) -> LangGraphAgent:
    """The agent; there is one variant."""
    return LangGraphAgent()
