"""Google ADK: tools that ask for a confirmation until people have decided.

    agent = LlmAgent(..., tools=[GateTool(process_refund)])
    runner = Runner(app_name=..., agent=agent, session_service=service)
    # The run ends with an `adk_request_confirmation` call; the process may end.
    await resume_session(runner, gate, user_id="ada", session_id="order_78291")

The confirmation only wakes the tool: it asks the gate for its own proposal, redeems the
grant right before the effect, and asks for a confirmation again while nobody has
decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ApprovalPending, ToolError

from .calls import NamedCall, check_call_id, check_thread, describe_words, format_result
from .coroutines import AnyTool, perform_call
from .decisions import CallDecision, collect_decisions, describe_waiting, names_proposal
from .flags import AdapterFlags

FLAGS = AdapterFlags(
    framework="google-adk",
    minimum="2.13.0",
    # ADK has no edit, but an edited call reaches the tool with its grant.
    supports_edit=True,
    partial_ok=False,
)
FLAGS.check_version("calls of custom tools ran after they were declined.")

CONFIRMATION = "adk_request_confirmation"
"""The name of the call by which ADK asks for a confirmation."""
DescribeCall = Callable[[Event | None, str], Details]
"""Takes the event with the model's calls and the id of one of them."""


def describe_call(event: Event | None, call_id: str) -> Details:
    """By default, the model's words beside its calls are the rationale of each."""
    content = event.content if event else None
    parts = content.parts if content else None
    return describe_words(" ".join(part.text for part in parts or [] if part.text))


class GateTool(BaseTool):
    """A tool of ADK from a tool of Gate or AsyncGate.

    The thread of the gate is the id of the session, the call id the model's.
    `describe` must return the same details whenever the tool runs again.
    """

    def __init__(
        self, tool: AnyTool, *, describe: DescribeCall = describe_call
    ) -> None:
        super().__init__(name=tool.name, description=tool.description or tool.name)
        self._gated = tool
        self._describe = describe

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name,
            description=self.description,
            parameters_json_schema=self._gated.schema,
        )

    async def run_async(
        self, *, args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any]:
        """The result, or why there is none, for the model. Raises ValueError for a
        call or a session that the gate could not name, DuplicateCallId for an id that
        stands twice in a response."""
        call = name_call(tool_context, self._describe)
        try:
            found = await perform_call(self._gated, args, call)
        except ApprovalPending as pending:
            waiting = describe_waiting(pending.proposal, call.call_id)
            tool_context.request_confirmation(hint=waiting["url"], payload=waiting)
            # Ends the run; ADK would give the model this answer and go on.
            tool_context.actions.skip_summarization = True
            return {"status": "People have not decided yet."}
        except (ToolError, InvalidArguments) as error:
            return {"error": str(error)}
        return {"result": format_result(found)}


def name_call(context: ToolContext, describe: DescribeCall) -> NamedCall:
    """The call that a tool is running."""
    event = find_calling_event(context.session.events, context.function_call_id)
    ids = [call.id for call in event.get_function_calls()] if event else []
    call_id = check_call_id(context.function_call_id, ids)
    thread = check_thread(context.session.id, "the session's id")
    return NamedCall(thread, call_id, describe(event, call_id))


def find_calling_event(events: Sequence[Event], call_id: str | None) -> Event | None:
    """The newest event in which a model made this call."""
    for event in reversed(events):
        if any(call.id == call_id for call in event.get_function_calls()):
            return event
    return None


async def resume_session(
    runner: Runner,
    gate: Gate,
    *,
    user_id: str,
    session_id: str,
    wait_seconds: float = 0,
) -> list[Event] | None:
    """Resume the session when people have decided all that waits in it, and return the
    events of the run. None when something is still undecided, or nothing waits.

    Any process may call this, at any time and as often as it likes, also after a crash.
    It waits for at most `wait_seconds` for each call. ADK goes on with the model as
    soon as one call is answered, so all of them are answered at once.
    """
    session = await runner.session_service.get_session(
        app_name=runner.app_name, user_id=user_id, session_id=session_id
    )
    waiting = list_waiting(session.events if session else [])
    parts = []
    for confirmation, value in waiting.items():
        decided = await asyncio.to_thread(
            collect_decisions, {confirmation: value}, gate, wait_seconds
        )
        if confirmation not in decided:
            return None
        parts.append(build_confirmation(confirmation, decided[confirmation]))
    if not parts:
        return None
    message = types.Content(role="user", parts=parts)
    return [
        event
        async for event in runner.run_async(
            user_id=user_id, session_id=session_id, new_message=message
        )
    ]


def build_confirmation(call_id: str, decision: CallDecision) -> types.Part:
    """The answer to one confirmation. The tool itself tells the model why a call has no
    effect."""
    return types.Part(
        function_response=types.FunctionResponse(
            id=call_id,
            name=CONFIRMATION,
            response={"confirmed": not decision.refusal},
        )
    )


def list_waiting(events: Sequence[Event]) -> dict[str, Mapping[str, Any]]:
    """What waits for the gate, as `describe_waiting` has it, by the id of its
    confirmation."""
    payloads: dict[str, Any] = {
        str(call.id): ((call.args or {}).get("toolConfirmation") or {}).get("payload")
        for call in list_confirmations(events)
    }
    return {key: value for key, value in payloads.items() if names_proposal(value)}


def list_confirmations(events: Sequence[Event]) -> list[types.FunctionCall]:
    """The calls of `adk_request_confirmation` that wait. One waits until its tool has
    run after the answer, so that a run that died on the way is resumed too."""
    waiting: dict[str | None, types.FunctionCall] = {}
    answered: set[str | None] = set()
    for event in events:
        responses = {found.id for found in event.get_function_responses()}
        if event.author == "user":
            answered |= responses & waiting.keys()
        else:
            ran = {key for key in answered if read_original(waiting[key]) in responses}
            answered -= ran
            waiting = {key: call for key, call in waiting.items() if key not in ran}
        calls = event.get_function_calls()
        waiting |= {call.id: call for call in calls if call.name == CONFIRMATION}
    return list(waiting.values())


def read_original(confirmation: types.FunctionCall) -> str | None:
    """The id of the call that a confirmation is about."""
    original = (confirmation.args or {}).get("originalFunctionCall") or {}
    return original.get("id")
