"""LlamaIndex Workflows: a workflow of a model and its tools, whose steps wait for an
event, bare as the documentation shows, or through Counterseal's adapter."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pydantic import validate_call
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
from counterseal_client.operations import Details

from ..scripting import DONE, WORDS, Script
from ..worker import Job, Pending, Report
from .toolbox import DELEGATE, GatedBox, StoredDriver, build_toolbox, run_action

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
        """The model's next turn."""
        turn = await ctx.store.get("turn", 0)
        if turn >= len(self._script):
            return StopEvent(result=DONE)
        calls = self._script[turn]
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
        details: Details = self._gated.add_details({"rationale": WORDS})
        tool = self._gated.tools[call["name"]]
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
        function = getattr(self._box, answer.get("tool", call["name"]))
        return str(validate_call(function)(**(answer.get("args") or call["args"])))


class NestedTools:
    """The only tool runs another workflow."""

    def __init__(self, job: Job, inner: Workflow) -> None:
        self._job = job
        self._inner = inner

    async def perform(self, ctx: Context, call: dict[str, Any]) -> str:
        if self._job.gated:
            return str(await run_nested(ctx, self._inner, call["id"]))
        return str(await asyncio.wait_for(self._inner.run(), NESTED_SECONDS))


class LlamaIndexDriver(StoredDriver):
    """The workflow of one job, with its context in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        tools = GatedTools(self._gated) if self._gated else BareTools(job)
        self._workflow: Workflow = ToolWorkflow(job.script, job, tools)
        if job.nested:
            nested = NestedTools(job, self._workflow)
            self._workflow = ToolWorkflow(DELEGATE, job, nested)

    def start_run(self) -> None:
        run = run_workflow(self._workflow, thread=self._job.thread)
        asyncio.run(self._keep(run))

    def repeat_run(self) -> None:
        asyncio.run(self._keep(restore_workflow(self._workflow, self._context)))

    def resume_run(self) -> None:
        before = self._store.load_state()
        if self._gated is None:
            answers = [self._decide_bare(call) for call in self._pending]
            asyncio.run(self._keep(self._answer(answers)))
        else:
            run = resume_workflow(
                self._workflow,
                self._context,
                self._gated.gate,
                wait_seconds=self._job.wait_seconds,
            )
            asyncio.run(self._keep(run))
        if self._job.hostile:
            self._replay(before)

    def _decide_bare(self, call: Pending) -> Event:
        given = self._job.answers.get(str(call.args.get("to", "")))
        answer = given or self._job.answers["*"]
        return AnsweredEvent(call_id=call.call_id, answer=answer)

    def _replay(self, before: str) -> None:
        """Hostile: wake an older copy of the workflow, with an approval of all."""
        kept = self._store.load_state()
        self._store.save_state(before)
        self._send("approval")
        self._store.save_state(kept)

    def send_raw(self) -> None:
        self._send(self._job.raw)

    def _send(self, raw: str) -> None:
        """Behind the gate the event has no answer: the approval is the event itself, a
        redirection names another tool in it, and a malformed one has no proposal."""
        answers: dict[str, Any] = {
            "approval": {"verdict": "approve"},
            "redirection": {
                "verdict": "modify",
                "tool": "erase_note",
                "args": {"to": "ann"},
            },
            "malformed": "yes, please",
        }
        ids = self._job.interrupt_ids or [call.interrupt_id for call in self._pending]
        if self._gated:
            more = {"answer": answers[raw]} if raw == "redirection" else {}
            wrong = 1 if raw == "malformed" else None
            events = [GateAskedEvent(proposal=wrong or key, **more) for key in ids]
        else:
            events = [AnsweredEvent(call_id=key, answer=answers[raw]) for key in ids]
        asyncio.run(self._keep(self._answer(events)))

    async def _answer(self, events: list[Event]) -> Any:
        context = Context.from_dict(self._workflow, self._context)
        handler = self._workflow.run(ctx=context)
        waiting = self._kept["context"].get(WAITING, {})
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
        self._store.save_state(json.dumps(kept))

    @property
    def _kept(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._store.load_state())
        return found

    @property
    def _context(self) -> dict[str, Any]:
        context: dict[str, Any] = self._kept["context"]
        return context

    @property
    def _pending(self) -> list[Pending]:
        """The calls that wait: of the adapter, or those of the model that have no
        answer in the bare workflow."""
        kept = self._kept
        if kept["ended"]:
            return []
        if self._gated:
            return [
                Pending(key, facts["tool"], facts["tool_call_id"], {})
                for key, facts in kept["context"][WAITING].items()
            ]
        return [
            Pending(call["id"], call["name"], call["id"], call["args"])
            for call in self._job.script[0]
        ]

    def read_report(self) -> Report:
        kept, pending = self._kept, self._pending
        return Report(
            "finished" if kept["ended"] else "suspended",
            pending=pending,
            values=list(kept["context"].get(WAITING, {}).values()),
            replies=kept["replies"],
            final=DONE if kept["ended"] else "",
        )


class LlamaIndexAgent:
    """The workflow, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        return run_action(LlamaIndexDriver(job), job)


def build_agent(variant: str) -> LlamaIndexAgent:
    """The workflow; there is one variant."""
    return LlamaIndexAgent()
