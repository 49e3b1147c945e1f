"""What the hook does about one event: it lets a free call pass, proposes any other one
and answers with the decision, and reports what became of a call that ran."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from typing import Any

from ..errors import ApiError, CountersealError
from ..gate import Gate
from ..models import Claim, Proposal
from ..operations import Details
from ..signatures import build_call_key
from ..tool_errors import build_tool_error
from ..tools import SETTLED_AT_REDEEM
from . import stored_calls
from .free_calls import find_workspace, is_free
from .gate_tools import GateAction, build_action, build_input
from .hook_inputs import HookInput

SOURCE = "claude-code"
EXIT_CODE = re.compile(r"Exit code \d+\b")
"""How Claude Code begins the error of a command that ran to its end."""


def is_gated(call: HookInput, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a call that is about to run needs the gate."""
    return not is_free(call, find_workspace(call, environment))


def answer_call(
    gate: Gate, call: HookInput, seconds: float, *, defer: bool = False
) -> dict[str, Any]:
    """The hook's answer to a call that needs the gate, after at most that many seconds
    of waiting for people. Raises what the client raises."""
    action = build_action(call)
    waiting = _name_waiting(gate, call, action)
    end = time.monotonic() + seconds
    proposal = _find_proposal(gate, call, action, waiting)
    while not proposal.final:
        if proposal.grant is not None:
            stored_calls.remove_waiting(waiting)
            claim = _redeem(gate, proposal.grant.token)
            if claim is not None:
                return _allow(gate, call, action, claim)
        left = end - time.monotonic()
        if proposal.returned or left <= 0:
            stored_calls.save_waiting(waiting, proposal.id)
            if defer and not proposal.returned:
                return _build_answer("defer", _describe_waiting(proposal))
            return _build_answer("deny", _describe_waiting(proposal))
        proposal = gate.wait(proposal.id, left)
    stored_calls.remove_waiting(waiting)
    if proposal.status == "executed":
        text = "It was performed already. Do not call it again."
        return _build_answer("deny", f"{proposal.tool}: {text}")
    return _build_answer("deny", str(build_tool_error(proposal, "")))


def report_call(gate: Gate, call: HookInput, kept: stored_calls.StoredClaim) -> None:
    """Report what became of a call that ran under a claim."""
    claim = kept.build_claim()
    facts: dict[str, Any] = {}
    if call.duration_ms is not None:
        facts["duration_ms"] = call.duration_ms
    ended = EXIT_CODE.match(call.error)
    if stored_calls.build_digest(call.tool_input) != kept.input_digest:
        detail = "It ran with input that differs from what was approved."
        gate.report(claim, "unknown", code="input_changed", detail=detail)
    elif call.hook_event_name == "PostToolUse":
        gate.report(claim, "succeeded", result={"ended": "success", **facts})
    elif call.tool_name == "Bash" and ended and not call.is_interrupt:
        # The approved command ran; that it complains is its result.
        gate.report(claim, "succeeded", result={"ended": ended[0], **facts})
    else:
        gate.report(claim, "unknown", code="tool_failed", detail=call.error)
    stored_calls.remove_claim(name_claim(call))


def name_claim(call: HookInput) -> str:
    """The name of the call's claim on this machine."""
    called = call.tool_use_id or build_action(call).args
    return stored_calls.build_digest(call.session_id, call.tool_name, called)


def _name_waiting(gate: Gate, call: HookInput, action: GateAction) -> str:
    connection = gate.operations.connection
    called = (call.session_id, action.tool, dict(action.args))
    return stored_calls.build_digest(connection.url, connection.key, *called)


def _find_proposal(
    gate: Gate, call: HookInput, action: GateAction, waiting: str
) -> Proposal:
    """The proposal that an equal call of this session waits for, or a new one."""
    if earlier := stored_calls.load_waiting(waiting):
        try:
            return gate.get(earlier)
        except ApiError as error:
            if error.code != "not_found":
                raise
            stored_calls.remove_waiting(waiting)
    details: Details = {"source": SOURCE}
    if action.rationale:
        details["rationale"] = action.rationale
    call_id = call.tool_use_id or stored_calls.build_digest(
        action.tool, dict(action.args)
    )
    return gate.propose(
        call.session_id,
        action.tool,
        action.args,
        idempotency_key=build_call_key(call.session_id, call_id),
        **details,
    )


def _redeem(gate: Gate, token: str) -> Claim | None:
    """The claim, or None when a check right before the effect refused it or another run
    of the hook has it. The proposal says what follows."""
    try:
        return gate.redeem(token)
    except ApiError as error:
        if error.code not in SETTLED_AT_REDEEM:
            raise
    time.sleep(0.5)  # what the gate has settled is read next
    return None


def _allow(
    gate: Gate, call: HookInput, action: GateAction, claim: Claim
) -> dict[str, Any]:
    """Let the call run with the approved input, under the stored claim."""
    approved = build_input(call, claim.args) if claim.tool == action.tool else None
    if approved is None:
        detail = "The approval is for another tool or folder than the call's."
        gate.report(claim, "failed", code="not_performed", detail=detail)
        text = f"{action.tool}: {detail} Approved was: {dict(claim.args)}"
        return _build_answer("deny", text)
    try:
        stored_calls.save_claim(name_claim(call), claim, approved)
    except OSError as error:
        detail = f"The claim could not be stored: {error.strerror}."
        gate.report(claim, "failed", code="not_performed", detail=detail)
        raise CountersealError(
            detail, next_step="Make room, then try again."
        ) from error
    text = "Approved at the gate."
    if approved != call.tool_input:
        text = "A reviewer changed the input and approved that."
    answer = _build_answer("allow", text)
    answer["hookSpecificOutput"]["updatedInput"] = approved
    if approved != call.tool_input:
        context = f"{text} It runs with: {approved}"
        answer["hookSpecificOutput"]["additionalContext"] = context
    return answer


def _describe_waiting(proposal: Proposal) -> str:
    """What the model reads about a call that nobody has decided yet."""
    url = proposal.request.url if proposal.request else proposal.id
    said = [f'A reviewer asks: "{one.text}"' for one in proposal.questions]
    if proposal.returned:
        said.append(
            f'A reviewer sent it back: "{proposal.guidance}" Make the call again,'
            " changed accordingly."
        )
    again = f"People decide at {url} Ask again later: the same call resumes the same"
    return " ".join([f"{proposal.tool}: still waiting.", *said, again, "request."])


def _build_answer(decision: str, reason: str) -> dict[str, Any]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }
    }
