"""HumanLayer: a loop of a model and its tools, bare with the calls that the package
keeps for the answer of a webhook (`create_function_call`), or with Counterseal's
decorators.

HumanLayer's hosted service has ended, so bare its backend is a table in SQLite.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from humanlayer import FunctionCall, FunctionCallSpec, FunctionCallStatus
from humanlayer import HumanLayer as BareHumanLayer
from humanlayer.core.protocol import AgentBackend, AgentStore
from pydantic import ValidationError

from counterseal_client.adapters.calls import check_call_ids
from counterseal_client.adapters.decisions import describe_waiting
from counterseal_client.adapters.humanlayer import HumanLayer
from counterseal_client.gate import Gate
from counterseal_client.tool_errors import ApprovalPending

from ..scripting import DONE, Script
from ..worker import Job, Pending, Report
from .driver import ERASE, MALFORMED, StoredDriver
from .tables import Table
from .toolbox import DELEGATE, GatedBox, build_toolbox

Call = dict[str, Any]


class RunSuspended(Exception):
    """Calls wait for people; `waiting` says which."""

    def __init__(self, waiting: list[Call]) -> None:
        self.waiting = waiting
        super().__init__("calls wait for people")


class CallStore(AgentStore[FunctionCall, FunctionCallStatus], AgentBackend):
    """The function calls of a run, in the job's SQLite file."""

    def __init__(self, job: Job) -> None:
        self._calls = Table(job.store, "calls")

    def functions(self) -> AgentStore[FunctionCall, FunctionCallStatus]:
        return self

    def add(self, item: FunctionCall) -> FunctionCall:
        """A call that is there is left as it is."""
        self._calls.add(item.call_id, item.model_dump_json())
        return self.get(item.call_id)

    def get(self, call_id: str) -> FunctionCall:
        return FunctionCall.model_validate_json(self._calls.get(call_id))

    def respond(self, call_id: str, status: FunctionCallStatus) -> FunctionCall:
        found = self.get(call_id).model_copy(update={"status": status})
        self._calls.put(call_id, found.model_dump_json())
        return found


class Driver(StoredDriver):
    """The loop of one job, with its messages in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._tools: Any = GatedTools(job, self.gated) if self.gated else BareTools(job)

    def start_run(self) -> None:
        self._run({"outer": [], "inner": [], "waiting": []})

    def repeat_run(self) -> None:
        self._run(self.load())

    def resume_gated(self, gate: Gate) -> None:
        self._run(self.load())

    def resume_bare(self) -> None:
        state = self.load()
        for call in state["waiting"]:
            self._tools.answer(call["id"], self.job.find_answer(call["args"]))
        self._run(state)

    def replay(self, older: Any) -> None:
        """Send the refused calls to the tools once more."""
        for turn in self.job.script:
            for call in turn:
                self._tools.send_again(call)

    def send_raw(self) -> None:
        """Behind the gate a call takes no answer: the approval only runs the loop
        again, a redirection is a stored call of another tool, and a malformed answer a
        message."""
        state = self.load()
        ids = self.job.interrupt_ids or [call["id"] for call in state["waiting"]]
        if self.gated is None:
            verdict = MALFORMED if self.job.raw == "malformed" else "approve"
            for call_id in ids:
                with suppress(ValidationError):
                    self._tools.answer(call_id, {"verdict": verdict})
        elif self.job.raw == "redirection":
            changed = {"name": ERASE["name"], "args": ERASE["args"]}
            state["outer"][-1]["calls"][0].update(changed)
        elif self.job.raw == "malformed":
            state["outer"].append({"role": "user", "text": MALFORMED})
        self._run(state)

    def _run(self, state: dict[str, Any]) -> None:
        loop = self._build_loop(state)
        try:
            loop()
        except RunSuspended as suspended:
            state["waiting"] = suspended.waiting
        else:
            state["waiting"] = []
        self.save(state)

    def _build_loop(self, state: dict[str, Any]) -> Callable[[], str]:
        script, messages = self.job.script, state["outer"]
        if not self.job.nested:
            return lambda: run_loop(script, messages, self._tools.perform)
        inner = state["inner"]

        def delegate(calls: list[Call]) -> list[str]:
            return [run_loop(script, inner, self._tools.perform)]

        return lambda: run_loop(DELEGATE, messages, delegate)

    def read_report(self) -> Report:
        state = self.load()
        waiting, messages = state["waiting"], state["outer"]
        done = bool(messages) and messages[-1].get("text") == DONE
        return Report(
            "finished" if done else "suspended",
            pending=[Pending.from_call(call) for call in waiting],
            values=[call["facts"] for call in waiting if "facts" in call],
            replies=[text for m in messages for text in m.get("replies", [])],
            final=DONE if done else "",
        )


def run_loop(
    script: Script, messages: list[Call], perform: Callable[[list[Call]], list[str]]
) -> str:
    """A loop of model and tools; the messages say where it goes on."""
    while True:
        turns = [message for message in messages if message["role"] == "assistant"]
        if turns and "replies" not in turns[-1]:
            turns[-1]["replies"] = perform(turns[-1]["calls"])
        if len(turns) == len(script):
            messages.append({"role": "user", "text": DONE})
            return DONE
        messages.append({"role": "assistant", "calls": script[len(turns)]})


class GatedTools:
    """Through Counterseal's decorators."""

    def __init__(self, job: Job, gated: GatedBox) -> None:
        self._hl = HumanLayer(
            gated.gate,
            run_id=job.thread,
            wait_seconds=job.wait_seconds,
            details=gated.describe(),
        )
        self._tools = {
            name: self._hl.require_approval()(function)
            for name, function in build_toolbox(job).functions.items()
        }

    def perform(self, calls: list[Call]) -> list[str]:
        check_call_ids([call["id"] for call in calls])
        texts, waiting = [], []
        for call in calls:
            try:
                texts.append(str(self.send_again(call)))
            except ApprovalPending as pending:
                facts = describe_waiting(pending.proposal, call["id"])
                waiting.append({**call, "facts": facts})
        if waiting:
            raise RunSuspended(waiting)
        return texts

    def send_again(self, call: Call) -> Any:
        with self._hl.name_call(call["id"]):
            return self._tools[call["name"]](**call["args"])


class BareTools:
    """With calls at HumanLayer's backend, under the model's ids."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._hl = BareHumanLayer(run_id=job.thread, backend=CallStore(job))
        self._box = build_toolbox(job)

    def perform(self, calls: list[Call]) -> list[str]:
        found = []
        for call in calls:
            self._job.ledger.mark("asked")
            spec = FunctionCallSpec(fn=call["name"], kwargs=call["args"])
            found.append(self._hl.create_function_call(spec, call["id"]))
        waiting = [
            call
            for call, kept in zip(calls, found, strict=True)
            if kept.status is None or kept.status.approved is None
        ]
        if waiting:
            raise RunSuspended(waiting)
        return [self._finish(kept) for kept in found]

    def _finish(self, kept: FunctionCall) -> str:
        status = FunctionCall.Completed(call=kept).as_completed()
        if not status.approved:
            return f"User denied {kept.spec.fn} with message: {status.comment}"
        return self._run(kept.spec.fn, kept.spec.kwargs)

    def _run(self, name: str, args: dict[str, Any]) -> str:
        try:
            return self._box.run(name, args)
        except ValidationError as error:
            return str(error)

    def answer(self, call_id: str, answer: dict[str, Any]) -> None:
        verdict = answer["verdict"]
        approved = {"approve": True, "reject": False}.get(verdict, verdict)
        given = {"approved": approved, "comment": answer.get("reason", "")}
        status = FunctionCallStatus.model_validate(given)
        self._hl.respond_to_function_call(call_id, status)

    def send_again(self, call: Call) -> Any:
        return self._run(call["name"], call["args"])
