"""LangChain's older agents: an `AgentExecutor` with a handler that asks people, as its
documentation shows, or with Counterseal's adapter."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_community.callbacks.human import (
    HumanApprovalCallbackHandler,
    HumanRejectedException,
)
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
from counterseal_client.gate import Gate

from ..scripting import DONE, WORDS, Script, find_turn
from ..worker import Job, Pending, Report
from .driver import APPROVAL, ASK, ERASE, StoredDriver
from .toolbox import DELEGATE, GatedBox, build_toolbox

PROMPT = ChatPromptTemplate.from_messages(
    [("human", "{input}"), ("placeholder", "{agent_scratchpad}")]
)
INPUTS = {"input": ASK}


class ScriptedModel(BaseChatModel):
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
        calls = find_turn(self.script, said)
        message = AIMessage(WORDS if calls else DONE, tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


class Undecided(Exception):
    """A call without an answer, which ends the run of the bare executor."""

    def __init__(self, waiting: list[dict[str, Any]]) -> None:
        self.waiting = waiting
        super().__init__("nobody has decided")


class Driver(StoredDriver):
    """The executor of one job. Behind the gate its run is kept in a file; LangChain
    alone keeps nothing, so that a bare run begins again."""

    _report: Report | None = None

    def start_run(self) -> None:
        if self.gated:
            self._go_on(start_run(dict(INPUTS), thread=self.job.thread))
        else:
            self._run_bare({})

    def repeat_run(self) -> None:
        if self.gated:
            self._go_on(StoredRun.from_dict(self.load()))
        else:
            self._run_bare({})

    def resume_gated(self, gate: Gate) -> None:
        run, seconds = StoredRun.from_dict(self.load()), self.job.wait_seconds
        found = resume_run(self._build_gated(), run, gate, wait_seconds=seconds)
        if found is not None:
            self.save(found.to_dict())

    def resume_bare(self) -> None:
        self._run_bare(self.job.answers)

    def approve_all(self, older: Any) -> None:
        if self.gated:
            self._go_on(StoredRun.from_dict(older))

    def send_raw(self) -> None:
        """Behind the gate a run takes no answer: the approval only runs it again, a
        redirection is a stored call of another tool, and a malformed answer a stored
        run without its inputs."""
        raw = self.job.raw
        if self.gated is None:
            self._run_bare({"*": APPROVAL if raw == "approval" else raw})
            return
        run = StoredRun.from_dict(self.load())
        if raw == "redirection":
            action = run.turns[-1].actions[0]
            action.tool, action.tool_input = ERASE["name"], ERASE["args"]
        elif raw == "malformed":
            run.inputs.clear()
        with suppress(KeyError):  # the prompt has no input
            self._go_on(run)

    def _go_on(self, run: StoredRun) -> None:
        self.save(self._build_gated().continue_run(run).to_dict())

    def _build_gated(self) -> GateExecutor:
        assert self.gated is not None
        return build_gated(self.job, self.gated)

    def _run_bare(self, answers: dict[str, Any]) -> None:
        executor = build_bare(self.job, answers)
        self.save({"begun": True})
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
        if self.gated is None:
            # Nothing is stored but that the run once began.
            return Report("suspended" if self.load() else "failed")
        run = StoredRun.from_dict(self.load())
        return Report(
            "finished" if run.output else "suspended",
            pending=[
                Pending.from_facts(facts["proposal"], facts) for facts in run.waiting
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
    describe = gated.extend(describe_action)
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
    functions = build_toolbox(job).functions.values()
    tools: list[BaseTool] = [StructuredTool.from_function(one) for one in functions]
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
