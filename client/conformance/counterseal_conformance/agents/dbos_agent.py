"""DBOS: a workflow of a model and its tools, each call a workflow of its own that waits
for a message, bare as the documentation shows, or through Counterseal's adapter."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pickle
import time
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from multiprocessing.util import Finalize
from typing import Any

from dbos import DBOS, Serializer, SetWorkflowID

from counterseal_client.adapters.calls import check_call_ids
from counterseal_client.adapters.dbos import (
    WAITING_EVENT,
    build_workflow,
    list_waiting,
    resume_workflow,
)

from ..scripting import DONE, get_turn
from ..worker import Job, Pending, Report
from .driver import RAW, DriverBase
from .toolbox import DELEGATE, GatedBox, build_toolbox

FOREVER = 10 * 365 * 24 * 60 * 60.0
POLL_SECONDS = 0.05
STATE_EVENT = "state"
ENDED = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")


class JsonSerializer(Serializer):
    """Keeps values as JSON, which a check can change, and anything else as DBOS does by
    default."""

    def serialize(self, data: Any) -> str:
        try:
            return json.dumps(data)
        except TypeError:
            return "pickle:" + b64encode(pickle.dumps(data)).decode()

    def deserialize(cls, serialized_data: str) -> Any:
        head, _, tail = serialized_data.partition("pickle:")
        if tail and not head:
            return pickle.loads(b64decode(tail))  # noqa: S301 - the kit's own file
        return json.loads(serialized_data)


class Driver(DriverBase):
    """DBOS in one process, with its database in SQLite. The process ends at once, as a
    signal ends it: `DBOS.destroy` would record the cancelled wait of a workflow as its
    error."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._sent: set[str] = set()
        config: Any = {
            "name": "kit",
            "system_database_url": f"sqlite:///{job.store}",
            "executor_id": "kit",
            "application_version": "kit",
            "serializer": JsonSerializer(),
            "notification_listener_polling_interval_sec": 0.05,
            "log_level": "CRITICAL",
        }
        DBOS(config=config)
        logging.getLogger("dbos").setLevel(logging.CRITICAL)
        self._loop = build_loop(job, self.gated)
        self._marks = job.ledger.count_marks()

    def run(self) -> Report:
        Finalize(None, os._exit, args=(0,), exitpriority=0)
        DBOS.launch()
        if action := self.find_action():
            action()
        while self._is_busy():
            time.sleep(POLL_SECONDS)
        return self.read_report()

    def start_run(self) -> None:
        with SetWorkflowID(self.job.thread):
            DBOS.start_workflow(self._loop, self.job.nested)

    def repeat_run(self) -> None:
        """DBOS recovers at launch what was running."""
        while self.job.ledger.count_marks() <= self._marks:
            time.sleep(POLL_SECONDS)

    def resume_run(self) -> None:
        """Hostile code is a part of the workflow."""
        if self.gated:
            seconds = self.job.wait_seconds
            woken = resume_workflow(
                self.job.thread, self.gated.gate, wait_seconds=seconds
            )
            self._sent = {facts["topic"] for facts in woken}
            return
        for key, facts in self._list_bare().items():
            answer = self.job.find_answer(facts["call"]["args"])
            self._tell(key, "answer", answer)

    def send_raw(self) -> None:
        """Behind the gate the message has no answer: the approval is the message
        itself, a redirection names another tool in it, a malformed one is a text."""
        for key in self.job.interrupt_ids or self._list_ids():
            workflow, _, topic = key.partition("|")
            self._tell(workflow, topic or "answer", RAW[self.job.raw])

    def _tell(self, workflow: str, topic: str, message: Any) -> None:
        DBOS.send(workflow, message, topic)
        self._sent.add(topic if self.gated else workflow)

    def _list_ids(self) -> list[str]:
        if self.gated:
            waiting = list_waiting(self.job.thread)
            return [f"{w['workflow']}|{w['topic']}" for w in waiting.values()]
        return list(self._list_bare())

    def _list_bare(self) -> dict[str, dict[str, Any]]:
        """The bare calls that wait, by their workflows, which the first one started."""
        return {
            child.workflow_id: facts
            for child in DBOS.list_workflows(parent_workflow_id=self.job.thread)
            if child.status not in ENDED
            and (facts := DBOS.get_event(child.workflow_id, WAITING_EVENT, 0))
        }

    def _is_busy(self) -> bool:
        """Whether anything goes on by itself: the loop thinks, or a call neither waits
        nor has ended."""
        status = DBOS.get_workflow_status(self.job.thread)
        if status is None or status.status in ENDED:
            return False
        return self._has_work(self.job.thread)

    def _has_work(self, loop: str) -> bool:
        state = DBOS.get_event(loop, STATE_EVENT, 0) or {"started": 0}
        children = DBOS.list_workflows(parent_workflow_id=loop, load_input=False)
        if not state["started"] or len(children) < state["started"]:
            return True
        alive = [child for child in children if child.status not in ENDED]
        return not alive or any(self._goes_on(child) for child in alive)

    def _goes_on(self, child: Any) -> bool:
        if child.name == "run_loop":
            return self._has_work(child.workflow_id)
        facts = DBOS.get_event(child.workflow_id, WAITING_EVENT, 0)
        name = facts and (facts["topic"] if self.gated else child.workflow_id)
        return facts is None or name in self._sent

    def read_report(self) -> Report:
        status = DBOS.get_workflow_status(self.job.thread)
        assert status is not None
        state = DBOS.get_event(self.job.thread, STATE_EVENT, 0) or {}
        replies = state.get("replies", [])
        if status.status != "SUCCESS" and status.status in ENDED:
            return Report("failed", replies=replies, error=repr(status.error))
        values: list[dict[str, Any]] = []
        if self.gated:
            values = [*list_waiting(self.job.thread).values()]
            pending = [
                Pending.from_facts(f"{facts['workflow']}|{facts['topic']}", facts)
                for facts in values
            ]
        else:
            pending = [
                Pending(key, call["name"], call["id"], call["args"])
                for key, facts in self._list_bare().items()
                for call in [facts["call"]]
            ]
        done = status.status == "SUCCESS"
        return Report(
            "finished" if done else "suspended",
            pending=pending,
            values=values,
            replies=replies,
            final=DONE if done else "",
        )


Perform = Callable[[dict[str, Any]], Awaitable[Any]]
"""Starts the workflow of a call and returns its handle."""


def build_loop(job: Job, gated: GatedBox | None) -> Callable[[bool], Awaitable[str]]:
    """The workflow of model and tools. As the outer one, its only tool runs another."""
    start_call = start_gated_calls(job, gated) if gated else start_bare_calls(job)

    async def think(outer: bool, turn: int) -> list[dict[str, Any]]:
        return get_turn(DELEGATE if outer else job.script, turn)

    @DBOS.workflow(name="run_loop")
    async def run_loop(outer: bool) -> str:
        replies: list[str] = []
        started, turn = 0, 0
        while calls := await DBOS.run_step_async({}, think, outer, turn):
            if gated:
                check_call_ids([call["id"] for call in calls])
            started += len(calls)
            state = {"started": started, "replies": replies}
            await DBOS.set_event_async(STATE_EVENT, state)
            handles = [
                await DBOS.start_workflow_async(run_loop, False)
                if call["name"] == "delegate"
                else await start_call(call)
                for call in calls
            ]
            replies += [str(await handle.get_result()) for handle in handles]
            if job.hostile:  # sends the refused calls to their tools once more
                started += len(calls)
                state = {"started": started, "replies": replies}
                await DBOS.set_event_async(STATE_EVENT, state)
                again = [await start_call({**call, "forced": True}) for call in calls]
                replies += [str(await handle.get_result()) for handle in again]
            turn += 1
        state = {"started": started, "replies": replies}
        await DBOS.set_event_async(STATE_EVENT, state)
        return DONE

    return run_loop


def start_gated_calls(job: Job, gated: GatedBox) -> Perform:
    """Starts calls through the adapter."""
    workflows = {name: build_workflow(tool) for name, tool in gated.tools.items()}

    async def start_call(call: dict[str, Any]) -> Any:
        return await DBOS.start_workflow_async(
            workflows[call["name"]],
            call["args"],
            thread=job.thread,
            call_id=call["id"],
            details=gated.describe(),
        )

    return start_call


def start_bare_calls(job: Job) -> Perform:
    """Starts calls that wait for a message, as the documentation shows."""
    box = build_toolbox(job)

    async def run_tool(name: str, args: dict[str, Any]) -> str:
        return await asyncio.to_thread(box.run, name, args)

    @DBOS.workflow(name="run_bare_call")
    async def run_bare_call(call: dict[str, Any]) -> str:
        args = call["args"]
        if "forced" not in call:
            job.ledger.mark("asked")
            await DBOS.set_event_async(WAITING_EVENT, {"call": call})
            answer = await DBOS.recv_async("answer", timeout_seconds=FOREVER)
            await DBOS.set_event_async(WAITING_EVENT, None)
            if answer["verdict"] == "reject":
                return f"Rejected: {answer.get('reason', '')}"
            args = answer.get("args") or args
        return await DBOS.run_step_async({}, run_tool, call["name"], args)

    async def start_call(call: dict[str, Any]) -> Any:
        return await DBOS.start_workflow_async(run_bare_call, call)

    return start_call
