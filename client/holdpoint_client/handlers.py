"""Approval handlers: one question, "may this call run?", for agent loops that ask it
themselves before they call a tool.

    handler = WebApprovalHandler(gate)
    if handler.request(request) is ApprovalDecision.APPROVED:
        refund.call(request.args, thread=request.thread, call_id=request.call_id)

A decision is an answer, no authority. The tool itself redeems the grant, so a call of
`GatedTool` with the same thread and call id performs exactly what was approved, and
nothing happens where a handler answered without the gate.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from .calls import Connection, Flow
from .errors import ApiError
from .gate import AsyncGate, Gate
from .models import Answer, Proposal, parse_answer
from .operations import Details, Operations
from .signatures import build_call_key
from .tool_errors import ApprovalPending
from .tools import ToolRisk, require_person

PRODUCTION_VARIABLES = (
    "HOLDPOINT_ENV",
    "ENVIRONMENT",
    "APP_ENV",
    "DJANGO_ENV",
    "ENV",
    "DEPLOYMENT_ENVIRONMENT",
)
"""Variables of the environment that may name it."""


class ApprovalDecision(StrEnum):
    """The answer. SKIPPED means: carry on without the effect."""

    APPROVED = "approved"
    DENIED = "denied"
    SKIPPED = "skipped"


class ToolApprovalRequest(BaseModel):
    """One call that waits for an answer. It is plain data, to be stored and sent on:
    the same thread and call id are the same request, in any process."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str
    args: dict[str, Any]
    thread: str
    call_id: str
    risk: ToolRisk = ToolRisk.SAFE
    details: Details = {}


class ApprovalHandler(Protocol):
    """Anything that answers a request."""

    def request(self, request: ToolApprovalRequest) -> ApprovalDecision:
        """The decision. May wait for people as long as the request is open."""
        ...


class AsyncApprovalHandler(Protocol):
    """The same, to be awaited."""

    async def request(self, request: ToolApprovalRequest) -> ApprovalDecision:
        """The decision."""
        ...


class WebApprovalHandler:
    """People decide at the gate, on its pages or by its other channels.

    Raises ApprovalPending after `wait_seconds`: ask again later, with the same request.
    """

    def __init__(self, gate: Gate, *, wait_seconds: float | None = None) -> None:
        self._gate = gate
        self._wait_seconds = wait_seconds

    def request(self, request: ToolApprovalRequest) -> ApprovalDecision:
        """Propose the call, or find its proposal, and wait for the decision."""
        threshold = self._gate.approval_required_risk
        proposal = self._gate.run(
            await_decision(
                self._gate.operations, request, threshold, self._wait_seconds
            )
        )
        return read_decision(proposal)


class AsyncWebApprovalHandler:
    """`WebApprovalHandler` for AsyncGate."""

    def __init__(self, gate: AsyncGate, *, wait_seconds: float | None = None) -> None:
        self._gate = gate
        self._wait_seconds = wait_seconds

    async def request(self, request: ToolApprovalRequest) -> ApprovalDecision:
        """As `WebApprovalHandler.request`."""
        threshold = self._gate.approval_required_risk
        proposal = await self._gate.run(
            await_decision(
                self._gate.operations, request, threshold, self._wait_seconds
            )
        )
        return read_decision(proposal)


def propose_request(
    operations: Operations, request: ToolApprovalRequest, threshold: ToolRisk
) -> Flow[Proposal]:
    """Propose the call as `GatedTool` proposes it, so that both find one proposal."""
    details = require_person(request.details, request.risk, threshold)
    key = build_call_key(request.thread, request.call_id)
    return (
        yield from operations.propose(
            request.thread, request.tool, request.args, idempotency_key=key, **details
        )
    )


def await_decision(
    operations: Operations,
    request: ToolApprovalRequest,
    threshold: ToolRisk,
    seconds: float | None,
) -> Flow[Proposal]:
    """The proposal of the request once it is decided. Raises ApprovalPending."""
    proposal = yield from propose_request(operations, request, threshold)
    proposal = yield from operations.wait(proposal.id, seconds)
    if proposal.status == "pending":
        raise ApprovalPending(proposal)
    return proposal


def read_decision(proposal: Proposal) -> ApprovalDecision:
    """What a decided proposal means for the agent."""
    if proposal.status in ("granted", "executing", "executed", "failed", "unknown"):
        return ApprovalDecision.APPROVED
    if proposal.decision and proposal.decision.reason_code == "skip":
        return ApprovalDecision.SKIPPED
    return ApprovalDecision.DENIED


class RequestForPerson(Answer):
    """A request as the people's API shows it to one person."""

    id: str
    title: str
    version: int
    action_hash: str
    agent: str
    risk: str
    tier: str
    flags: tuple[str, ...] = ()
    args: Annotated[dict[str, Any], Field(default_factory=dict)]
    rules: tuple[dict[str, str], ...] = ()
    reading: str = ""
    can_decide: bool = False
    why_not: str = ""


class TerminalApprovalHandler:
    """The person at the terminal decides, under their own name.

    `token` is that person's personal token (`/me/tokens/` of the gate). Their decision
    goes through the gate with every check of the pages; what needs a fresh password, or
    another person, is still decided on the pages, and the handler waits for it.
    """

    def __init__(
        self,
        gate: Gate,
        token: str,
        *,
        ask: Callable[[str], str] = input,
        show: Callable[[str], object] = lambda text: sys.stdout.write(f"{text}\n"),
        wait_seconds: float | None = None,
    ) -> None:
        self._gate = gate
        self._person = Connection(gate.operations.connection.url, token)
        self._ask = ask
        self._show = show
        self._web = WebApprovalHandler(gate, wait_seconds=wait_seconds)

    def request(self, request: ToolApprovalRequest) -> ApprovalDecision:
        """Show the request, take the person's verdict, and wait for the decision."""
        flow = propose_request(
            self._gate.operations, request, self._gate.approval_required_risk
        )
        proposal = self._gate.get(self._gate.run(flow).id)
        if proposal.status == "pending" and proposal.request is not None:
            self._take_verdict(proposal.request.id, proposal.request.url)
        return self._web.request(request)

    def _take_verdict(self, request_id: str, url: str) -> None:
        call = self._person.build_call("GET", f"/requests/{request_id}")
        answer = self._gate.run(self._person.send_call(call))
        shown = parse_answer(RequestForPerson, answer)
        for line in describe_request(shown, url):
            self._show(escape_text(line))
        if not shown.can_decide:
            self._show(escape_text(f"You cannot decide it here: {shown.why_not}"))
            return
        verdict = self._ask_verdict()
        body = {
            "version": shown.version,
            "action_hash": shown.action_hash,
            "reading": shown.reading,
            **verdict,
        }
        decide = self._person.build_call("POST", f"/requests/{request_id}/decide", body)
        try:
            self._gate.run(self._person.send_call(decide))
        except ApiError as error:
            # Someone else decided, or the request needs the page: people go on there.
            self._show(escape_text(f"Not recorded. {error.detail} See {url}"))

    def _ask_verdict(self) -> dict[str, str]:
        while True:
            word = self._ask("Approve, reject or skip? ").strip().lower()
            if word in ("approve", "a"):
                return {"verdict": "approve", "reason_code": "verified"}
            if word in ("reject", "r"):
                reason = self._ask("Reason for the agent: ").strip()
                return {"verdict": "reject", "reason_code": "other", "reason": reason}
            if word in ("skip", "s"):
                return {"verdict": "reject", "reason_code": "skip"}
            self._show("Type approve, reject or skip.")


def describe_request(request: RequestForPerson, url: str) -> Iterator[str]:
    """The lines that a terminal shows: what happens, why people are asked, where."""
    yield f"{request.title} ({request.risk} risk, agent {request.agent})"
    for name, value in request.args.items():
        yield f"  {name}: {json.dumps(value, ensure_ascii=False)}"
    yield from (f"  Warning: {flag}" for flag in request.flags)
    yield from (f"  Rule: {rule.get('text', '')}" for rule in request.rules)
    yield f"  Everything about it: {url}"


def escape_text(text: str) -> str:
    """Text that a terminal only prints: control characters, which could move the cursor
    or hide a line, and characters that turn the direction become escapes."""
    return "".join(
        character
        if unicodedata.category(character)[0] != "C" and character not in "\u2028\u2029"
        else character.encode("unicode_escape").decode()
        for character in text
    )


class AutomaticApprovalHandler:
    """Gives the same answer to every request, for tests of an agent's loop.

    It answers only inside a test process, and never where the environment says that it
    is production. It does not ask the gate, so a tool behind the gate does nothing on
    its answer.
    """

    def __init__(
        self,
        decision: ApprovalDecision = ApprovalDecision.APPROVED,
        *,
        environment: Mapping[str, str] | None = None,
        arguments: list[str] | None = None,
    ) -> None:
        self._decision = decision
        self._environment = os.environ if environment is None else environment
        self._arguments = sys.argv if arguments is None else arguments

    def request(self, request: ToolApprovalRequest) -> ApprovalDecision:
        """The answer. Raises RuntimeError outside tests and in production."""
        if name := find_production_variable(self._environment):
            raise RuntimeError(
                f"AutomaticApprovalHandler does not answer in production ({name}):"
                f" {request.tool} was not approved. Use WebApprovalHandler."
            )
        if not is_test_process(self._environment, self._arguments):
            raise RuntimeError(
                "AutomaticApprovalHandler answers only in tests (pytest, python -m"
                f" unittest, manage.py test): {request.tool} was not approved. Use"
                " WebApprovalHandler."
            )
        return self._decision


def find_production_variable(environment: Mapping[str, str]) -> str:
    """The first variable that says production, as `NAME=value`; empty if none does."""
    for name in PRODUCTION_VARIABLES:
        value = environment.get(name, "")
        if value.lower().startswith(("prod", "live")):
            return f"{name}={value}"
    return ""


def is_test_process(environment: Mapping[str, str], arguments: list[str]) -> bool:
    """Whether a test runner started this process: pytest says so itself, the others by
    their command."""
    if "PYTEST_CURRENT_TEST" in environment:
        return True
    program = arguments[0] if arguments else ""
    if program.endswith(("unittest/__main__.py", "python -m unittest")):
        return True
    return program.endswith("manage.py") and arguments[1:2] == ["test"]
