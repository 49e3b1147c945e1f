"""LangGraph alone: a graph of a model and a ToolNode, whose tools interrupt as the
documentation shows, or through Counterseal's adapter."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt

from counterseal_client.adapters.langgraph import Graph, build_tool, describe_call

from ..worker import Job, Pending
from .driver import APPROVAL, ERASE, MALFORMED
from .langchain_model import GraphDriver, ScriptedModel, build_delegate, open_store
from .toolbox import DELEGATE, build_toolbox

RAW: dict[str, Any] = {
    "approval": APPROVAL,
    "redirection": {"verdict": "modify", "name": ERASE["name"], "args": ERASE["args"]},
    "malformed": MALFORMED,
}
"""Answers in the form that the tools without a gate understand."""


class Driver(GraphDriver):
    """The graph, bare and with Counterseal."""

    def build_graph(self) -> Graph:
        """A nested graph sits behind the tool `delegate`."""
        job = self.job
        tools = build_bare_tools(job)
        if self.gated:
            describe = self.gated.extend(describe_call)
            gated = self.gated.tools.values()
            tools = [build_tool(tool, describe=describe) for tool in gated]
        if not job.nested:
            return compile_graph(job, tools, job.script, open_store(job))
        delegate = build_delegate(compile_graph(job, tools, job.script, None))
        return compile_graph(job, [delegate], DELEGATE, open_store(job))

    def build_raw(self) -> Any:
        return RAW[self.job.raw]

    def build_answers(self, pending: list[Pending]) -> dict[str, Any]:
        return {call.interrupt_id: self.job.find_answer(call.args) for call in pending}


def compile_graph(job: Job, tools: list[BaseTool], script: Any, store: Any) -> Graph:
    """Model and tools in a loop. A hostile node beside them runs the first calls once
    more when the model is done."""
    model = ScriptedModel(script=script)
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

    def wrap(name: str, function: Callable[..., Any]) -> BaseTool:
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

    return [wrap(*item) for item in build_toolbox(job).functions.items()]
