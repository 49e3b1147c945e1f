"""LangChain's older agents: an `AgentExecutor` with a handler that asks people, as its
documentation shows, or with Counterseal's adapter."""

from __future__ import annotations

import json
from typing import Any

from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_community.callbacks.human import (
    HumanApprovalCallbackHandler,
    HumanRejectedException,
)
from langchain_core.agents import AgentAction
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import BaseTool, StructuredTool

from counterseal_client.adapters.langchain_classic import (
    GateExecutor,
    StoredRun,
    build_nested_tool,
    build_tool,
    describe_action,
    resume_run,
    start_run,
)
from counterseal_client.operations import Details

from ..scripting import DONE, TOOL_NAMES, WORDS, Script
from ..worker import Job, Pending, Report
from .toolbox import DELEGATE, GatedBox, StoredDriver, build_toolbox, run_action

PROMPT = ChatPromptTemplate.from_messages(
    [("human", "{input}"), ("placeholder", "{agent_scratchpad}")]
)
INPUTS = {"input": "Please do it."}


class ScriptedModel(BaseChatModel):
    """Says the next turn of its script; which one that is, the history tells."""

    script: Script

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        said = {
            call["id"]
            for message in messages
            if isinstance(message, AIMessage)
            for call in message.tool_calls
        }
        turns = [turn for turn in self.script if turn[0]["id"] not in said]
        message = AIMessage(WORDS, tool_calls=turns[0]) if turns else AIMessage(DONE)
        return ChatResult(generations=[ChatGeneration(message=message)])


class Undecided(Exception):
    """A call without an answer, which ends the run of the bare executor."""

    def __init__(self, waiting: list[dict[str, Any]]) -> None:
        self.waiting = waiting
        super().__init__("nobody has decided")


class ClassicDriver(StoredDriver):
    """The executor of one job. Behind the gate its run is kept in a file; LangChain
    alone keeps nothing, so that a bare run begins again."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._report: Report | None = None

    def start_run(self) -> None:
        if self._gated:
            self._continue(start_run(dict(INPUTS), thread=self._job.thread))
        else:
            self._run_bare({})

    def repeat_run(self) -> None:
        if self._gated:
            self._continue(self._load())
        else:
            self._run_bare({})

    def resume_run(self) -> None:
        if self._gated is None:
            self._run_bare(self._job.answers)
            return
        executor = build_gated(self._job, self._gated)
        seconds = self._job.wait_seconds
        before = self._store.load_state()
        found = resume_run(
            executor, self._load(), self._gated.gate, wait_seconds=seconds
        )
        if found is not None:
            self._keep(found)
        if self._job.hostile:  # runs an older copy of the run
            kept = self._store.load_state()
            self._continue(StoredRun.from_dict(json.loads(before)))
            self._store.save_state(kept)

    def send_raw(self) -> None:
        """Behind the gate a run takes no answer: the approval only runs
        it again, a redirection is a stored call of another tool, and a malformed answer
        a stored run without its inputs."""
        raw = self._job.raw
        if self._gated is None:
            self._run_bare({"*": {"verdict": "approve"} if raw == "approval" else raw})
            return
        run = self._load()
        if raw == "redirection":
            action = run.turns[-1].actions[0]
            action.tool, action.tool_input = "erase_note", {"to": "ann"}
        elif raw == "malformed":
            run.inputs.clear()
        kept = self._store.load_state()
        try:
            self._continue(run)
        except KeyError:  # the prompt has no input
            self._store.save_state(kept)

    def _load(self) -> StoredRun:
        return StoredRun.from_dict(json.loads(self._store.load_state()))

    def _keep(self, run: StoredRun) -> None:
        self._store.save_state(json.dumps(run.to_dict()))

    def _continue(self, run: StoredRun) -> None:
        assert self._gated is not None
        self._keep(build_gated(self._job, self._gated).continue_run(run))

    def _run_bare(self, answers: dict[str, Any]) -> None:
        executor = build_bare(self._job, answers)
        self._store.save_state(json.dumps({"begun": True}))
        try:
            found = executor.invoke(INPUTS)
        except Undecided as undecided:
            waiting = [
                Pending("", c["name"], c["id"], c["args"]) for c in undecided.waiting
            ]
            self._report = Report("suspended", pending=waiting)
        except HumanRejectedException as rejected:
            self._report = Report("failed", error=str(rejected))
        else:
            replies = [str(text) for _, text in found["intermediate_steps"]]
            self._report = Report("finished", replies=replies, final=found["output"])

    def read_report(self) -> Report:
        if self._report is not None:
            return self._report
        if self._gated is None:
            # Nothing is stored but that the run once began.
            return Report("suspended" if self._store.load_state() else "failed")
        run = self._load()
        return Report(
            "finished" if run.output else "suspended",
            pending=[
                Pending(facts["proposal"], facts["tool"], facts["tool_call_id"], {})
                for facts in run.waiting
            ],
            values=list(run.waiting),
            replies=[text for turn in run.turns for text in turn.texts.values()],
            final=run.output["output"] if run.output else "",
        )


def build_agent_runnable(script: Script, tools: list[BaseTool]) -> Any:
    """The agent of the documentation, with the scripted model."""
    return create_tool_calling_agent(ScriptedModel(script=script), tools, PROMPT)


def build_gated(job: Job, gated: GatedBox) -> GateExecutor:
    """The executor with the gate's tools. A nested one runs in the tool `delegate` with
    a stored run of its own."""

    def describe(action: AgentAction) -> Details:
        return gated.add_details(describe_action(action))

    tools: list[BaseTool] = [build_tool(tool) for tool in gated.tools.values()]
    agent = build_agent_runnable(job.script, tools)
    inner = GateExecutor(agent=agent, tools=tools, describe=describe)
    if not job.nested:
        return inner
    delegate = build_nested_tool(inner, "delegate", "Hand a task on.")
    outer = build_agent_runnable(DELEGATE, [delegate])
    return GateExecutor(agent=outer, tools=[delegate], describe=describe)


def build_bare(job: Job, answers: dict[str, Any]) -> AgentExecutor:
    """The executor with a handler that asks people."""
    box = build_toolbox(job)
    tools: list[BaseTool] = [
        StructuredTool.from_function(getattr(box, name)) for name in TOOL_NAMES
    ]
    calls = [call for turn in job.script for call in turn]

    def approve(text: str) -> bool:
        job.ledger.mark("asked")
        call = next((c for c in calls if str(c["args"]) == text), calls[0])
        given = answers.get(str(call["args"].get("to", ""))) or answers.get("*")
        if given is None:
            raise Undecided(calls)
        return bool(given["verdict"] == "approve")

    handler = HumanApprovalCallbackHandler(approve=approve)
    handler.raise_error = True
    for tool in tools:
        tool.callbacks = [handler]
    agent = build_agent_runnable(job.script, tools)
    executor = AgentExecutor(agent=agent, tools=tools, return_intermediate_steps=True)
    if not job.nested:
        return executor

    def delegate(task: str) -> str:
        """Hand a task on."""
        return str(executor.invoke({"input": task})["output"])

    nested = StructuredTool.from_function(delegate)
    outer = build_agent_runnable(DELEGATE, [nested])
    return AgentExecutor(agent=outer, tools=[nested], return_intermediate_steps=True)


class ClassicAgent:
    """The executor, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        return run_action(ClassicDriver(job), job)


def build_agent(variant: str) -> ClassicAgent:
    """The executor; there is one variant."""
    return ClassicAgent()
