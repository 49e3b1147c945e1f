"""Restate: calls as invocations of their own, which the server suspends until people
have decided.

    calls = GateCalls([process_refund])

    @agent.main()
    async def run_agent(ctx: WorkflowContext, order: str) -> str:
        arguments = ...
        return await calls.start_call(
            ctx, "process_refund", arguments, thread=order, call_id=...
        )

    app = restate.app([agent, *calls.services])
    await resume_run(client, "order_78291", gate)   # later, in any process

The invocation asks the gate for its own proposal and redeems the grant right before
the effect. What wakes it says nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from restate import (
    Context,
    HttpError,
    ObjectContext,
    ObjectSharedContext,
    RestateClient,
    RestateDurableCallFuture,
    RunOptions,
    Service,
    TerminalError,
    VirtualObject,
    wait_completed,
)
from restate.serde import BytesSerde

from counterseal_client.errors import ApiError
from counterseal_client.gate import Gate
from counterseal_client.operations import Details

from .attempts import AskGate, attempt_call, build_request
from .calls import check_call_ids
from .coroutines import AnyTool
from .decisions import collect_decisions
from .flags import AdapterFlags

FLAGS = AdapterFlags(framework="restate-sdk", minimum="1.3.0", resume="http")
FLAGS.check_version("the adapter was not tested with a release before it.")

ASK_AGAIN = timedelta(days=1)
"""After this time without news, a call asks the gate by itself."""
PAUSE = timedelta(seconds=10)
"""Between attempts while the gate cannot be reached, or an earlier attempt has the
effect."""
BAD_REQUEST, NOT_FOUND = 400, 404
STATE = "calls"

WAITING_CALLS = VirtualObject(
    "CountersealWaiting",
    description="The calls of a run that wait for people, by proposal.",
)
"""One object for each run. `GateCalls.services` has it."""


@WAITING_CALLS.handler()
async def keep_call(ctx: ObjectContext, facts: dict[str, Any]) -> None:
    """Note that a call waits, with the awakeable that wakes it."""
    calls = await ctx.get(STATE, type_hint=dict) or {}
    ctx.set(STATE, {**calls, str(facts["proposal"]): facts})


@WAITING_CALLS.handler()
async def drop_call(ctx: ObjectContext, proposal: str) -> None:
    """Note that a call no longer waits."""
    calls = await ctx.get(STATE, type_hint=dict) or {}
    calls.pop(proposal, None)
    ctx.set(STATE, calls)


@WAITING_CALLS.handler()
async def wake_call(ctx: ObjectContext, proposal: str) -> None:
    """Let a call ask the gate again. Raises TerminalError (404) for one that does not
    wait, or is woken already."""
    calls = await ctx.get(STATE, type_hint=dict) or {}
    if proposal not in calls:
        raise TerminalError(
            f"No call of this run waits for the proposal {proposal!r}. Read what waits"
            " with list_waiting.",
            NOT_FOUND,
        )
    ctx.resolve_awakeable(calls.pop(proposal)["awakeable"], b"", BytesSerde())
    ctx.set(STATE, calls)


@WAITING_CALLS.handler(kind="shared")
async def list_calls(ctx: ObjectSharedContext, _: str) -> dict[str, Any]:
    """What waits, as `describe_waiting` has it, by proposal.

    The argument says nothing. The client of SDK 1.3.0 encodes even no argument if it
    has a codec, and the server refuses a body for a handler without one.
    """
    return await ctx.get(STATE, type_hint=dict) or {}


class GateCalls:
    """The gated calls of a service endpoint.

    Bind `services` beside your own. Each tool of Gate or AsyncGate is a handler of the
    service `name`, so its names must be those of functions.
    """

    def __init__(self, tools: Iterable[AnyTool], *, name: str = "Counterseal") -> None:
        self._service = Service(name, ingress_private=True)
        self._handlers = {
            tool.name: build_handler(self._service, tool) for tool in tools
        }

    @property
    def services(self) -> list[Service | VirtualObject]:
        """For `restate.app`."""
        return [self._service, WAITING_CALLS]

    def check_calls(self, call_ids: Sequence[str]) -> None:
        """Refuse a message of the model in which an id stands twice, or a call has
        none, before any of its calls runs. Raises TerminalError."""
        with refuse_names():
            check_call_ids(call_ids)

    def start_call(
        self,
        ctx: Context,
        tool: str,
        arguments: dict[str, Any],
        *,
        thread: str,
        call_id: str,
        details: Details | None = None,
    ) -> RestateDurableCallFuture[str]:
        """Start a call. Await it for the result, or for why there is none, for the
        model; several may be started before the first is awaited.

        `thread` names the run at the gate; `details` are those of the proposal. Raises
        TerminalError for a call that the gate could not name. Awaiting it raises
        TerminalError when the gate refuses the call as it is, for example because its
        arguments were changed.
        """
        with refuse_names():
            request = build_request(thread, call_id, arguments, details)
        return ctx.service_call(self._handlers[tool], request)


@contextmanager
def refuse_names() -> Iterator[None]:
    """Fail the invocation for a call or a run that the gate could not name. Restate
    would attempt it for ever after any other exception."""
    try:
        yield
    except ValueError as error:
        raise TerminalError(str(error), BAD_REQUEST) from error


def build_handler(service: Service, tool: AnyTool) -> Any:
    """The handler that performs one call of the tool."""

    async def attempt(request: dict[str, Any]) -> dict[str, Any]:
        try:
            return await attempt_call(tool, request)
        except ApiError as error:
            raise TerminalError(str(error), error.status) from error

    @service.handler(name=tool.name)
    async def perform(ctx: Context, request: dict[str, Any]) -> str:
        options: Any = RunOptions(type_hint=dict)

        async def ask_gate() -> dict[str, Any]:
            return await ctx.run_typed("attempt", attempt, options, request)

        answer = await ask_gate()
        while "text" not in answer:
            if "again" in answer:
                await ctx.sleep(PAUSE)
                answer = await ask_gate()
            else:
                facts = answer["waiting"]
                answer = await wait_for_people(ctx, request["thread"], facts, ask_gate)
        return str(answer["text"])

    return perform


async def wait_for_people(
    ctx: Context, thread: str, facts: dict[str, Any], ask_gate: AskGate
) -> dict[str, Any]:
    """Wait durably, and return the next answer of the gate. Each wait has an awakeable
    of its own, so that a late resolution wakes nothing; its value is never read.

    People may decide before the object lists the call, and their decision then wakes
    nobody. So the gate is asked once more before the wait begins.
    """
    proposal = str(facts["proposal"])
    name, woken = ctx.awakeable(BytesSerde())
    await ctx.object_call(keep_call, thread, {**facts, "awakeable": name})
    try:
        answer = await ask_gate()
        undecided = "waiting" in answer
        if undecided:
            await wait_completed(woken, ctx.sleep(ASK_AGAIN))
    except TerminalError:  # refused by the gate, or the invocation was cancelled
        await ctx.object_call(drop_call, thread, proposal)
        raise
    await ctx.object_call(drop_call, thread, proposal)
    return await ask_gate() if undecided else answer


async def list_waiting(client: RestateClient, thread: str) -> dict[str, dict[str, Any]]:
    """What waits for people in a run, by proposal, each with the awakeable that wakes
    it. Calls of nested agents with the same thread are among them."""
    return await client.object_call(list_calls, thread, "")


async def resume_run(
    client: RestateClient, thread: str, gate: Gate, *, wait_seconds: float = 0
) -> list[dict[str, Any]]:
    """Wake the calls of a run that people have decided, and return them as
    `list_waiting` has them: none while nobody has decided.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` until a first call is decided. A call that another process has
    woken meanwhile is left alone.
    """
    waiting = await list_waiting(client, thread)
    decided = await asyncio.to_thread(collect_decisions, waiting, gate, wait_seconds)
    return [
        waiting[key] for key in decided if await send_wake(client, thread, waiting[key])
    ]


async def send_wake(
    client: RestateClient, thread: str, facts: Mapping[str, Any]
) -> bool:
    """Wake one call. False when it does not wait any more."""
    try:
        await client.object_call(wake_call, thread, str(facts["proposal"]))
    except HttpError as error:
        if error.status_code != NOT_FOUND:
            raise
        return False
    return True
