"""Turn the validated body of an agent's call into the input of an operation. The tool's
own reader is called here, before any lock; the agent is never the source of what a
reader says."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

from journal import canonical, clock, ids
from journal.errors import (
    FieldError,
    Invalid,
    InvalidArgs,
    KeyMissing,
    TooLarge,
    ToolNotAllowed,
    at,
)
from policies import active, tools
from policies.documents import TOOL_NAME, ToolDefinition
from policies.models import Tool
from reviews import redaction
from reviews.requests.proposals import Origin
from reviews.requests.revisions import Narrative
from reviews.stops import stops
from reviews.tool_services import readers
from reviews.tool_services.readers import Asker, Reading

from . import delegation, idempotency
from .checkpoints import Suspended
from .delegation import Delegation
from .models import Agent
from .proposals import Asked, Key, check_caps
from .schemas import (
    ARGS_LIMIT,
    STATE_LIMIT,
    WORDS_LIMIT,
    ActionIn,
    CheckpointIn,
    ProposalIn,
)
from .webhooks import endpoints


def key_of(header: str | None, method: str, path: str, body: Any) -> Key:
    """Return the call's idempotency key with the fingerprint of its body. Raises
    KeyMissing without a header, Invalid for one that is too long."""
    text = checked_key(header)
    if not text:
        raise KeyMissing
    return Key(text, idempotency.fingerprint(method, path, body))


def checked_key(header: str | None) -> str:
    """Return the header's text, or "" without one. Raises Invalid if it is too long."""
    if header and len(header) > idempotency.LONGEST_KEY:
        longest = f"at most {idempotency.LONGEST_KEY} characters"
        raise Invalid(errors=[at("Idempotency-Key", longest)])
    return header or ""


def check_key(key: Key) -> None:
    """Raise Invalid for a key that holds personal data or a credential, which must not
    be stored. Call this only for an unused key: a used one is stored already."""
    _check_identifiers({"Idempotency-Key": key.text})


def asked_to_propose(agent: Agent, body: ProposalIn) -> Asked:
    """Check a new proposal, ask the tool's reader, and build the operation's input.

    Raises TooLarge, Invalid, AgentStopped, ToolNotAllowed, TooMany, InvalidArgs. Caller
    holds no transaction.
    """
    _check_size(body)
    _check_evidence(body)
    _check_identifiers(
        {
            "thread": body.thread,
            **_without_ids(parent=body.parent, supersedes=body.supersedes),
            "group": body.group,
            "source": body.source,
            **_resume_at(body),
        }
    )
    stops.check_may_propose(agent.slug, body.thread, body.tool)
    tool = tools.current(body.tool)
    # A proposal of an unknown tool is answered with `blocked` and logged as an attempt.
    # The log keeps the tool's name for good, so the name is checked first.
    if tool is None:
        _check_tool_name(body.tool)
    if tool is not None and body.tool not in agent.tools:
        raise ToolNotAllowed
    if tool is not None and _is_asked(tools.definition(tool)):
        # An agent over its caps must not put load on the tool's service.
        check_caps(agent, clock.now())
    behind = _behind(agent, body)
    return Asked(
        thread=body.thread,
        tool=body.tool,
        args=body.args,
        preconditions=body.preconditions,
        uncertain=float(body.uncertain),
        narrative=_narrative(body),
        origin=_origin(body, behind),
        resembles=behind.resembles,
        suspended=_suspended(body.checkpoint),
        reading=look_up(
            tool, body.args, body.preconditions, Asker(agent.slug, body.thread)
        ),
        callback_url=_callback(body),
    )


def _callback(body: ProposalIn) -> str:
    """Raise Invalid for an address that Holdpoint never calls."""
    if body.callback_url is None:
        return ""
    endpoints.check(body.callback_url, "callback_url")
    return body.callback_url


def asked_to_revise(agent: Agent, thread: str, tool_name: str, body: ActionIn) -> Asked:
    """Check a revision, ask the tool's reader, and build the operation's input.

    Raises TooLarge, Invalid, ToolNotAllowed, InvalidArgs. Caller holds no transaction.
    """
    _check_size(body)
    _check_evidence(body)
    _check_identifiers(_resume_at(body))
    tool = tools.current(tool_name)
    if tool is not None and tool_name not in agent.tools:
        raise ToolNotAllowed  # an administrator took the tool away since the proposal
    return Asked(
        thread=thread,
        tool=tool_name,
        args=body.args,
        preconditions=body.preconditions,
        uncertain=float(body.uncertain),
        narrative=_narrative(body),
        origin=Origin(expires_in=body.expires_in),
        suspended=_suspended(body.checkpoint),
        reading=look_up(tool, body.args, body.preconditions, Asker(agent.slug, thread)),
    )


def look_up(
    tool: Tool | None,
    args: dict[str, Any],
    preconditions: Mapping[str, Any],
    asker: Asker,
) -> Reading | None:
    """Ask the tool's reader about these arguments; None for an unknown tool.

    Raises InvalidArgs for arguments that violate the tool's schema and for undeclared
    preconditions: a reader is never asked about those. Caller holds no transaction.
    """
    if tool is None:
        return None
    definition = tools.definition(tool)
    problems = [*tools.validate(tool, args), *_undeclared(definition, preconditions)]
    if problems:
        raise InvalidArgs(errors=problems)
    return readers.read(definition, args, asker=asker)


def _is_asked(definition: ToolDefinition) -> bool:
    """Whether a proposal of this tool calls the tool's own service."""
    return definition.reader is not None or definition.dry_run is not None


def _undeclared(
    definition: ToolDefinition, preconditions: Mapping[str, Any]
) -> list[FieldError]:
    """List an error for each precondition that the tool does not declare: no reader
    could ever confirm it."""
    return [
        at(f"preconditions.{name}", "the tool declares no such precondition")
        for name in preconditions
        if name not in definition.preconditions
    ]


def _check_size(body: ActionIn) -> None:
    """Raise TooLarge: every byte of these is redacted, stored and shown to people."""
    state = body.checkpoint.state if body.checkpoint else {}
    said = body.model_dump(mode="json", exclude={"args", "checkpoint"})
    for what, value, limit in (
        ("The arguments are", body.args, ARGS_LIMIT),
        ("The checkpoint's state is", state, STATE_LIMIT),
        ("Rationale, evidence and the rest are", said, WORDS_LIMIT),
    ):
        if len(canonical.encode(value)) > limit:
            size = f"{limit // 1024} KiB"
            raise TooLarge(f"{what} larger than {size}. Nothing was proposed.")


def _check_evidence(body: ActionIn) -> None:
    """Raise Invalid for more pieces of evidence than the policy in force allows."""
    policy = active.active_or_none()
    if policy is None:
        return
    most = active.compiled(policy).evidence_items
    if len(body.evidence) > most:
        message = f"at most {most} items: {len(body.evidence)} were given"
        raise Invalid(errors=[at("evidence", message)])


def _without_ids(**names: str) -> dict[str, str]:
    """Drop the values that are proposal ids. The gate made those, so they hold no
    personal data, but one in 50,000 has the shape of an IBAN or a phone number."""
    return {key: text for key, text in names.items() if not ids.is_one(text, "p")}


def _resume_at(body: ActionIn) -> dict[str, str]:
    if body.checkpoint is None:
        return {}
    return {"checkpoint.resume_at": body.checkpoint.resume_at}


def _check_identifiers(fields: Mapping[str, str]) -> None:
    """Raise Invalid for a name that holds what redaction would remove from a text. A
    name is compared or returned exactly as it was given, so it cannot be redacted."""
    errors = [
        at(path, _must_not_hold(kinds))
        for path, text in fields.items()
        if (kinds := redaction.kinds_in(text))
    ]
    if errors:
        raise Invalid(errors=errors)


def _must_not_hold(kinds: Sequence[str]) -> str:
    what = " or ".join(kinds)
    return f"must not hold {what}: this is stored as it is. Use a name without it."


def _check_tool_name(name: str) -> None:
    """Raise Invalid for a text that no tool could be called."""
    if not re.fullmatch(TOOL_NAME, name):
        rule = "must begin with a letter, then letters, digits, dots, dashes or _"
        raise Invalid(errors=[at("tool", rule)])
    _check_identifiers({"tool": name})


def _narrative(body: ActionIn) -> Narrative:
    return Narrative(
        rationale=body.rationale,
        expected_outcome=body.expected_outcome,
        reversal=body.reversal,
        alternatives=[item.model_dump() for item in body.alternatives],
        evidence=[item.model_dump() for item in body.evidence],
    )


def _behind(agent: Agent, body: ProposalIn) -> Delegation:
    return delegation.of_proposal(agent, _behalf(body), body.parent)


def _behalf(body: ProposalIn) -> dict[str, Any]:
    return body.on_behalf_of.model_dump() if body.on_behalf_of else {}


def _origin(body: ProposalIn, behind: Delegation) -> Origin:
    return Origin(
        barred=behind.barred,
        kept_out=behind.kept_out,
        on_behalf_of=_behalf(body),
        parent=body.parent,
        supersedes=body.supersedes,
        group=body.group,
        priority=body.priority,
        source=body.source,
        expires_in=body.expires_in,
    )


def _suspended(checkpoint: CheckpointIn | None) -> Suspended | None:
    if checkpoint is None:
        return None
    blob = checkpoint.blob
    return Suspended(
        summary=checkpoint.summary,
        state=checkpoint.state,
        blob=None if blob is None else base64.b64decode(blob),
        resume_at=checkpoint.resume_at,
    )
