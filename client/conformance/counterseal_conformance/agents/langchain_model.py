"""What the agents of LangGraph and LangChain share: the scripted chat model, the tools
behind the gate, and how a run is read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from counterseal_client.adapters.langgraph import Graph, build_tool, describe_call
from counterseal_client.gate import Gate
from counterseal_client.operations import Details

from ..scripting import DONE, WORDS
from ..worker import Job, Pending, Report
from .toolbox import GatedBox


class ScriptedModel(BaseChatModel):
    """Says the next turn of its script; which one that is, the history tells."""

    turns: list[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> ScriptedModel:
        """A script needs to know no tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        turn = sum(isinstance(message, AIMessage) for message in messages)
        calls = self.turns[turn] if turn < len(self.turns) else []
        message = AIMessage(WORDS if calls else DONE, tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


class GatedTools(GatedBox):
    """The tools behind the gate, as the adapter builds them."""

    def describe(self, message: AIMessage, call_id: str) -> Details:
        """The details of a proposal, and a mark that this code ran."""
        return self.add_details(describe_call(message, call_id))

    def build_tools(self) -> list[BaseTool]:
        return [
            build_tool(tool, describe=self.describe) for tool in self.tools.values()
        ]


def open_store(job: Job) -> SqliteSaver:
    """The checkpoints, in a file that outlives the process."""
    return SqliteSaver(sqlite3.connect(job.store, check_same_thread=False))


def run_job(
    graph: Graph,
    job: Job,
    gate: Gate | None,
    *,
    resume: Callable[..., object],
    answer_bare: Callable[[Graph, Any, Job], object],
    build_raw: Callable[[str], Any],
) -> Report:
    """Take the action that the job names. With a gate, the adapter's `resume` answers
    what people have decided. Without one, `answer_bare` gives the answers of the
    job."""
    config: Any = {"configurable": {"thread_id": job.thread}}
    if job.action == "start":
        graph.invoke({"messages": [HumanMessage("Please do it.")]}, config)
    elif job.action == "rerun":
        graph.invoke(None, config)
    elif job.action == "answer":
        send_raw(graph, config, job, build_raw(job.raw))
    elif job.action == "resume" and gate is not None:
        resume(
            graph,
            config,
            gate,
            wait_seconds=job.wait_seconds,
            after_crash=job.after_crash,
        )
    elif job.action == "resume" and job.after_crash and graph_rests(graph, config):
        graph.invoke(None, config)
    elif job.action == "resume":
        answer_bare(graph, config, job)
    return read_report(graph, config)


def send_raw(graph: Graph, config: Any, job: Job, raw: Any) -> None:
    """Send one answer to what waits, or to interrupts that once waited."""
    waiting = [found.id for found in graph.get_state(config).interrupts]
    answers = dict.fromkeys(job.interrupt_ids or waiting, raw)
    graph.invoke(Command(resume=answers), config)


def build_delegate(inner: Graph) -> BaseTool:
    """The tool behind which a nested agent sits."""

    @tool
    def delegate(task: str) -> str:
        """Hand a task to a nested agent."""
        found = inner.invoke({"messages": [HumanMessage(task)]})
        return str(found["messages"][-1].content)

    return delegate


def graph_rests(graph: Graph, config: Any) -> bool:
    """Whether a dead process left the run in a node, where it waits for no answer."""
    state = graph.get_state(config)
    return bool(state.next) and not state.interrupts


def read_report(graph: Graph, config: Any) -> Report:
    """How the stored run stands."""
    state = graph.get_state(config)
    messages = state.values.get("messages", [])
    pending = [
        call
        for found in state.interrupts
        for call in read_pending(found.id, found.value)
    ]
    last = messages[-1] if messages else None
    return Report(
        "suspended" if pending or state.next else "finished",
        pending=pending,
        values=[found.value for found in state.interrupts],
        replies=[str(m.content) for m in messages if isinstance(m, ToolMessage)],
        final=str(last.content) if isinstance(last, AIMessage) else "",
    )


def read_pending(interrupt_id: str, value: Any) -> list[Pending]:
    """The calls of one interrupt: of the adapter, of the middleware in both modes, or
    of a tool without a gate."""
    actions = value.get("action_requests", [value])
    return [
        Pending(
            interrupt_id,
            action.get("name") or action.get("tool", ""),
            action.get("tool_call_id", ""),
            action.get("args", {}),
        )
        for action in actions
    ]
