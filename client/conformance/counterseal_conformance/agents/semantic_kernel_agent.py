"""Semantic Kernel: an agent whose filter of automatic calls ends the run while nobody
has answered, bare, or through Counterseal's adapter."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, ClassVar

os.environ["AZURE_TELEMETRY_DISABLED"] = "true"  # before the import

from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.chat_completion_client_base import (
    ChatCompletionClientBase,
)
from semantic_kernel.contents import ChatHistory, ChatMessageContent, TextContent
from semantic_kernel.contents.function_call_content import FunctionCallContent
from semantic_kernel.contents.function_result_content import FunctionResultContent
from semantic_kernel.contents.utils.author_role import AuthorRole
from semantic_kernel.filters.filter_types import FilterTypes
from semantic_kernel.functions import KernelFunctionFromMethod, KernelPlugin
from semantic_kernel.functions.function_result import FunctionResult
from semantic_kernel.functions.kernel_function_decorator import kernel_function

from counterseal_client.adapters.semantic_kernel import (
    PLUGIN,
    GateTools,
    NestedAgent,
    RunPaused,
    continue_run,
    describe_call,
    list_calls,
    resume_agent,
)
from counterseal_client.gate import Gate

from ..scripting import DONE, WORDS, Script, Turn, find_turn
from ..worker import Job, Pending, Report
from .driver import APPROVAL, ASK, ERASE, PausedDriver, Step
from .toolbox import DELEGATE, GatedBox, build_toolbox


class ScriptedService(ChatCompletionClientBase):
    SUPPORTS_FUNCTION_CALLING: ClassVar[bool] = True
    script: Any

    async def _inner_get_chat_message_contents(
        self, chat_history: ChatHistory, settings: Any
    ) -> list[ChatMessageContent]:
        said = {
            item.id
            for message in chat_history.messages
            for item in message.items
            if isinstance(item, FunctionResultContent)
        }
        return [build_message(find_turn(self.script, said))]


def build_message(calls: Turn) -> ChatMessageContent:
    """The model's message with these calls; its last words without any."""
    items = [
        FunctionCallContent(
            id=call["id"],
            name=f"{PLUGIN}-{call['name']}",
            arguments=json.dumps(call["args"]),
        )
        for call in calls
    ]
    words = TextContent(text=WORDS if calls else DONE)
    return ChatMessageContent(role=AuthorRole.ASSISTANT, items=[words, *items])


class Driver(PausedDriver):
    """The agent of one job, with its paused run in a file. A filter may change the
    arguments of a call, but not its function."""

    calls_in = "history"

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._agent, self._tools = build_agents(job, self.gated)

    def start_run(self) -> Step:
        return self._keep(self._agent.get_response(ASK))

    def resume_gated(self, gate: Gate) -> Step:
        paused, seconds = (
            RunPaused.from_dict(self.load()["paused"]),
            self.job.wait_seconds,
        )
        run = resume_agent(self._agent, paused, self._tools, gate, wait_seconds=seconds)
        return self._keep(run)

    def resume_bare(self) -> Step:
        self._tools.answers = self.job.answers
        return self.go_on(self.load())

    def approve_all(self, older: Any) -> Step:
        self._approve_bare()
        return self.go_on(older)

    def send_raw(self) -> Step:
        self._approve_bare()
        return super().send_raw()

    def _approve_bare(self) -> None:
        if self.gated is None:
            self._tools.answers = {"*": APPROVAL}

    def build_redirection(self) -> Any:
        return ChatHistory(messages=[build_message([ERASE])]).serialize()

    def go_on(self, stored: Mapping[str, Any]) -> Step:
        paused = RunPaused.from_dict(stored["paused"])
        return self._keep(continue_run(self._agent, paused, self._tools))

    async def _keep(self, run: Any) -> None:
        """Await a run and store how it stands; nothing if it did not go on."""
        try:
            found = await run
        except RunPaused as paused:
            self.save({"paused": paused.to_dict(), "history": paused.history})
        else:
            if found is None:
                return
            history = ChatHistory()
            async for message in found.thread.get_messages():
                history.add_message(message)
            self.save({"paused": None, "history": history.serialize()})

    def read_report(self) -> Report:
        kept = self.load()
        messages = ChatHistory.restore_chat_history(kept["history"]).messages
        results = [
            item
            for message in messages
            for item in message.items
            if isinstance(item, FunctionResultContent)
        ]
        answered = {result.id for result in results}
        return Report(
            "suspended" if kept["paused"] else "finished",
            pending=[
                Pending(call.id, call.function_name, call.id, call.parse_arguments())
                for message in messages
                for call in list_calls(message)
                if call.id not in answered
            ],
            values=kept["paused"]["waiting"] if kept["paused"] else [],
            replies=[str(result.result) for result in results],
            final="" if kept["paused"] else str(messages[-1].content),
        )


class BareTools:
    """The functions without the gate, and a filter that ends the run while a call has
    no answer."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.answers: dict[str, Any] = {}
        self.nested: dict[str, Any] = {}

    def add_to(self, kernel: Kernel) -> Kernel:
        functions = [
            KernelFunctionFromMethod(wrap_method(function), PLUGIN)
            for function in build_toolbox(self._job).functions.values()
        ]
        kernel.add_plugin(KernelPlugin(name=PLUGIN, functions=functions))
        kernel.add_filter(FilterTypes.AUTO_FUNCTION_INVOCATION, self._run_filter)
        return kernel

    async def _run_filter(self, context: Any, next: Any) -> None:
        self._job.ledger.mark("asked")
        if not self.answers:
            raise RunPaused(context.chat_history.serialize(), [])
        given = replace(self._job, answers=self.answers).find_answer(context.arguments)
        if given["verdict"] == "reject":
            text = given.get("reason") or "No."
            metadata = context.function.metadata
            context.function_result = FunctionResult(function=metadata, value=text)
            return
        context.arguments.update(given.get("args") or {})
        await next(context)


def wrap_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the kernel; a method itself cannot be marked as one."""

    @wraps(method)
    def run(**arguments: Any) -> Any:
        return method(**arguments)

    return kernel_function(run)


def build_agents(job: Job, gated: GatedBox | None) -> tuple[Any, Any]:
    """The agent and its tools; a nested agent sits behind the function `delegate`."""
    if gated is None:
        bare = BareTools(job)
        agent = build_assistant(job.script, bare.add_to(Kernel()), "delegate")
        if not job.nested:
            return agent, bare
        kernel = Kernel()
        kernel.add_plugin(agent, plugin_name=PLUGIN)
        script = [[{**DELEGATE[0][0], "args": {"messages": "Send it."}}]]
        return build_assistant(script, kernel, "outer"), bare

    tools, describe = list(gated.tools.values()), gated.extend(describe_call)
    inner = GateTools(tools, thread=job.thread, describe=describe)
    agent = build_assistant(job.script, inner.add_to(Kernel()), "inner")
    if not job.nested:
        return agent, inner
    outer = GateTools(
        [], thread=job.thread, agents={"delegate": NestedAgent(agent, inner)}
    )
    return build_assistant(DELEGATE, outer.add_to(Kernel()), "outer"), outer


def build_assistant(script: Script, kernel: Kernel, name: str) -> ChatCompletionAgent:
    service = ScriptedService(ai_model_id="scripted", script=script)
    return ChatCompletionAgent(service=service, kernel=kernel, name=name)
