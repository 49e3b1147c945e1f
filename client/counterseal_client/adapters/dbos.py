"""DBOS: calls as workflows of their own that wait, with nothing but rows in DBOS's
database, until people have decided.

    refund = build_workflow(process_refund)        # before DBOS.launch()

    @DBOS.workflow()
    async def run_agent(order: str) -> str:
        return await refund(arguments, thread=order, call_id=...)

    resume_workflow("order_78291", gate)           # later, in any process

A step of the call asks the gate for its own proposal and redeems the grant right before
the effect. The message that wakes it says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from dbos import DBOS, DBOSClient

from counterseal_client.gate import Gate
from counterseal_client.operations import Details

from .attempts import AskGate, attempt_call, build_request
from .coroutines import AnyTool
from .decisions import collect_decisions
from .flags import AdapterFlags

FLAGS = AdapterFlags(framework="dbos", minimum="3.4.0", binds_request=False)
FLAGS.check_version("the adapter was not tested with a release before it.")

WAITING_EVENT = "counterseal_waiting"
ASK_AGAIN_SECONDS = 24 * 60 * 60.0
"""After this time without a message, a call asks the gate by itself."""
PAUSE_SECONDS = 10.0
"""Between attempts while the gate cannot be reached, or an earlier attempt has the
effect."""
ACTIVE = ["PENDING", "ENQUEUED", "DELAYED"]


class CallWorkflow(Protocol):
    """A workflow of DBOS that performs one call and returns the result, or why there is
    none, for the model."""

    async def __call__(
        self,
        arguments: dict[str, Any],
        *,
        thread: str,
        call_id: str,
        details: Details | None = None,
    ) -> str: ...


def build_workflow(tool: AnyTool) -> CallWorkflow:
    """Build and register the workflow of a tool of Gate or AsyncGate, before
    `DBOS.launch()`.

    Await it in an async workflow, or start several with `DBOS.start_workflow_async`.
    `thread` names the run at the gate; `details` are those of the proposal. It raises
    ValueError for a call that the gate could not name, and ApiError when the gate
    refuses the call as it is, for example because its arguments were changed.
    """

    async def attempt(request: dict[str, Any]) -> dict[str, Any]:
        return await attempt_call(tool, request)

    # Each start of a process recovers what waits, and that is no sign of a fault.
    @DBOS.workflow(name=f"counterseal.{tool.name}", max_recovery_attempts=None)
    async def perform(
        arguments: dict[str, Any],
        *,
        thread: str,
        call_id: str,
        details: Details | None = None,
    ) -> str:
        request = build_request(thread, call_id, arguments, details)
        options: Any = {"name": "counterseal.attempt"}

        async def ask_gate() -> dict[str, Any]:
            return await DBOS.run_step_async(options, attempt, request)

        answer = await ask_gate()
        wakes = 0
        while "text" not in answer:
            if "again" in answer:
                await DBOS.sleep_async(PAUSE_SECONDS)
                answer = await ask_gate()
            else:
                answer = await wait_for_people(answer["waiting"], wakes, ask_gate)
                wakes += 1
        return str(answer["text"])

    return cast("CallWorkflow", perform)


async def wait_for_people(
    facts: dict[str, Any], wakes: int, ask_gate: AskGate
) -> dict[str, Any]:
    """Wait for a message about this proposal, and return the next answer of the gate.
    Each wait has a topic of its own, so that a late message wakes nothing.

    People may decide before the workflow shows that it waits, and their decision then
    wakes nobody. So the gate is asked once more before the wait begins.
    """
    topic = f"{facts['proposal']}:{wakes}"
    await DBOS.set_event_async(WAITING_EVENT, {**facts, "topic": topic})
    answer = await ask_gate()
    undecided = "waiting" in answer
    if undecided:
        await DBOS.recv_async(topic, timeout_seconds=ASK_AGAIN_SECONDS)
    await DBOS.set_event_async(WAITING_EVENT, None)
    return await ask_gate() if undecided else answer


def list_waiting(
    workflow_id: str, client: DBOSClient | type[DBOS] = DBOS
) -> dict[str, dict[str, Any]]:
    """What waits for people in a workflow and in those that it started, by proposal,
    each with the id of its workflow. `client` reads from outside of a launched DBOS."""
    waiting: dict[str, dict[str, Any]] = {}
    level = [workflow_id]
    while level:
        for found in level:
            facts = client.get_event(found, WAITING_EVENT, 0)
            if facts is not None:
                waiting[str(facts["proposal"])] = {**facts, "workflow": found}
        children = client.list_workflows(
            parent_workflow_id=level, status=ACTIVE, load_input=False
        )
        level = [child.workflow_id for child in children]
    return waiting


def resume_workflow(
    workflow_id: str,
    gate: Gate,
    *,
    wait_seconds: float = 0,
    client: DBOSClient | type[DBOS] = DBOS,
) -> list[dict[str, Any]]:
    """Wake the calls of a workflow that people have decided, and return them as
    `list_waiting` has them: none while nobody has decided.

    Any process may call this, at any time and as often as it likes; an async one in a
    thread. It waits for at most `wait_seconds` until a first call is decided.
    """
    waiting = list_waiting(workflow_id, client)
    decided = collect_decisions(waiting, gate, wait_seconds)
    for proposal in decided:
        wake_call(waiting[proposal], client)
    return [waiting[proposal] for proposal in decided]


def wake_call(facts: Mapping[str, Any], client: DBOSClient | type[DBOS] = DBOS) -> None:
    """Let a call ask the gate again. A repeated message is kept once."""
    workflow, topic = str(facts["workflow"]), str(facts["topic"])
    key = f"{workflow}:{topic}"
    client.send(workflow, "", topic, idempotency_key=key)
