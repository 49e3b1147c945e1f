"""Turn the validated body of an agent's call into the input of an operation. The tool's
own reader is called here, before any lock; the agent is never the source of what a
reader says."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from journal import canonical, ids
from journal.errors import (
    IdempotencyKeyMissing,
    InvalidArgs,
    InvalidInput,
    TooLarge,
    ToolNotAllowed,
    build_field_error,
)
from policies import active, tool_descriptions, tools
from policies.documents import TOOL_NAME
from policies.models import PolicyVersion, Tool
from policies.tool_descriptions import NOTHING_SAID, ToolDescription
from reviews import redaction
from reviews.evidence import files
from reviews.redaction.redactor import load_redactor
from reviews.requests.proposals import ProposalOrigin
from reviews.requests.revisions import Narrative
from reviews.stops import stops
from reviews.tool_services import readers
from reviews.tool_services.readers import Asker, ToolReading

from . import delegation, idempotency
from .checkpoints import SuspendedState
from .idempotency import CallKey
from .models import Agent
from .proposals import ProposalInput, check_caps, load_agent_usage
from .schemas.proposals import (
    ARGS_LIMIT,
    STATE_LIMIT,
    WORDS_LIMIT,
    ActionIn,
    CheckpointIn,
    ProposalIn,
)
from .webhooks import endpoints


def parse_call_key(header: str | None, method: str, path: str, body: Any) -> CallKey:
    """Return the call's idempotency key with the fingerprint of its body. Raises
    IdempotencyKeyMissing without a header, InvalidInput for one that is too long."""
    text = parse_key_header(header)
    if not text:
        raise IdempotencyKeyMissing
    return CallKey(text, idempotency.compute_fingerprint(method, path, body))


def parse_key_header(header: str | None) -> str:
    """Return the header's text, or "" without one. Raises InvalidInput if it is too
    long."""
    if header and len(header) > idempotency.MAX_KEY_LENGTH:
        longest = f"at most {idempotency.MAX_KEY_LENGTH} characters"
        raise InvalidInput(errors=[build_field_error("Idempotency-Key", longest)])
    return header or ""


def check_key_contents(key: CallKey) -> None:
    """Raise InvalidInput for a key that holds personal data or a credential, which must
    not be stored. Call this only for an unused key: a used one is stored already."""
    check_identifiers({"Idempotency-Key": key.text})


def build_proposal_input(agent: Agent, body: ProposalIn) -> ProposalInput:
    """Check a new proposal, ask the tool's reader, and build the operation's input.
    Raises TooLarge, InvalidInput, AgentStopped, ToolNotAllowed, AgentRateLimited,
    InvalidArgs. Caller holds no transaction."""
    _check_size(body)
    check_identifiers(
        {
            "thread": body.thread,
            **_drop_proposal_ids(parent=body.parent, supersedes=body.supersedes),
            "group": body.group,
            "source": body.source,
            **_collect_resume_at(body),
        }
    )
    state, usage = load_agent_usage(agent, body.thread, body.tool)
    _check_evidence_count(body, state.policy)
    stops.check_run_may_propose(state.mode, agent.slug, body.thread)
    tool = tools.find_current_tool(body.tool, state.policy)
    # A proposal of an unknown tool is answered with `blocked` and logged as an attempt.
    # The log keeps the tool's name for good, so the name is checked first.
    if tool is None:
        _check_tool_name(body.tool)
    if tool is not None and not agent.may_propose(body.tool):
        raise ToolNotAllowed
    # An agent over its caps must put no load on the tool's service, and take no locks.
    check_caps(usage)
    on_behalf_of = _dump_on_behalf_of(body)
    behind = delegation.build_delegation(agent, on_behalf_of, body.parent)
    asker = Asker(agent.slug, body.thread)
    reading = read_tool_state(tool, body.args, body.preconditions, asker)
    if body.callback_url is not None:
        endpoints.check_url(body.callback_url, "callback_url")
    return ProposalInput(
        thread=body.thread,
        tool=body.tool,
        args=body.args,
        preconditions=body.preconditions,
        uncertain=float(body.uncertain),
        narrative=_build_narrative(agent, body),
        origin=ProposalOrigin(
            barred=behind.barred,
            kept_out=behind.kept_out,
            on_behalf_of=on_behalf_of,
            parent=body.parent,
            supersedes=body.supersedes,
            group=body.group,
            priority=body.priority,
            source=body.source,
            again=body.again,
            expires_in=body.expires_in,
            traceparent=body.traceparent or "",
        ),
        resembles=behind.resembles,
        claimed=behind.claimed,
        suspended=_build_suspended_state(body.checkpoint),
        reading=reading,
        callback_url=body.callback_url or "",
        policy=state.policy,
        described=NOTHING_SAID if tool else _build_tool_description(agent, body),
    )


def build_revision_input(
    agent: Agent, thread: str, tool_name: str, body: ActionIn
) -> ProposalInput:
    """Check a revision, ask the tool's reader, and build the operation's input. Raises
    TooLarge, InvalidInput, ToolNotAllowed, InvalidArgs. Caller holds no transaction."""
    _check_size(body)
    policy = active.find_active_policy()
    _check_evidence_count(body, policy)
    check_identifiers(_collect_resume_at(body))
    tool = tools.find_current_tool(tool_name, policy)
    if tool is not None and not agent.may_propose(tool_name):
        raise ToolNotAllowed  # an administrator took the tool away since the proposal
    asker = Asker(agent.slug, thread)
    reading = read_tool_state(tool, body.args, body.preconditions, asker)
    return ProposalInput(
        thread=thread,
        tool=tool_name,
        args=body.args,
        preconditions=body.preconditions,
        uncertain=float(body.uncertain),
        narrative=_build_narrative(agent, body),
        origin=ProposalOrigin(expires_in=body.expires_in),
        suspended=_build_suspended_state(body.checkpoint),
        reading=reading,
    )


def read_tool_state(
    tool: Tool | None,
    args: dict[str, Any],
    preconditions: Mapping[str, Any],
    asker: Asker,
) -> ToolReading | None:
    """Ask the tool's reader about these arguments; None for an unknown tool. Raises
    InvalidArgs for arguments that violate the tool's schema and for undeclared
    preconditions: a reader is never asked about those. Caller holds no transaction."""
    if tool is None:
        return None
    definition = tools.load_definition(tool)
    problems = list(tools.list_argument_errors(tool, args))
    for name in preconditions:
        if name not in definition.preconditions:  # no reader could ever confirm it
            rule = "the tool declares no such precondition"
            problems.append(build_field_error(f"preconditions.{name}", rule))
    if problems:
        raise InvalidArgs(errors=problems)
    return readers.read_state(definition, args, asker=asker)


def _check_size(body: ActionIn) -> None:
    """Raise TooLarge: every byte of these is redacted, stored and shown to people."""
    state = body.checkpoint.state if body.checkpoint else {}
    aside = {"args", "checkpoint", "tool_description"}
    texts = body.model_dump(mode="json", exclude=aside)
    for what, value, limit in (
        ("The arguments are", body.args, ARGS_LIMIT),
        ("The checkpoint's state is", state, STATE_LIMIT),
        ("Rationale, evidence and other texts are", texts, WORDS_LIMIT),
    ):
        if len(canonical.encode(value)) > limit:
            size = f"{limit // 1024} KiB"
            raise TooLarge(f"{what} larger than {size}. Nothing was proposed.")


def _check_evidence_count(body: ActionIn, policy: PolicyVersion | None) -> None:
    if policy is None:
        return
    most = active.load_document(policy).evidence_items
    if len(body.evidence) > most:
        message = f"at most {most} items: {len(body.evidence)} were given"
        raise InvalidInput(errors=[build_field_error("evidence", message)])


def _drop_proposal_ids(**names: str) -> dict[str, str]:
    """Drop the values that are proposal ids. The gate made those, so they hold no
    personal data, but one in 50,000 has the shape of an IBAN or a phone number."""
    return {key: text for key, text in names.items() if not ids.is_id(text, "p")}


def _collect_resume_at(body: ActionIn) -> dict[str, str]:
    if body.checkpoint is None:
        return {}
    return {"checkpoint.resume_at": body.checkpoint.resume_at}


def check_identifiers(fields: Mapping[str, str]) -> None:
    """Raise InvalidInput for a name that holds what redaction would remove from a text.
    A name is compared or returned exactly as it was given, so it cannot be redacted."""
    errors = []
    for path, text in fields.items():
        if kinds := " or ".join(redaction.list_kinds(text)):
            rule = f"must not contain {kinds}: it is stored without redaction"
            errors.append(build_field_error(path, rule))
    if errors:
        raise InvalidInput(errors=errors)


def _check_tool_name(name: str) -> None:
    if not re.fullmatch(TOOL_NAME, name):
        rule = "must be letters, digits, dots, dashes and _, beginning with a letter"
        raise InvalidInput(errors=[build_field_error("tool", rule)])
    check_identifiers({"tool": name})


def _build_tool_description(agent: Agent, body: ProposalIn) -> ToolDescription:
    """What the agent says of an undeclared tool, redacted: equal texts of an agent are
    equal in each of its runs."""
    given = body.tool_description
    if given is None:
        return NOTHING_SAID
    described = tool_descriptions.build_description(given.text, given.arguments)
    redactor = load_redactor(agent.slug, "")
    # What is redacted may be longer than what was sent.
    text = redactor.text(described.text)[: tool_descriptions.LONGEST_TEXT]
    return replace(described, text=text, schema=redactor.foreign(described.schema))


def _build_narrative(agent: Agent, body: ActionIn) -> Narrative:
    """Raises InvalidInput for a file that the agent has not sent."""
    return Narrative(
        rationale=body.rationale,
        expected_outcome=body.expected_outcome,
        reversal=body.reversal,
        alternatives=[item.model_dump() for item in body.alternatives],
        evidence=files.attach_files(
            agent.slug, [item.model_dump() for item in body.evidence]
        ),
    )


def _dump_on_behalf_of(body: ProposalIn) -> dict[str, Any]:
    party = body.on_behalf_of.model_dump() if body.on_behalf_of else {}
    if not party.get("properties"):
        party.pop("properties", None)
    return party


def _build_suspended_state(checkpoint: CheckpointIn | None) -> SuspendedState | None:
    if checkpoint is None:
        return None
    blob = checkpoint.blob
    return SuspendedState(
        summary=checkpoint.summary,
        state=checkpoint.state,
        blob=None if blob is None else base64.b64decode(blob),
        resume_at=checkpoint.resume_at,
    )
