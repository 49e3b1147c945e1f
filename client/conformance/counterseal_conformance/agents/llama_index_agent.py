"""LlamaIndex Workflows: a workflow of a model and its tools, whose steps wait for an
event, bare as the documentation shows, or through Counterseal's adapter."""

from __future__ import annotations

import asyncio
from typing import Any

from workflows import Context, Workflow, step
from workflows.events import (
    Event,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    WorkflowIdleEvent,
)

from counterseal_client.adapters.calls import check_call_id
from counterseal_client.adapters.llama_index import (
    WAITING,
    GateAskedEvent,
    WorkflowRun,
    perform_tool,
    restore_workflow,
    resume_workflow,
    run_nested,
    run_until_idle,
    run_workflow,
)
from counterseal_client.gate import Gate

from ..scripting import DONE, Script, get_turn
from ..worker import Job, Pending, Report
from .driver import RAW, REDIRECTION, Step, StoredDriver
from .toolbox import DELEGATE, GatedBox, build_toolbox

NESTED_SECONDS = 5.0
"""After which the bare outer step gives up on the nested workflow, which waits."""


class CallEvent(Event):
    call: dict[str, Any]


class ResultEvent(Event):
    text: str


class TurnEvent(Event):
    """All calls of a turn have results."""


class AskedEvent(InputRequiredEvent):
    """A call of the bare workflow waits."""

    call: dict[str, Any]


class AnsweredEvent(HumanResponseEvent):
    """The answer to a call of the bare workflow."""

    call_id: str
    answer: dict[str, Any]


class ToolWorkflow(Workflow):
    """Model and tools in a loop."""

    def __init__(self, script: Script, job: Job, tools: Any) -> None:
        super().__init__(timeout=None)
        self._script = script
        self._job = job
        self._tools = tools

    @step
    async def think(
        self, ctx: Context, ev: StartEvent | TurnEvent
    ) -> CallEvent | StopEvent | None:
        turn = await ctx.store.get("turn", 0)
        calls = get_turn(self._script, turn)
        if not calls:
            return StopEvent(result=DONE)
        await ctx.store.set("turn", turn + 1)
        await ctx.store.set("count", len(calls))
        if self._job.gated:
            ids = [call["id"] for call in calls]
            for call_id in ids:
                check_call_id(call_id, ids)
        for call in calls:
            ctx.send_event(CallEvent(call=call))
        return None

    @step(num_workers=4)
    async def act(self, ctx: Context, ev: CallEvent) -> ResultEvent:
        text = await self._tools.perform(ctx, ev.call)
        replies = await ctx.store.get("replies", [])
        await ctx.store.set("replies", [*replies, text])
        return ResultEvent(text=text)

    @step
    async def collect(self, ctx: Context, ev: ResultEvent) -> TurnEvent | None:
        """Waits for all results of a turn."""
        count = await ctx.store.get("count", 1)
        found = ctx.collect_events(ev, [ResultEvent] * count)
        return None if found is None else TurnEvent()


class GatedTools:
    """Through the adapter."""

    def __init__(self, gated: GatedBox) -> None:
        self._gated = gated

    async def perform(self, ctx: Context, call: dict[str, Any]) -> str:
        tool, details = self._gated.tools[call["name"]], self._gated.describe()
        return await perform_tool(
            ctx, tool, call["args"], call_id=call["id"], details=details
        )


class BareTools:
    """Waits for an answer, as the documentation shows."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._box = build_toolbox(job)

    async def perform(self, ctx: Context, call: dict[str, Any]) -> str:
        self._job.ledger.mark("asked")
        answered = await ctx.wait_for_event(
            AnsweredEvent,
            waiter_event=AskedEvent(call=call),
            waiter_id=call["id"],
            requirements={"call_id": call["id"]},
            timeout=None,
        )
        answer = answered.answer
        if answer["verdict"] == "reject":
            return f"Rejected: {answer.get('reason', '')}"
        tool = answer.get("tool", call["name"])
        return self._box.run(tool, answer.get("args") or call["args"])


class NestedTools:
    """The only tool runs another workflow."""

    def __init__(self, job: Job, inner: Workflow) -> None:
        self._job = job
        self._inner = inner

    async def perform(self, ctx: Context, call: dict[str, Any]) -> str:
        if self._job.gated:
            return str(await run_nested(ctx, self._inner, call["id"]))
        return str(await asyncio.wait_for(self._inner.run(), NESTED_SECONDS))


class Driver(StoredDriver):
    """The workflow of one job, with its context in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        tools = GatedTools(self.gated) if self.gated else BareTools(job)
        self._workflow: Workflow = ToolWorkflow(job.script, job, tools)
        if job.nested:
            nested = NestedTools(job, self._workflow)
            self._workflow = ToolWorkflow(DELEGATE, job, nested)

    def start_run(self) -> Step:
        return self._keep(run_workflow(self._workflow, thread=self.job.thread))

    def repeat_run(self) -> Step:
        return self._keep(restore_workflow(self._workflow, self.load()["context"]))

    def resume_gated(self, gate: Gate) -> Step:
        context, seconds = self.load()["context"], self.job.wait_seconds
        run = resume_workflow(self._workflow, context, gate, wait_seconds=seconds)
        return self._keep(run)

    def resume_bare(self) -> Step:
        answers: list[Event] = [
            AnsweredEvent(call_id=call.call_id, answer=self.job.find_answer(call.args))
            for call in self._list_pending()
        ]
        return self._keep(self._answer(answers))

    def approve_all(self, older: Any) -> Step:
        self.save(older)
        return self._send("approval")

    def send_raw(self) -> Step:
        return self._send(self.job.raw)

    def _send(self, raw: str) -> Step:
        """Behind the gate the event has no answer: the approval is the event itself, a
        redirection names another tool in it, and a malformed one has no proposal."""
        waiting = [call.interrupt_id for call in self._list_pending()]
        ids = self.job.interrupt_ids or waiting
        events: list[Event]
        if self.gated:
            more = {"answer": REDIRECTION} if raw == "redirection" else {}
            wrong = 1 if raw == "malformed" else None
            events = [GateAskedEvent(proposal=wrong or key, **more) for key in ids]
        else:
            events = [AnsweredEvent(call_id=key, answer=RAW[raw]) for key in ids]
        return self._keep(self._answer(events))

    async def _answer(self, events: list[Event]) -> Any:
        stored = self.load()["context"]
        context = Context.from_dict(self._workflow, stored)
        handler = self._workflow.run(ctx=context)
        waiting = stored.get(WAITING, {})
        idle = False
        async for event in handler.stream_events(expose_internal=True):
            idle = isinstance(event, WorkflowIdleEvent)  # the restored steps have run
            if idle:
                break
        if idle:
            for sent in events:
                handler.ctx.send_event(sent)
            return await run_until_idle(handler, waiting)
        result = await handler  # nothing waited any more
        return WorkflowRun({**handler.ctx.to_dict(), WAITING: {}}, (), result)

    async def _keep(self, running: Any) -> None:
        run = await running
        if run is None:
            return
        context = Context.from_dict(self._workflow, run.context)
        kept = {
            "context": run.context,
            "ended": run.result is not None,
            "replies": await context.store.get("replies", []),
        }
        self.save(kept)

    def _list_pending(self) -> list[Pending]:
        """The calls that wait: of the adapter, or those of the model that have no
        answer in the bare workflow."""
        kept = self.load()
        if kept["ended"]:
            return []
        if self.gated:
            waiting = kept["context"][WAITING].items()
            return [Pending.from_facts(key, facts) for key, facts in waiting]
        return [Pending.from_call(call) for call in self.job.script[0]]

    def read_report(self) -> Report:
        kept = self.load()
        return Report(
            "finished" if kept["ended"] else "suspended",
            pending=self._list_pending(),
            values=list(kept["context"].get(WAITING, {}).values()),
            replies=kept["replies"],
            final=DONE if kept["ended"] else "",
        )
