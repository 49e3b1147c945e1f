"""Semantic Kernel: an agent whose filter of automatic calls ends the run while nobody
has answered, bare, or through Counterseal's adapter."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
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
from counterseal_client.operations import Details

from ..scripting import DONE, TOOL_NAMES, WORDS, Script
from ..worker import Job, Pending, Report
from .toolbox import (
    DELEGATE,
    GatedBox,
    StoredDriver,
    build_toolbox,
    find_answer,
    run_action,
)

ERASE = {"id": "call_1", "name": "erase_note", "args": {"to": "ann"}}


class ScriptedService(ChatCompletionClientBase):
    """Says the next turn of its script; which one that is, the history tells."""

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
        turns = [turn for turn in self.script if turn[0]["id"] not in said]
        return [build_message((turns or [[]])[0])]


def build_message(calls: list[dict[str, Any]]) -> ChatMessageContent:
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


class SemanticKernelDriver(StoredDriver):
    """The agent of one job, with its paused run in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._agent, self._tools = build_agents(job, self._gated)

    def start_run(self) -> None:
        self._run(self._agent.get_response("Please do it."))
        kept = self._load()
        self._store.save_state(json.dumps({**kept, "first": kept}))

    def repeat_run(self) -> None:
        self._continue(self._load()["paused"])

    def resume_run(self) -> None:
        before = self._load()["paused"]
        if self._gated is None:
            self._tools.answers = self._job.answers
            self._continue(before)
        else:
            run = resume_agent(
                self._agent,
                RunPaused.from_dict(before),
                self._tools,
                self._gated.gate,
                wait_seconds=self._job.wait_seconds,
            )
            self._run(run)
        if self._job.hostile:
            self._replay(before)

    def _replay(self, before: dict[str, Any]) -> None:
        """Hostile: go on from an older state, as if all was approved."""
        kept = self._store.load_state()
        if self._gated is None:
            self._tools.answers = {"*": {"verdict": "approve"}}
        self._continue(before)
        self._store.save_state(kept)

    def send_raw(self) -> None:
        """A filter may change the arguments of a call, but not its
        function, so a redirection is a stored call of another one. A malformed answer
        is a stored history that is none."""
        kept = self._load()
        if self._gated is None:
            self._tools.answers = {"*": {"verdict": "approve"}}
        paused = kept["paused"]
        if self._job.interrupt_ids:
            self._replay(kept["first"]["paused"])
            return
        if self._job.raw == "redirection":
            history = ChatHistory(messages=[build_message([ERASE])])
            paused["history"] = history.serialize()
        if self._job.raw == "malformed":
            paused["history"] = "yes, please"
        self._continue(paused)

    def _continue(self, paused: dict[str, Any]) -> None:
        found = RunPaused.from_dict(paused)
        self._run(continue_run(self._agent, found, self._tools))

    def _run(self, run: Any) -> None:
        asyncio.run(self._keep(run))

    async def _keep(self, run: Any) -> None:
        """Await a run and store how it stands; nothing if it did not go on."""
        text = self._store.load_state()
        kept = json.loads(text) if text else {}
        try:
            found = await run
        except RunPaused as paused:
            kept |= {"paused": paused.to_dict(), "history": paused.history}
        else:
            if found is None:
                return
            history = ChatHistory()
            async for message in found.thread.get_messages():
                history.add_message(message)
            kept |= {"paused": None, "history": history.serialize()}
        self._store.save_state(json.dumps(kept))

    def _load(self) -> dict[str, Any]:
        kept: dict[str, Any] = json.loads(self._store.load_state())
        return kept

    def read_report(self) -> Report:
        kept = self._load()
        paused = kept["paused"]
        messages = ChatHistory.restore_chat_history(kept["history"]).messages
        results = [
            item
            for message in messages
            for item in message.items
            if isinstance(item, FunctionResultContent)
        ]
        answered = {result.id for result in results}
        return Report(
            "suspended" if paused else "finished",
            pending=[
                Pending(call.id, call.function_name, call.id, call.parse_arguments())
                for message in messages
                for call in list_calls(message)
                if call.id not in answered
            ],
            values=paused["waiting"] if paused else [],
            replies=[str(result.result) for result in results],
            final="" if paused else str(messages[-1].content),
        )


class BareTools:
    """The functions without the gate, and a filter that ends the run while a call has
    no answer."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.answers: dict[str, Any] = {}
        self.nested: dict[str, Any] = {}

    def add_to(self, kernel: Kernel) -> Kernel:
        box = build_toolbox(self._job)
        functions = [
            KernelFunctionFromMethod(wrap_method(getattr(box, name)), PLUGIN)
            for name in TOOL_NAMES
        ]
        kernel.add_plugin(KernelPlugin(name=PLUGIN, functions=functions))
        kernel.add_filter(FilterTypes.AUTO_FUNCTION_INVOCATION, self._run_filter)
        return kernel

    async def _run_filter(self, context: Any, next: Any) -> None:
        self._job.ledger.mark("asked")
        if not self.answers:
            raise RunPaused(context.chat_history.serialize(), [])
        job = self._job
        given = self.answers.get(str(context.arguments.get("to", "")))
        given = given or self.answers.get("*") or find_answer(job, context.arguments)
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

    def describe(message: ChatMessageContent, call_id: str) -> Details:
        return gated.add_details(describe_call(message, call_id))

    tools = list(gated.tools.values())
    inner = GateTools(tools, thread=job.thread, describe=describe)
    agent = build_assistant(job.script, inner.add_to(Kernel()), "inner")
    if not job.nested:
        return agent, inner
    outer = GateTools(
        [], thread=job.thread, agents={"delegate": NestedAgent(agent, inner)}
    )
    return build_assistant(DELEGATE, outer.add_to(Kernel()), "outer"), outer


def build_assistant(script: Script, kernel: Kernel, name: str) -> ChatCompletionAgent:
    """An agent that says the script."""
    service = ScriptedService(ai_model_id="scripted", script=script)
    return ChatCompletionAgent(service=service, kernel=kernel, name=name)


class SemanticKernelAgent:
    """The agent, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        return run_action(SemanticKernelDriver(job), job)


def build_agent(variant: str) -> SemanticKernelAgent:
    """The agent; there is one variant."""
    return SemanticKernelAgent()
