"""A Python function as a tool that the gate controls: propose, wait, redeem right
before the effect, run the function with the approved arguments, report the outcome.

Which tools there are, and who must approve, is the policy's business. A function only
says what the agent does once it holds the claim.
"""

from __future__ import annotations

import inspect
import json
import logging
import re
import secrets
import string
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from .calls import Effect, Flow, Pause
from .errors import ApiError, CountersealError, FieldError, InvalidArguments
from .files import File
from .models import Claim, Proposal
from .operations import QUICK, Details, Operations, ToolDescription
from .policy_schemas import UntakenSchema, adapt_schema
from .signatures import Signature, ToolSignature, build_call_id, build_call_key
from .tool_errors import (
    ApprovalPending,
    NothingHappened,
    ReturnedForRevision,
    build_tool_error,
)

logger = logging.getLogger("counterseal_client")

LONGEST_TEXT, LARGEST_SCHEMA = 2000, 16 * 1024
"""Characters of a description and of a schema that a proposal says of its tool."""

MOST_CHARACTERS = 300
"""The longest description and effect sentence of an entry for the policy."""

PROMPT_SECONDS = 5.0
"""How long a call that does not wait for people waits for an effect under way."""

SETTLED_AT_REDEEM = frozenset(
    {"grant_spent", "grant_expired", "precondition", "tool_changed"}
)
"""Refusals of a redeem that the proposal's own status explains."""


class ToolRisk(StrEnum):
    """How bad the effect of a tool can be, in the code's own opinion. SAFE is the
    policy's `low`, the others have the policy's names. It never replaces the policy's
    risk."""

    SAFE = "safe"
    HIGH = "high"
    CRITICAL = "critical"

    def requires_approval(self, threshold: ToolRisk) -> bool:
        """Whether this risk is at or above the threshold."""
        order = list(ToolRisk)
        return order.index(self) >= order.index(threshold)


def require_person(details: Details, risk: ToolRisk, threshold: ToolRisk) -> Details:
    """The details of a proposal that a person must decide on if the risk is at or above
    the threshold. `uncertain` is the one field by which an agent may raise the
    authority that is asked for; nothing lowers it."""
    if not risk.requires_approval(threshold):
        return details
    return {**details, "uncertain": details.get("uncertain") or True}


EvidenceSource = Callable[..., Sequence[Mapping[str, Any] | File]]


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """How a tool's calls behave.

    `risk`: at or above the gate's `approval_required_risk`, a person is asked even if
    the policy would not ask one. `wait_seconds`: for how long a call waits for people;
    None waits until the request ends. `audience`: if given, each call also verifies the
    signature of its grant for this audience (`Gate.verify_grant`). `evidence`: a
    function of the tool's arguments that returns what people see beside the call, as in
    `Details.evidence`. A repeated call must get the same evidence again.
    """

    risk: ToolRisk = ToolRisk.SAFE
    wait_seconds: float | None = None
    audience: str = ""
    evidence: EvidenceSource | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool: its name at the gate is made of thread and call id.

    `lasting`: a later process can make the same call again, because its run has a
    name.
    """

    thread: str
    call_id: str
    args: Mapping[str, Any]
    details: Details
    wait_seconds: float | None
    lasting: bool = True


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What became of a call: the function's result, and the arguments that were
    performed. `edited`: a reviewer changed them."""

    value: Any
    args: Mapping[str, Any]
    edited: bool


@dataclass(slots=True)
class ThreadContext:
    """The run in which tools are called. `counts` numbers equal calls, so that a
    repeated run gives each the same call id again."""

    name: str
    call_id: str
    details: Details
    counts: Counter[str] = field(default_factory=Counter)
    lasting: bool = True


def name_process_run() -> str:
    """A name for the run of this process: its program's, with eight letters that no
    other run has."""
    program = Path(sys.argv[0] if sys.argv else "").stem
    stem = re.sub(r"[^A-Za-z0-9]+", "-", program).strip("-") or "python"
    letters = (secrets.choice(string.ascii_lowercase) for _ in range(8))
    return f"{stem[:40]}-{''.join(letters)}"


_process_run = ThreadContext(name_process_run(), "", {}, lasting=False)
_thread: ContextVar[ThreadContext | None] = ContextVar("thread", default=None)
_claim: ContextVar[Claim | None] = ContextVar("claim", default=None)


@contextmanager
def enter_thread(name: str, call_id: str, details: Details) -> Iterator[None]:
    """Name the run for the calls inside; see `Gate.thread`."""
    token = _thread.set(ThreadContext(name, call_id, details))
    try:
        yield
    finally:
        _thread.reset(token)


class NumberedCall(NamedTuple):
    """The run in which something is called, and a call id that a repeated run gives to
    the same call again."""

    thread: str
    call_id: str


def number_call(name: str, arguments: Mapping[str, Any]) -> NumberedCall:
    """Number a call among the equal ones of the current run."""
    context = _thread.get() or _process_run
    first = build_call_id(name, arguments, 1)
    context.counts[first] += 1
    call_id = build_call_id(name, arguments, context.counts[first])
    return NumberedCall(context.name, call_id)


@contextmanager
def hold_claim(claim: Claim) -> Iterator[None]:
    """Make the claim known to the function that runs inside."""
    token = _claim.set(claim)
    try:
        yield
    finally:
        _claim.reset(token)


def get_claim() -> Claim:
    """Return the claim under which the current tool runs. Pass its `idempotency_key` to
    the service that performs the effect: it stays the same when an attempt is repeated.
    Raises LookupError outside a tool's function."""
    claim = _claim.get()
    if claim is None:
        raise LookupError("There is no claim here: no tool is being performed.")
    return claim


class ToolDefinition:
    """A tool's name, arguments and options, and the flow of a call."""

    def __init__(
        self,
        function: Callable[..., Any],
        operations: Operations,
        *,
        name: str,
        options: ToolOptions,
        threshold: ToolRisk,
        signature: Signature | None = None,
    ) -> None:
        """`signature` is given for a tool whose arguments a schema describes; without
        it, the function's annotations do."""
        self.name = name or function.__name__
        self.function = function
        self.description = inspect.getdoc(function) or ""
        self.options = options
        self.signature = signature or ToolSignature(self.name, function)
        self.operations = operations
        self._threshold = threshold

    @cached_property
    def tool_description(self) -> ToolDescription:
        """What people read of the tool as long as the policy does not declare it: its
        description and, unless it is large, the schema of its arguments."""
        schema = _adapt_schema(self.signature.build_schema())
        if len(json.dumps(schema)) > LARGEST_SCHEMA:
            schema = {}
        return {"text": self.description[:LONGEST_TEXT], "schema": schema}

    def build_call(
        self,
        arguments: Mapping[str, Any],
        *,
        thread: str,
        call_id: str,
        details: Details,
        wait_seconds: float | None,
        lasting: bool = True,
    ) -> ToolCall:
        """A call with checked arguments. Raises InvalidArguments."""
        args = self.signature.dump_arguments(arguments)
        details = require_person(details, self.options.risk, self._threshold)
        if self.options.evidence is not None:
            items = [*details.get("evidence", ()), *self.options.evidence(**arguments)]
            details = {**details, "evidence": items}
        return ToolCall(thread, call_id, args, details, wait_seconds, lasting)

    def build_call_here(self, *args: Any, **kwargs: Any) -> ToolCall:
        """A call in the current thread, or outside any in the run of this process,
        which no other process continues. Raises InvalidArguments."""
        context = _thread.get() or _process_run
        arguments = self.signature.bind_arguments(*args, **kwargs)
        return self.build_call(
            arguments,
            thread=context.name,
            call_id=context.call_id or number_call(self.name, arguments).call_id,
            details=context.details,
            wait_seconds=self.options.wait_seconds,
            lasting=context.lasting,
        )

    def propose_call(self, call: ToolCall) -> Flow[Proposal]:
        """Propose the call, or find it: the same thread and call id always lead to the
        same proposal. Its state may be that of the first answer."""
        details: Details = {**call.details, "tool_description": self.tool_description}
        return (
            yield from self.operations.propose(
                call.thread,
                self.name,
                call.args,
                idempotency_key=build_call_key(call.thread, call.call_id),
                **details,
            )
        )

    def run_call(self, call: ToolCall) -> Flow[ToolResult]:
        """The result of the call, from wherever an earlier process left it.

        Raises a ToolError when there is none, and what the function raises.
        """
        proposal = yield from self.propose_call(call)
        if proposal.request and not proposal.final:
            # Whoever runs a program by hand sees no page yet: tell them where it is.
            level = logging.INFO if call.lasting else logging.WARNING
            url = proposal.request.url
            logger.log(level, "%s waits for a decision: %s", self.name, url)
        return (yield from self.follow_proposal(proposal, call.args, call.wait_seconds))

    def follow_proposal(
        self,
        proposal: Proposal,
        args: Mapping[str, Any] | None,
        wait_seconds: float | None,
    ) -> Flow[ToolResult]:
        """The result of a proposal that this agent made, performed here if its grant is
        still to be had. `args` are the proposed arguments, None if nobody knows them
        any more. Raises as `run_call`."""
        end = None if wait_seconds is None else time.monotonic() + wait_seconds
        while not proposal.final:
            if proposal.grant is not None:
                claim = yield from self._claim_grant(proposal.grant.token)
                if claim is not None:
                    value = yield from self._perform(claim)
                    edited = is_edited(proposal, args, claim.args)
                    return ToolResult(value, claim.args, edited)
            if proposal.returned:
                raise ReturnedForRevision(proposal)
            proposal = yield from self._await_news(proposal, end)
        if proposal.status == "executed":
            return self._read_result(proposal, args)
        raise build_tool_error(proposal, self.build_declaration())

    def _read_result(
        self, proposal: Proposal, args: Mapping[str, Any] | None
    ) -> ToolResult:
        """The recorded result of a call that an earlier process, or the gate,
        performed."""
        execution, decision = proposal.execution, proposal.decision
        value = self.signature.load_result(execution.result if execution else None)
        final = decision.final_args if decision else None
        performed = final if final is not None else args or {}
        return ToolResult(value, performed, is_edited(proposal, args, performed))

    def _claim_grant(self, token: str) -> Flow[Claim | None]:
        """The claim, or None when there is none to have: another process has it, or a
        check right before the effect refused it. The proposal says what follows."""
        try:
            return (yield from self.operations.redeem(token))
        except ApiError as error:
            if error.code not in SETTLED_AT_REDEEM:
                raise
        yield Pause(QUICK)
        return None

    def _await_news(self, proposal: Proposal, end: float | None) -> Flow[Proposal]:
        """The proposal once it has news. Raises ApprovalPending when it has none in
        time. An effect that nobody needs to decide on is given PROMPT_SECONDS."""
        seconds = None if end is None else max(0.0, end - time.monotonic())
        now = yield from self.operations.get(proposal.id)
        if seconds is not None and now.status in ("granted", "executing"):
            seconds = max(seconds, PROMPT_SECONDS)
        if now.final or now.grant is not None or now.returned:
            return now
        if seconds != 0.0:
            now = yield from self.operations.wait(proposal.id, seconds)
        if now.final or now.grant is not None or now.returned:
            return now
        if end is not None and time.monotonic() >= end:
            raise ApprovalPending(now)
        return now

    def _perform(self, claim: Claim) -> Flow[Any]:
        """Run the function under the claim and report what became of it."""
        report = self.operations.report
        try:
            arguments = yield from self._check_claim(claim)
        except CountersealError as error:
            detail = str(error)
            yield from report(claim, "failed", code="not_performed", detail=detail)
            raise
        try:
            result = yield Effect(arguments, claim)
        except NothingHappened as error:
            yield from report(claim, "failed", code=error.code, detail=str(error))
            raise
        except Exception as error:
            # Only the function can know that nothing happened.
            code, detail = type(error).__name__, str(error)
            yield from report(claim, "unknown", code=code, detail=detail)
            raise
        try:
            reported = self.signature.dump_result(result)
            yield from report(claim, "succeeded", result=reported)
        except CountersealError as error:
            error.add_note(f"{self.name} was performed; only its report was refused.")
            raise
        return result

    def _check_claim(self, claim: Claim) -> Flow[dict[str, Any]]:
        """The approved arguments for the function, checked again: a reviewer may have
        edited them."""
        if claim.tool != self.name:
            fault = FieldError("tool", f"the grant is for {claim.tool}")
            raise InvalidArguments(self.name, [fault])
        if self.options.audience:
            yield from self.operations.verify_grant(claim, self.options.audience)
        return self.signature.load_arguments(claim.args)

    def build_declaration(self) -> str:
        """An entry for `tools:` of the policy, as YAML. An administrator chooses queue
        and risk. A lower risk also needs another profile."""
        schema = self.signature.build_schema()
        required = schema.get("required", [])
        chips = [
            f"{{{name}}}" if name in required else f"{{{name}?}}"
            for name in self.signature.names
        ]
        effect = " ".join([self.name, *chips])
        plain = effect.isascii() and len(effect) <= MOST_CHARACTERS
        entry = {
            "title": self.name.replace("_", " ").capitalize(),
            "description": self.description.partition("\n\n")[0][:MOST_CHARACTERS],
            "schema": _adapt_schema(schema),
            "queue": "<queue>",
            "risk": "<high or critical>",
            "profile": {"reversible": False, "blast_radius": 4},
            "effect": effect if plain else "",
            "execution_class": "opaque",
            "executor": {"kind": "agent"},
        }
        # JSON is YAML, and needs no package to write.
        return json.dumps({self.name: entry}, indent=2, ensure_ascii=False)


def _adapt_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as the gate takes it, or unchanged: the gate then says what it is that
    it does not take."""
    try:
        return adapt_schema(schema).schema
    except UntakenSchema:
        return schema


def is_edited(
    proposal: Proposal, args: Mapping[str, Any] | None, performed: Mapping[str, Any]
) -> bool:
    """Whether a reviewer changed the arguments."""
    if args is not None:
        return performed != args
    return proposal.decision is not None and proposal.decision.verdict == "modify"


def check_declared(
    definitions: Mapping[str, ToolDefinition], operations: Operations
) -> Flow[list[str]]:
    """What keeps the gate from taking calls of these tools, one sentence each; nothing
    when all is well."""
    declared = {tool.name: tool for tool in (yield from operations.tools())}
    problems = []
    for name, definition in definitions.items():
        if name not in declared:
            problems.append(
                f"{name} is not declared in the policy or not allowed to this agent."
            )
            continue
        theirs = set(declared[name].arguments.get("properties", {}))
        if unknown := set(definition.signature.names) - theirs:
            names = ", ".join(sorted(unknown))
            problems.append(f"{name} declares no argument {names} in the policy.")
    return problems
