"""What the agents of LangGraph and LangChain share: the scripted chat model, and how a
job drives a graph."""

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

from counterseal_client.adapters.langgraph import Graph, resume_graph

from ..scripting import DONE, WORDS, Script, get_turn
from ..worker import Job, Pending, Report
from .driver import ASK, DriverBase


class ScriptedModel(BaseChatModel):
    script: Script

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        turn = sum(isinstance(message, AIMessage) for message in messages)
        calls = get_turn(self.script, turn)
        message = AIMessage(WORDS if calls else DONE, tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def open_store(job: Job) -> SqliteSaver:
    """The checkpoints, in a file that outlives the process."""
    return SqliteSaver(sqlite3.connect(job.store, check_same_thread=False))


class GraphDriver(DriverBase):
    """An agent that is a graph, whose checkpoints are in the job's file."""

    resume: Callable[..., object] = staticmethod(resume_graph)
    """The adapter's own function that goes on with what people decided."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._config: Any = {"configurable": {"thread_id": job.thread}}
        self._graph = self.build_graph()

    def build_graph(self) -> Graph:
        raise NotImplementedError

    def build_answers(self, pending: list[Pending]) -> dict[str, Any]:
        raise NotImplementedError

    def build_raw(self) -> Any:
        """The job's `raw` answer."""
        raise NotImplementedError

    def start_run(self) -> None:
        self._invoke({"messages": [HumanMessage(ASK)]})

    def repeat_run(self) -> None:
        self._invoke(None)

    def resume_run(self) -> None:
        """Hostile code is a part of the graph. Without a gate, a run that a dead
        process left in a node waits for no answer."""
        if self.gated:
            self.resume(
                self._graph,
                self._config,
                self.gated.gate,
                wait_seconds=self.job.wait_seconds,
                after_crash=self.job.after_crash,
            )
            return
        state = self._graph.get_state(self._config)
        if self.job.after_crash and state.next and not state.interrupts:
            self._invoke(None)
        else:
            answers = self.build_answers(self.read_report().pending)
            self._invoke(Command(resume=answers))

    def send_raw(self) -> None:
        interrupts = self._graph.get_state(self._config).interrupts
        waiting = [found.id for found in interrupts]
        answers = dict.fromkeys(self.job.interrupt_ids or waiting, self.build_raw())
        self._invoke(Command(resume=answers))

    def _invoke(self, given: Any) -> None:
        self._graph.invoke(given, self._config)

    def read_report(self) -> Report:
        state = self._graph.get_state(self._config)
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


def build_delegate(inner: Graph) -> BaseTool:
    """The tool behind which a nested agent sits."""

    @tool
    def delegate(task: str) -> str:
        """Hand a task to a nested agent."""
        found = inner.invoke({"messages": [HumanMessage(task)]})
        return str(found["messages"][-1].content)

    return delegate


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
