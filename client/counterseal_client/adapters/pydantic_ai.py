"""Pydantic AI: tools that end the run with `DeferredToolRequests` until people have
decided.

    refund = build_tool(process_refund)            # for Agent(tools=[...])
    result = agent.run_sync(..., conversation_id="order_78291")
    save(result.conversation)                      # the process may end
    result = resume_agent(agent, conversation, gate)   # later, in any process

An approval in `DeferredToolResults` only wakes the tool: it asks the gate for its own
proposal, redeems the grant right before the effect, and is deferred again while nobody
has decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import (
    DeferredToolRequests,
    DeferredToolResults,
    ToolApproved,
    ToolDenied,
)

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ApprovalPending, ToolError

from .calls import NamedCall, check_call_id, check_thread, describe_words, format_result
from .coroutines import AnyTool, perform_call
from .decisions import collect_decisions, describe_waiting, names_proposal
from .flags import AdapterFlags

FLAGS = AdapterFlags(framework="pydantic-ai-slim", minimum="2.68.0")
FLAGS.check_version("the adapter was not tested with a release before it.")

NESTED = "counterseal_nested"

PausingAgent: TypeAlias = Agent[Any, Any]
DescribeCall = Callable[[ModelResponse, str], Details]
"""Takes the model's response and the id of one of its calls."""


def describe_call(response: ModelResponse, call_id: str) -> Details:
    """By default, the model's words beside its calls are the rationale of each."""
    return describe_words(response.text or "")


def build_tool(tool: AnyTool, *, describe: DescribeCall = describe_call) -> Tool[Any]:
    """Build a tool of Pydantic AI from a tool of Gate or AsyncGate.

    The thread of the gate is the run's `conversation_id`, the call id the model's. The
    agent needs `DeferredToolRequests` among its output types. `describe` must return
    the same details whenever the tool is called again.
    """

    async def run(ctx: RunContext[Any], **arguments: Any) -> str:
        call = name_call(ctx, describe)
        with translate_errors(call):
            return format_result(await perform_call(tool, arguments, call))

    # The arguments are checked by the tool itself, in the same way before and after an
    # approval.
    return Tool.from_schema(
        run,
        name=tool.name,
        description=tool.description or tool.name,
        json_schema=tool.schema,
        takes_ctx=True,
    )


@contextmanager
def translate_errors(call: NamedCall) -> Iterator[None]:
    """Raise what Pydantic AI makes of a call without a result: it is deferred, the
    model corrects its arguments, or the model reads why there is none."""
    try:
        yield
    except ApprovalPending as pending:
        facts = describe_waiting(pending.proposal, call.call_id)
        raise ApprovalRequired(facts) from pending
    except InvalidArguments as error:
        raise ModelRetry(str(error)) from error
    except ToolError as error:
        raise ToolFailed(str(error)) from error


def name_call(ctx: RunContext[Any], describe: DescribeCall) -> NamedCall:
    """The call that a tool is running. Raises ValueError for a call or a run that the
    gate could not name, DuplicateCallId for an id that stands twice in a response."""
    response = find_calling_response(ctx.messages, ctx.tool_call_id)
    ids = (call.tool_call_id for call in response.tool_calls)
    call_id = check_call_id(ctx.tool_call_id, ids)
    thread = check_thread(ctx.conversation_id or "", "conversation_id")
    return NamedCall(thread, call_id, describe(response, call_id))


def find_calling_response(
    messages: Sequence[ModelMessage], call_id: str | None
) -> ModelResponse:
    """The newest response that has this call; an empty one if the history was cut."""
    for message in reversed(messages):
        if isinstance(message, ModelResponse) and any(
            call.tool_call_id == call_id for call in message.tool_calls
        ):
            return message
    return ModelResponse(parts=[])


def resume_agent(
    agent: PausingAgent,
    conversation: Conversation,
    gate: Gate,
    *,
    wait_seconds: float = 0,
    others: DeferredToolResults | None = None,
    deps: Any = None,
) -> AgentRunResult[Any] | None:
    """Resume the conversation where people have decided, and return the result of the
    run, whose conversation replaces the stored one. None when nobody has decided yet.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` for each call, until one can go on. `others` answers the
    deferred calls that are not the gate's: Pydantic AI takes all answers at once.
    """
    results = build_results(conversation, gate, wait_seconds)
    if results is None:
        return None
    if others is not None:
        results.update(others)
    return agent.run_sync(
        conversation=conversation, deferred_tool_results=results, deps=deps
    )


def build_results(
    conversation: Conversation, gate: Gate, wait_seconds: float = 0
) -> DeferredToolResults | None:
    """The answers to the gate's calls of this conversation; None while none of them is
    decided.

    A call that people still decide on is answered too, since Pydantic AI needs all
    answers at once: its tool asks the gate, and is deferred again.
    """
    results = wake_calls(conversation)
    calls = {
        key: value
        for found in list_waiting(conversation).values()
        for key, value in _list_calls(found)
    }
    decided = collect_decisions(calls, gate, wait_seconds)
    for call_id in results.approvals.keys() & decided.keys():
        decision = decided[call_id]
        results.answered_by[call_id] = decision.by
        if decision.refusal:
            results.approvals[call_id] = ToolDenied(decision.refusal)
    return results if decided else None


def wake_calls(conversation: Conversation) -> DeferredToolResults:
    """Answers that only wake the tools of the gate in this conversation: each asks it,
    and is deferred again while nobody has decided. An async program resumes so."""
    own = list_waiting(conversation)
    return DeferredToolResults(
        approvals={call_id: ToolApproved() for call_id in own},
        metadata={key: _answer_metadata(value) for key, value in own.items()},
    )


def list_waiting(conversation: Conversation) -> dict[str, Mapping[str, Any]]:
    """The metadata of the deferred calls that wait for the gate, by call id."""
    requests = conversation.deferred_tool_requests or DeferredToolRequests()
    found = {
        call.tool_call_id: requests.metadata.get(call.tool_call_id, {})
        for call in requests.approvals
    }
    return {key: value for key, value in found.items() if any(_list_calls(value))}


def _list_calls(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The gate's calls in the metadata of a deferred call: itself, or those of the
    agent that is nested in it."""
    if names_proposal(metadata):
        yield str(metadata["tool_call_id"]), metadata
    for inner in metadata.get(NESTED, {}).get("waiting", []):
        yield from _list_calls(inner)


def _answer_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What the tool finds in `ctx.tool_call_metadata`: its proposal's id, or the stored
    run of the agent that is nested in it."""
    if names_proposal(metadata):
        return {"proposal": metadata["proposal"]}
    return {NESTED: metadata[NESTED]}


async def run_nested(
    agent: PausingAgent, ctx: RunContext[Any], prompt: str, *, deps: Any = None
) -> Any:
    """Run another agent inside a tool and return its output.

    When a call of that agent waits for people, the tool's own call is deferred, with
    the nested conversation in its metadata; after a resume the nested agent goes on
    from there. It runs in the conversation of the outer agent, so that a stop of the
    run stops both.
    """
    saved = (ctx.tool_call_metadata or {}).get(NESTED)
    if saved is None:
        conversation_id = ctx.conversation_id
        result = await agent.run(prompt, conversation_id=conversation_id, deps=deps)
    else:
        conversation = ConversationTypeAdapter.validate_python(saved["conversation"])
        result = await agent.run(
            conversation=conversation,
            deferred_tool_results=wake_calls(conversation),
            deps=deps,
        )
    if not isinstance(result.output, DeferredToolRequests):
        return result.output
    kept = ConversationTypeAdapter.dump_python(result.conversation, mode="json")
    waiting = list(result.output.metadata.values())
    raise ApprovalRequired({NESTED: {"conversation": kept, "waiting": waiting}})
