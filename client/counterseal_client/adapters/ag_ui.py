"""AG-UI 1.0: tool calls that end a run with interrupts until people have decided.

    turn = await perform_turn([process_refund], messages, thread=given.thread_id)
    messages += turn.results
    yield finish_run(given, turn.interrupts)           # the run ends, and may wait

    resume = build_resume(interrupts, gate)            # later, in any process

The answers of a resume come from a client, so they only wake the calls: each asks the
gate for its own proposal and redeems the grant right before the effect.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    HumanInTheLoopCapabilities,
    Interrupt,
    ResumeEntry,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    ToolCall,
    ToolCallResultEvent,
    ToolMessage,
)

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.models import Proposal
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ApprovalPending, ToolError

from .calls import (
    NamedCall,
    check_call_id,
    check_thread,
    describe_words,
    format_result,
    parse_arguments,
)
from .coroutines import AnyTool, perform_call, withdraw_proposal
from .decisions import collect_decisions, describe_waiting
from .flags import AdapterFlags

FLAGS = AdapterFlags(framework="ag-ui-protocol", minimum="1.0.0", resume="http")
FLAGS.check_version("they have no interrupts.")

CAPABILITIES = HumanInTheLoopCapabilities(
    supported=True, approvals=True, interrupts=True, approve_with_edits=False
)
"""What an agent of this adapter declares: edits come from the gate, never from a
client."""
REASON = "tool_call"
NO_ANSWER: dict[str, Any] = {"type": "object", "additionalProperties": False}
"""The schema of an answer: the gate has the decision, so there is nothing to say."""

DescribeCall = Callable[[AssistantMessage, str], Details]
"""Takes the model's message and the id of one of its calls."""


class ResumeRefused(ValueError):
    """The answers of a run do not answer each open interrupt exactly once. Nothing was
    performed."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What became of the calls of a message: their results for the model, and the
    interrupts of those that wait for people."""

    results: list[ToolMessage]
    interrupts: list[Interrupt]

    def build_events(self) -> list[ToolCallResultEvent]:
        """The events that show the results to the client."""
        return [
            ToolCallResultEvent(
                message_id=result.id,
                tool_call_id=result.tool_call_id,
                content=str(result.content),
                role="tool",
            )
            for result in self.results
        ]


def describe_call(message: AssistantMessage, call_id: str) -> Details:
    """By default, the model's words beside its calls are the rationale of each."""
    return describe_words(message.content if isinstance(message.content, str) else "")


def find_open_calls(
    messages: Sequence[Any],
) -> tuple[AssistantMessage | None, list[ToolCall]]:
    """The model's newest message and its calls that have no result yet; None without
    such a message."""
    done: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            done.add(message.tool_call_id)
        elif isinstance(message, AssistantMessage) and message.tool_calls:
            calls = [call for call in message.tool_calls if call.id not in done]
            return message, calls
    return None, []


async def perform_turn(
    tools: Iterable[AnyTool],
    messages: Sequence[Any],
    *,
    thread: str,
    describe: DescribeCall = describe_call,
    subagent_run_id: str | None = None,
) -> Turn:
    """Propose or perform the open calls of these tools of Gate or AsyncGate, without a
    wait for people. Calls of other tools are left alone.

    `thread` names the run at the gate, as `thread_id` of the input does for AG-UI; a
    nested agent takes its parent's, and says its own id as `subagent_run_id`.
    `describe` must return the same details whenever a call comes again. Raises
    ValueError for a call or a run that the gate could not name, DuplicateCallId for an
    id that stands twice in the message, before anything is proposed, and ApiError when
    the gate refuses a call as it is, for example because its arguments were changed.
    """
    known = {tool.name: tool for tool in tools}
    message, calls = find_open_calls(messages)
    if message is None:
        return Turn([], [])
    check_thread(thread, "thread")
    ids = [call.id for call in message.tool_calls or []]
    named = [
        NamedCall(thread, check_call_id(call_id, ids), describe(message, call_id))
        for call_id in ids
    ]
    answers = await asyncio.gather(
        *(
            attempt_open_call(known[call.function.name], call, name)
            for call, name in zip(message.tool_calls or [], named, strict=True)
            if call in calls and call.function.name in known
        )
    )
    interrupts = [
        build_interrupt(answer.proposal, call_id, subagent_run_id)
        for call_id, answer in answers
        if isinstance(answer, ApprovalPending)
    ]
    results = [
        ToolMessage(id=uuid.uuid4().hex, tool_call_id=call_id, content=answer)
        for call_id, answer in answers
        if isinstance(answer, str)
    ]
    return Turn(results, interrupts)


async def attempt_open_call(
    tool: AnyTool, call: ToolCall, name: NamedCall
) -> tuple[str, str | ApprovalPending]:
    """The id of a call, and its result for the model, or that people decide on it."""
    try:
        arguments = parse_arguments(tool.name, call.function.arguments)
        return call.id, format_result(await perform_call(tool, arguments, name))
    except ApprovalPending as pending:
        return call.id, pending
    except (ToolError, InvalidArguments) as error:
        return call.id, str(error)


def build_interrupt(
    proposal: Proposal, call_id: str, subagent_run_id: str | None = None
) -> Interrupt:
    """The interrupt of a call that waits. Its id is that of the proposal, so that an
    answer to another one never fits; its metadata is what `describe_waiting` has."""
    expiry = proposal.request.expires_at if proposal.request else None
    facts = describe_waiting(proposal, call_id)
    return Interrupt(
        id=proposal.id,
        reason=REASON,
        message=f"People decide on {proposal.tool} at {facts['url']}.",
        tool_call_id=call_id,
        response_schema=NO_ANSWER,
        expires_at=expiry.isoformat() if expiry else None,
        metadata=facts,
        subagent_run_id=subagent_run_id,
    )


def finish_run(
    given: RunAgentInput, interrupts: Sequence[Interrupt] = ()
) -> RunFinishedEvent:
    """The last event of a run: it waits for these interrupts, or is a success."""
    outcome: Any = (
        RunFinishedInterruptOutcome(interrupts=list(interrupts))
        if interrupts
        else RunFinishedSuccessOutcome()
    )
    return RunFinishedEvent(
        thread_id=given.thread_id, run_id=given.run_id, outcome=outcome
    )


def check_resume(given: RunAgentInput, interrupts: Iterable[Interrupt]) -> None:
    """Refuse a run whose answers are not exactly one for each open interrupt, before
    anything of it is performed. `interrupts` are those that the agent has kept from the
    run before, its own and those of other tools. Raises ResumeRefused."""
    counts = Counter(entry.interrupt_id for entry in given.resume or [])
    known = {interrupt.id for interrupt in interrupts}
    faults = [
        *(f"{key!r} is answered twice" for key, count in counts.items() if count > 1),
        *(f"no open interrupt has the id {key!r}" for key in counts.keys() - known),
        *(f"{key!r} is not answered" for key in known - counts.keys()),
    ]
    if faults:
        raise ResumeRefused(
            f"{'; '.join(sorted(faults))}. Nothing was performed. Answer each open"
            " interrupt exactly once, and nothing else."
        )


async def withdraw_cancelled(
    tools: Iterable[AnyTool], given: RunAgentInput, interrupts: Iterable[Interrupt]
) -> None:
    """Withdraw the calls whose interrupts this run cancels. Any client may refuse a
    call so; none can approve one. Call it after `check_resume` and before
    `perform_turn`. Raises ApiError when the call is decided already."""
    known = {tool.name: tool for tool in tools}
    cancelled = {
        entry.interrupt_id
        for entry in given.resume or []
        if entry.status == "cancelled"
    }
    for interrupt in interrupts:
        tool = known.get(str((interrupt.metadata or {}).get("tool")))
        if tool is not None and interrupt.id in cancelled:
            await withdraw_proposal(tool, interrupt.id)


def build_resume(
    interrupts: Iterable[Interrupt], gate: Gate, wait_seconds: float = 0
) -> list[ResumeEntry] | None:
    """The answers that resume a run after people have decided one of its interrupts;
    None while nobody has.

    AG-UI needs all answers at once. A call that people still decide on is answered too:
    it asks the gate, and interrupts the run again. Waits for at most `wait_seconds`
    until a first call is decided.
    """
    kept = list(interrupts)
    waiting = {interrupt.id: interrupt.metadata for interrupt in kept}
    if not collect_decisions(waiting, gate, wait_seconds):
        return None
    return [
        ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload={})
        for interrupt in kept
    ]
