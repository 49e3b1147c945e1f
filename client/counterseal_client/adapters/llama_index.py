"""LlamaIndex Workflows: steps that wait, with the workflow's context stored, until
people have decided.

    text = await perform_tool(ctx, process_refund, arguments, call_id=...)  # in a step

    run = await run_workflow(workflow, thread="order_78291", ...)
    save(run.context)                              # the process may end
    run = await resume_workflow(workflow, load(), gate)   # later, in any process

A restored step runs again from its top: it asks the gate for its own proposal, redeems
the grant right before the effect, and waits again while nobody has decided. The event
that wakes it in a process that goes on (GateAskedEvent) says nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workflows import Context, Workflow
from workflows.events import (
    HumanResponseEvent,
    InputRequiredEvent,
    UnhandledEvent,
    WorkflowIdleEvent,
)
from workflows.handler import WorkflowHandler

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ApprovalPending, ToolError

from .calls import NamedCall, check_call_id, check_thread, format_result
from .coroutines import AnyTool, perform_call
from .decisions import collect_decisions, describe_waiting
from .flags import AdapterFlags

FLAGS = AdapterFlags(framework="llama-index-workflows", minimum="2.26.1")
FLAGS.check_version("the adapter was not tested with a release before it.")

THREAD = "counterseal_thread"
WAITING = "counterseal_waiting"


class CallWaitingEvent(InputRequiredEvent):
    """A call waits for people; `facts` names it, as `describe_waiting` has it."""

    facts: dict[str, Any]


class GateAskedEvent(HumanResponseEvent):
    """Wakes the step that waits for this proposal."""

    proposal: str


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """How a run stands. `waiting` is what waits, as `describe_waiting` has it; `result`
    that of the workflow once nothing waits. `context` is the workflow's context as
    JSON: keep it as a secret."""

    context: dict[str, Any]
    waiting: tuple[dict[str, Any], ...]
    result: Any


async def perform_tool(
    ctx: Context,
    tool: AnyTool,
    arguments: dict[str, Any],
    *,
    call_id: str,
    details: Details | None = None,
) -> str:
    """Perform a call inside a step, and return the result, or why there is none, for
    the model. The step waits while people decide, and runs again from its top when it
    is woken, so nothing before this may have an effect.

    `details` must be the same whenever the step runs again. Raises ValueError for a
    call or a run that the gate could not name.
    """
    thread = check_thread(await ctx.store.get(THREAD, ""), "the thread of the workflow")
    call = NamedCall(thread, check_call_id(call_id, [call_id]), details or {})
    key = f"counterseal_wakes_{call_id.encode().hex()}"  # the store reads dots as paths
    wakes = await ctx.store.get(key, 0)
    while True:
        try:
            return format_result(await perform_call(tool, arguments, call))
        except ApprovalPending as pending:
            facts = describe_waiting(pending.proposal, call_id)
            await wait_for_gate(ctx, facts, f"{pending.proposal.id}:{wakes}")
            wakes += 1
            await ctx.store.set(key, wakes)
        except (ToolError, InvalidArguments) as error:
            return str(error)


async def wait_for_gate(ctx: Context, facts: Mapping[str, Any], waiter: str) -> None:
    """Wait until the step is woken."""
    await ctx.wait_for_event(
        GateAskedEvent,
        waiter_event=CallWaitingEvent(facts=dict(facts)),
        waiter_id=waiter,
        requirements={"proposal": facts["proposal"]},
        timeout=None,
    )


async def run_workflow(
    workflow: Workflow, *, thread: str, **arguments: Any
) -> WorkflowRun:
    """Run the workflow until it ends or waits for people. `thread` names the run at the
    gate; `arguments` are those of `Workflow.run`."""
    ctx: Context[Any] = Context(workflow)
    await ctx.store.set(THREAD, check_thread(thread, "thread"))
    return await run_until_idle(workflow.run(ctx=ctx, **arguments), {})


async def resume_workflow(
    workflow: Workflow,
    context: dict[str, Any],
    gate: Gate,
    *,
    wait_seconds: float = 0,
) -> WorkflowRun | None:
    """Resume the workflow where people have decided. None when nobody has decided yet.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` for each call, until one can go on.
    """
    waiting = read_waiting(context)
    decided = await asyncio.to_thread(collect_decisions, waiting, gate, wait_seconds)
    if not decided:
        return None
    left = {key: value for key, value in waiting.items() if key not in decided}
    return await restore_workflow(workflow, {**context, WAITING: left})


async def restore_workflow(workflow: Workflow, context: dict[str, Any]) -> WorkflowRun:
    """Run the workflow from its stored context until it ends or waits. Its waiting
    steps run again from their top, so that each asks the gate."""
    handler = workflow.run(ctx=Context.from_dict(workflow, context))
    return await run_until_idle(handler, read_waiting(context))


def read_waiting(context: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What waits in a stored context, by proposal."""
    return dict(context.get(WAITING, {}))


async def run_until_idle(
    handler: WorkflowHandler, waiting: dict[str, dict[str, Any]]
) -> WorkflowRun:
    """Run until nothing goes on by itself any more."""
    idle = False
    async for event in handler.stream_events(expose_internal=True):
        if isinstance(event, CallWaitingEvent):
            waiting[event.facts["proposal"]] = event.facts
        elif isinstance(event, WorkflowIdleEvent) or (
            isinstance(event, UnhandledEvent) and event.idle
        ):
            idle = True
            break
    if not idle:
        result = await handler
        return WorkflowRun({**handler.ctx.to_dict(), WAITING: {}}, (), result)
    context = {**handler.ctx.to_dict(), WAITING: waiting}
    await handler.cancel_run()
    return WorkflowRun(context, tuple(waiting.values()), None)


async def run_nested(
    ctx: Context, workflow: Workflow, key: str, **arguments: Any
) -> Any:
    """Run another workflow inside a step, in the same thread, and return its result.
    While it waits for people, so does the step. `key` names it among those of the
    run."""
    thread = await ctx.store.get(THREAD, "")
    stored = f"counterseal_nested_{key.encode().hex()}"
    kept = await ctx.store.get(stored, None) or {"context": None, "wakes": 0}
    while True:
        if kept["context"] is None:
            run = await run_workflow(workflow, thread=thread, **arguments)
        else:
            run = await restore_workflow(workflow, kept["context"])
        if not run.waiting:
            return run.result
        kept["context"] = run.context
        await ctx.store.set(stored, kept)
        first = run.waiting[0]
        waiter = f"{key}:{first['proposal']}:{kept['wakes']}"
        await wait_for_gate(ctx, first, waiter)
        kept["wakes"] += 1
        await ctx.store.set(stored, kept)
