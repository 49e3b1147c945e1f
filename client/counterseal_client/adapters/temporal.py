"""Temporal: activities whose calls wait in the workflow, durably, until people have
decided.

    with workflow.unsafe.imports_passed_through():
        from counterseal_client.adapters.temporal import GateCalls

    @workflow.defn
    class RefundWorkflow:
        def __init__(self) -> None:
            self.calls = GateCalls()

        @workflow.run
        async def run(self, order: str) -> str:
            return await self.calls.perform_tool("process_refund", {...}, call_id=...)

    Worker(client, activities=[build_activity(process_refund)], ...)
    await resume_workflow(client, "order_78291", gate)     # later, in any process

The activity asks the gate for its own proposal and redeems the grant right before the
effect. The Update that wakes the workflow (`counterseal_wake`) says nothing, and its
validator refuses one for a call that does not wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from counterseal_client.errors import ApiError
from counterseal_client.gate import Gate
from counterseal_client.operations import Details

from .attempts import AskGate, attempt_call, build_request
from .calls import check_call_ids, check_thread
from .coroutines import AnyTool
from .decisions import collect_decisions
from .flags import AdapterFlags

FLAGS = AdapterFlags(framework="temporalio", minimum="1.35.0")
FLAGS.check_version("the adapter was not tested with a release before it.")

WAKE_UPDATE = "counterseal_wake"
WAITING_QUERY = "counterseal_waiting"
PERFORM_TIMEOUT = timedelta(minutes=5)
"""How long one attempt of an activity may take by default. People are not part of
it."""
ASK_AGAIN = timedelta(days=1)
"""After this time without an Update, a call asks the gate by itself."""
Activity = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


def build_activity(tool: AnyTool) -> Activity:
    """Build the activity of a tool of Gate or AsyncGate, under the tool's name.

    A call that waits for people ends the activity at once, so that it keeps no worker.
    Temporal attempts the activity again when the gate cannot be reached, or while an
    earlier attempt has the effect, until its lease ends.
    """

    @activity.defn(name=tool.name)
    async def perform(request: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = await attempt_call(tool, request)
        except ApiError as error:
            raise ApplicationError(str(error), non_retryable=True) from error
        if "again" in answer:
            raise ApplicationError(answer["again"], type="TryAgain")
        return answer

    return perform


@contextmanager
def refuse_names() -> Iterator[None]:
    """Fail the workflow for a call or a run that the gate could not name. Any other
    exception would only fail its task, which Temporal then attempts for ever."""
    try:
        yield
    except ValueError as error:
        kind = type(error).__name__
        raise ApplicationError(str(error), type=kind, non_retryable=True) from error


class GateCalls:
    """The gated calls of one workflow. Build it in the workflow's `__init__`, so that
    its handlers are there before the first Update.

    `thread` names the run at the gate; the default is the workflow's id. A child
    workflow takes its parent's, so that a stop of the run stops both. `carried` is what
    `list_waiting` returned before Continue-As-New.
    """

    def __init__(
        self, *, thread: str = "", carried: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        name = thread or workflow.info().workflow_id
        with refuse_names():
            self.thread = check_thread(name, "the workflow's id or thread")
        self._waiting = {str(facts["proposal"]): dict(facts) for facts in carried}
        self._woken: set[str] = set()
        self._running: set[str] = set()
        workflow.set_query_handler(WAITING_QUERY, self.list_waiting)
        workflow.set_update_handler(
            WAKE_UPDATE, self.wake_call, validator=self.check_wake
        )

    def list_waiting(self) -> list[dict[str, Any]]:
        """What waits for people, as `describe_waiting` has it. Hand it to
        `workflow.continue_as_new`: the next run makes the same calls again and waits
        for the same requests."""
        return [facts for key, facts in self._waiting.items() if key not in self._woken]

    def check_wake(self, proposal: str) -> None:
        """Raise ValueError for a proposal that does not wait, or that is woken already:
        Temporal then refuses the Update and keeps nothing of it."""
        if proposal not in self._waiting or proposal in self._woken:
            raise ValueError(
                f"No call of this workflow waits for the proposal {proposal!r}. Read"
                f" what waits with the query {WAITING_QUERY}."
            )

    def wake_call(self, proposal: str) -> None:
        """Let the call ask the gate again."""
        self._woken.add(proposal)

    def check_calls(self, call_ids: Sequence[str]) -> None:
        """Refuse a message of the model in which an id stands twice, or a call has
        none, before any of its calls runs. Raises ApplicationError."""
        with refuse_names():
            check_call_ids(call_ids)

    async def perform_tool(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        call_id: str,
        details: Details | None = None,
        timeout: timedelta = PERFORM_TIMEOUT,
        retry_policy: RetryPolicy | None = None,
    ) -> str:
        """Perform a call and return the result, or why there is none, for the model.
        The workflow waits while people decide.

        `timeout` is for one attempt of the activity, which does not include people.
        Raises ApplicationError for a call without an id, or with that of another call
        that is not done, and ActivityError when the gate refuses the call as it is, for
        example because its arguments were changed.
        """
        with refuse_names():
            check_call_ids([call_id, *self._running])
            request = build_request(self.thread, call_id, arguments, details)

        async def ask_gate() -> dict[str, Any]:
            return await workflow.execute_activity(
                tool,
                request,
                result_type=dict,
                start_to_close_timeout=timeout,
                retry_policy=retry_policy,
            )

        self._running.add(call_id)
        try:
            answer = await ask_gate()
            while "waiting" in answer:
                answer = await self._wait_for_people(answer["waiting"], ask_gate)
        finally:
            self._running.discard(call_id)
        return str(answer["text"])

    async def _wait_for_people(
        self, facts: dict[str, Any], ask_gate: AskGate
    ) -> dict[str, Any]:
        """Wait durably, and return the next answer of the gate.

        People may decide before the workflow shows that it waits, and their decision
        then wakes nobody. So the gate is asked once more before the wait begins.
        """
        proposal = str(facts["proposal"])
        self._waiting[proposal] = facts
        try:
            answer = await ask_gate()
            undecided = "waiting" in answer
            if undecided:
                with suppress(asyncio.TimeoutError):
                    await workflow.wait_condition(
                        lambda: proposal in self._woken, timeout=ASK_AGAIN
                    )
        finally:
            self._woken.discard(proposal)
            self._waiting.pop(proposal, None)
        return await ask_gate() if undecided else answer


async def list_waiting(client: Client, workflow_id: str) -> dict[str, dict[str, Any]]:
    """What waits for people in a workflow and in its children, by proposal, each with
    the id of its workflow. A worker must run, since it answers the query."""
    handle = client.get_workflow_handle(workflow_id)
    found: list[dict[str, Any]] = await handle.query(WAITING_QUERY)
    waiting = {
        str(facts["proposal"]): {**facts, "workflow": workflow_id} for facts in found
    }
    described = await handle.describe()
    for child in described.raw_description.pending_children:
        waiting.update(await list_waiting(client, child.workflow_id))
    return waiting


async def resume_workflow(
    client: Client, workflow_id: str, gate: Gate, *, wait_seconds: float = 0
) -> list[str]:
    """Wake the calls of a workflow and of its children that people have decided, and
    return their proposals: none while nobody has decided.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` until a first call is decided. A call that another process has
    woken meanwhile is left alone.
    """
    waiting = await list_waiting(client, workflow_id)
    decided = await asyncio.to_thread(collect_decisions, waiting, gate, wait_seconds)
    return [key for key in decided if await wake_call(client, waiting[key])]


async def wake_call(client: Client, facts: Mapping[str, Any]) -> bool:
    """Wake one call. False when it does not wait any more."""
    handle = client.get_workflow_handle(str(facts["workflow"]))
    try:
        await handle.execute_update(WAKE_UPDATE, str(facts["proposal"]))
    except WorkflowUpdateFailedError:
        return False
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:  # the workflow has ended
            raise
        return False
    return True
