"""CrewAI: a flow of a model and its tools that pauses with `@human_feedback`, bare as
the documentation shows, or through Counterseal's adapter."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

# Before the package is imported: it sends nothing.
os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
}

from crewai import BaseLLM
from crewai.events.event_listener import event_listener
from crewai.flow.async_feedback import HumanFeedbackPending
from crewai.flow.async_feedback.types import PendingFeedbackContext
from crewai.flow.flow import Flow, listen, or_, router, start
from crewai.flow.human_feedback import HumanFeedbackResult, human_feedback
from crewai.flow.persistence import SQLiteFlowPersistence, persist
from crewai_core.printer import set_suppress_console_output
from pydantic import BaseModel

from counterseal_client.adapters.crewai import (
    GateProvider,
    list_unanswered,
    perform_calls,
    propose_calls,
    read_answer,
    resume_flow,
)
from counterseal_client.gate import Gate

from ..scripting import DONE, Script
from ..worker import Job, Pending, Report
from .driver import APPROVAL, ASK, ERASE, MALFORMED, DriverBase
from .toolbox import DELEGATE, GatedBox, build_toolbox

Message = dict[str, Any]
# Nothing about each flow on the console of the kit.
event_listener.formatter.console.quiet = True
set_suppress_console_output(True)


class ScriptedModel(BaseLLM):
    script: Script

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        turn = sum(message["role"] == "assistant" for message in messages)
        if turn >= len(self.script):
            return DONE
        return [
            {
                "id": call["id"],
                "function": {
                    "name": call["name"],
                    "arguments": json.dumps(call["args"]),
                },
            }
            for call in self.script[turn]
        ]


class RunState(BaseModel):
    id: str = ""
    messages: list[Message] = []


class PausingProvider:
    """Pauses the flow, as the documentation shows."""

    def request_feedback(self, context: PendingFeedbackContext, flow: Flow[Any]) -> str:
        raise HumanFeedbackPending(context)


class Driver(DriverBase):
    """The flow of one job, with its state in SQLite."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._store = SQLiteFlowPersistence(str(job.store))
        self._flow_id = job.thread
        self._flow = build_flows(job, self.gated, self._store)

    def start_run(self) -> None:
        self._flow(persistence=self._store).kickoff(inputs={"id": self._flow_id})

    def resume_gated(self, gate: Gate) -> None:
        resume_flow(
            self._flow,
            self._flow_id,
            self._store,
            gate,
            wait_seconds=self.job.wait_seconds,
            after_crash=self.job.after_crash,
        )

    def resume_bare(self) -> None:
        if self.copy_run() is None:
            self.start_run()
        else:
            self._resume_with(json.dumps(self.job.answers))

    def copy_run(self) -> Any:
        return self._store.load_pending_feedback(self._flow_id)

    def replay(self, older: Any) -> None:
        """Store an older pause of the flow again, and approve it."""
        if older is None:
            return
        state, context = older
        kept = self._store.load_state(self._flow_id)
        self._store.save_pending_feedback(self._flow_id, context, state)
        self._resume_with(json.dumps({"*": APPROVAL}))
        self._store.save_state(self._flow_id, "act", kept)

    def _resume_with(self, feedback: str) -> None:
        self._flow.from_pending(self._flow_id, self._store).resume(feedback)

    def send_raw(self) -> None:
        raw = {
            "approval": json.dumps({"*": APPROVAL}),
            "redirection": json.dumps({"*": {**APPROVAL, "tool": ERASE["name"]}}),
            "malformed": MALFORMED,
        }
        self._resume_with(raw[self.job.raw])

    def read_report(self) -> Report:
        state = self._store.load_state(self._flow_id) or {"messages": []}
        paused = self.copy_run()
        messages = state["messages"]
        last = messages[-1] if messages else {}
        output = paused[1].method_output if paused else []
        done = last.get("role") == "assistant"
        return Report(
            "finished" if done and not paused else "suspended",
            pending=[read_pending(found) for found in output],
            values=output,
            replies=[m["content"] for m in messages if m["role"] == "tool"],
            final=last.get("content", "") if done else "",
        )


def read_pending(found: Mapping[str, Any]) -> Pending:
    """A call that waits, of the adapter or of the flow without a gate."""
    if "function" not in found:
        return Pending.from_facts(found["tool_call_id"], found)
    function = found["function"]
    args = json.loads(function["arguments"])
    return Pending(found["id"], function["name"], found["id"], args)


class GatedSteps:
    """Through the adapter."""

    def __init__(self, job: Job, gated: GatedBox) -> None:
        self._tools = gated.tools
        self._given: dict[str, Any] = {
            "thread": job.thread,
            "describe": gated.describe,
        }

    def propose(self, messages: list[Message]) -> list[dict[str, Any]]:
        return propose_calls(self._tools, messages, **self._given)

    def perform(self, messages: list[Message], feedback: str) -> list[Message]:
        """The feedback counts for nothing."""
        return perform_calls(self._tools, messages, **self._given)


class BareSteps:
    """The feedback decides, about all calls of a turn at once."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._box = build_toolbox(job)

    def propose(self, messages: list[Message]) -> list[dict[str, Any]]:
        self._job.ledger.mark("asked")
        return list_unanswered(messages)

    def perform(self, messages: list[Message], feedback: str) -> list[Message]:
        """Raises ValueError for feedback that is no JSON."""
        given = json.loads(feedback)
        return [
            build_reply(call, self._run(call, given))
            for call in list_unanswered(messages)
        ]

    def _run(self, call: dict[str, Any], given: dict[str, Any]) -> str:
        args = json.loads(call["function"]["arguments"])
        answer = given.get(str(args.get("to", ""))) or given.get("*", {})
        if answer.get("verdict") != "approve":
            return f"Rejected: {answer.get('reason', '')}"
        return self._box.run(call["function"]["name"], args)


class DelegatingSteps:
    """The only tool runs a nested flow, whose calls surface as those of this one."""

    def __init__(
        self, job: Job, gated: GatedBox | None, inner: Any, store: Any
    ) -> None:
        self._job = job
        self._gated = gated
        self._inner = inner
        self._store = store
        self._inner_id = f"{job.thread}:inner"

    def propose(self, messages: list[Message]) -> list[dict[str, Any]]:
        paused = self._store.load_pending_feedback(self._inner_id)
        if paused is None:
            inner = self._inner(persistence=self._store)
            inner.kickoff(inputs={"id": self._inner_id})
            paused = self._store.load_pending_feedback(self._inner_id)
        return list(paused[1].method_output) if paused else []

    def perform(self, messages: list[Message], feedback: str) -> list[Message]:
        if self._gated:
            resume_flow(self._inner, self._inner_id, self._store, self._gated.gate)
        else:
            self._inner.from_pending(self._inner_id, self._store).resume(feedback)
        if self._store.load_pending_feedback(self._inner_id):
            return []
        last = self._store.load_state(self._inner_id)["messages"][-1]["content"]
        return [build_reply(call, last) for call in list_unanswered(messages)]


Steps = GatedSteps | BareSteps | DelegatingSteps
"""What a flow does about the calls of its model: `propose` says what people are asked
about, and `perform` returns the results of what was decided."""


def read_bare_answer(answer: Any) -> Message:
    if isinstance(answer, str):
        return {"role": "assistant", "content": answer}
    return {"role": "assistant", "content": "", "tool_calls": answer}


def build_reply(call: Mapping[str, Any], text: str) -> Message:
    return {
        "role": "tool",
        "tool_call_id": call["id"],
        "name": call["function"]["name"],
        "content": text,
    }


def build_flows(
    job: Job, gated: GatedBox | None, store: SQLiteFlowPersistence
) -> type[Flow[RunState]]:
    """The flow; a nested one sits behind the tool `delegate`."""
    steps = GatedSteps(job, gated) if gated else BareSteps(job)
    flow = build_flow(job, steps, job.script, store)
    if not job.nested:
        return flow
    outer = DelegatingSteps(job, gated, flow, store)
    return build_flow(job, outer, DELEGATE, store)


def build_flow(
    job: Job, steps: Steps, script: Script, store: SQLiteFlowPersistence
) -> type[Flow[RunState]]:
    """A loop of model and tools that pauses in between."""
    model = ScriptedModel(model="scripted", script=script)
    provider = GateProvider() if job.gated else PausingProvider()

    @persist(store)
    class ToolFlow(Flow[RunState]):
        suppress_flow_events: bool = True  # on the console
        _skip_auto_memory: bool = True  # a vector store that takes seconds to load

        @start()
        def begin(self) -> None:
            if not self.state.messages:
                message = {"role": "user", "content": ASK}
                self.state.messages.append(message)

        @router(or_(begin, "again"))
        def think(self) -> str:
            if not list_unanswered(self.state.messages):
                answer = model.call(self.state.messages)
                read = read_answer if job.gated else read_bare_answer
                self.state.messages.append(read(answer))
            return "calls" if self.state.messages[-1].get("tool_calls") else "done"

        @listen("calls")
        @human_feedback(message="These calls wait.", provider=provider)
        def ask_people(self) -> list[dict[str, Any]]:
            return steps.propose(self.state.messages)

        @router(ask_people)
        def act(self, result: HumanFeedbackResult) -> str:
            self.state.messages += steps.perform(self.state.messages, result.feedback)
            return "again"

    return ToolFlow
