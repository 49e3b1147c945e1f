"""Prefect: calls in a flow that suspends, with no process that waits, until people have
decided.

    @flow(persist_result=True)
    def run_agent(order: str) -> str:
        (text,) = perform_calls([GateCall(process_refund, arguments, call_id=...)])
        return text

    resume_flow(flow_run_id, gate)                 # later, in any process

A resumed flow runs again from its top: the task of a call asks the gate for its own
proposal and redeems the grant right before the effect. A resumption says nothing, and
the flow suspends again while nobody has decided.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.context import FlowRunContext
from prefect.exceptions import NotPausedError
from prefect.flow_runs import resume_flow_run, suspend_flow_run

from counterseal_client.gate import Gate
from counterseal_client.gated_tools import GatedTool
from counterseal_client.operations import Details

from .attempts import attempt_call, build_request
from .calls import check_call_ids
from .decisions import collect_decisions
from .flags import AdapterFlags

FLAGS = AdapterFlags(framework="prefect", minimum="3.9.1", binds_request=False)
FLAGS.check_version("the adapter was not tested with a release before it.")

WAITING_KEY = "counterseal-waiting"
RETRIES = 30
RETRY_SECONDS = 10
"""Between attempts while the gate cannot be reached, or an earlier attempt has the
effect."""
SUSPEND_SECONDS = 10.0
"""How long a resumption waits for a flow run that is about to suspend."""
POLL_SECONDS = 0.2


class TryAgain(Exception):
    """The same attempt must come again; the text says why."""


@dataclass(frozen=True, slots=True)
class GateCall:
    """A call of the model. `details` are those of the proposal."""

    tool: GatedTool[..., Any]
    arguments: dict[str, Any]
    call_id: str
    details: Details | None = None


def perform_calls(calls: Sequence[GateCall], *, thread: str = "") -> list[str]:
    """Perform the calls of one message of the model, in a flow, and return the result
    of each, or why there is none, for the model. While one of them waits for people,
    the flow suspends; those that people have decided are performed before that.

    `thread` names the run at the gate; the default is the id of the flow run. Call it
    in the flow itself, not in a task or a subflow: Prefect does not suspend those.
    Raises ValueError for calls that the gate could not name, before any of them runs,
    and ApiError when the gate refuses a call as it is.
    """
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise RuntimeError("Call perform_calls in a flow run: only that can suspend.")
    check_call_ids([call.call_id for call in calls])
    name = thread or str(context.flow_run.id)
    requests = [
        build_request(name, call.call_id, call.arguments, call.details)
        for call in calls
    ]
    answers = attempt_calls(calls, requests)
    while waiting := list_undecided(answers):
        with get_client(sync_client=True) as client:
            keep_waiting(client, context.flow_run.id, waiting)
        # A decision before the calls were listed has resumed nothing: ask once more.
        answers = attempt_calls(calls, requests)
        if list_undecided(answers) == waiting:
            # Each key is new: Prefect goes on at once from one that it has seen.
            suspend_flow_run(timeout=None, key=f"counterseal-{uuid.uuid4().hex}")
    return [str(answer["text"]) for answer in answers]


def attempt_calls(
    calls: Sequence[GateCall], requests: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Attempt each call once, as `attempt_call` does."""
    return [
        attempt_in_task(call.tool, request)
        for call, request in zip(calls, requests, strict=True)
    ]


def list_undecided(answers: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The facts of those calls that wait for people."""
    return [answer["waiting"] for answer in answers if "waiting" in answer]


def attempt_in_task(tool: GatedTool[..., Any], request: dict[str, Any]) -> Any:
    """An attempt as a task under the tool's name, whose result Prefect never reuses:
    the gate keeps it."""

    def attempt() -> dict[str, Any]:
        answer = asyncio.run(attempt_call(tool, request))
        if "again" in answer:
            raise TryAgain(answer["again"])
        return answer

    run = task(
        attempt,
        name=tool.name,
        cache_policy=NO_CACHE,
        persist_result=False,
        retries=RETRIES,
        retry_delay_seconds=RETRY_SECONDS,
        retry_condition_fn=lambda task, run, state: isinstance(
            state.result(raise_on_failure=False), TryAgain
        ),
    )
    return run()


def keep_waiting(
    client: SyncPrefectClient, flow_run_id: uuid.UUID, waiting: list[dict[str, Any]]
) -> None:
    """Keep what waits beside the flow run, in place of what waited before."""
    if read_kept(client, flow_run_id):
        client.delete_flow_run_input(flow_run_id, WAITING_KEY)
    client.create_flow_run_input(flow_run_id, WAITING_KEY, json.dumps(waiting))


def read_kept(client: SyncPrefectClient, flow_run_id: uuid.UUID) -> list[str]:
    """What `keep_waiting` kept: one text, or none."""
    found = client.filter_flow_run_input(flow_run_id, WAITING_KEY, 1, set())
    return [kept.value for kept in found]


def list_waiting(flow_run_id: uuid.UUID) -> dict[str, dict[str, Any]]:
    """What waits for people in a flow run that is suspended, or about to be, by
    proposal, as `describe_waiting` has it."""
    with get_client(sync_client=True) as client:
        state = client.read_flow_run(flow_run_id).state
        if state is None or not (state.is_paused() or state.is_running()):
            return {}
        kept = read_kept(client, flow_run_id)
    return {facts["proposal"]: facts for text in kept for facts in json.loads(text)}


def resume_flow(
    flow_run_id: uuid.UUID, gate: Gate, *, wait_seconds: float = 0
) -> list[str]:
    """Resume a suspended flow run where people have decided, and return the decided
    proposals: none while nobody has decided. A worker of Prefect then runs the flow.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` until a first call is decided.
    """
    waiting = list_waiting(flow_run_id)
    decided = collect_decisions(waiting, gate, wait_seconds)
    return list(decided) if decided and resume_suspended(flow_run_id) else []


def resume_suspended(flow_run_id: uuid.UUID) -> bool:
    """Resume a flow run that is suspended, or suspends within SUSPEND_SECONDS. False
    when it does not: it goes on by itself, or another process has resumed it."""
    deadline = time.monotonic() + SUSPEND_SECONDS
    while True:
        try:
            resume_flow_run(flow_run_id)
        except NotPausedError:
            if time.monotonic() > deadline or not is_running(flow_run_id):
                return False
            time.sleep(POLL_SECONDS)
        else:
            return True


def is_running(flow_run_id: uuid.UUID) -> bool:
    """Whether a worker runs the flow now."""
    with get_client(sync_client=True) as client:
        state = client.read_flow_run(flow_run_id).state
    return state is not None and state.is_running()
