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

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from .calls import Connection, Flow
from .errors import ApiError
from .gate import AsyncGate, Gate
from .models import Proposal
from .operations import Details, Operations
from .people import PeopleOperations
from .signatures import build_call_key
from .terminal.decisions import (
    ShownRequest,
    VerdictOutcome,
    VerdictResult,
    ask_verdict,
    check_verdict,
    find_page_reason,
    list_verdicts,
    submit_verdict,
)
from .terminal.request_view import describe_request
from .terminal.text import Line, render_line
from .tool_errors import ApprovalPending
from .tools import ToolRisk, require_person

PRODUCTION_VARIABLES = (
    "COUNTERSEAL_ENV",
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


class TerminalApprovalHandler:
    """The person at the terminal decides, under their own name.

    `token` is that person's personal token (`/me/tokens/` of the gate). Their decision
    goes through the gate by the rules of `counterseal review`, on exactly what was
    shown. What needs a fresh password, an attention check, an edit or another person is
    decided on the pages, and the handler waits for it.
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
        connection = Connection(gate.operations.connection.url, token)
        self._people = PeopleOperations(connection)
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
        request = self._gate.run(self._people.get_request(request_id))
        for line in describe_request(request, url):
            self._show_line(line)
        if not list_verdicts(request):
            result = check_verdict(request, "approve")
            self._show_line(
                f"You cannot decide it here. {result.text if result else ''}"
            )
            return
        if text := find_page_reason(request, "approve"):
            self._show_line(f"{text} Approve it on its page; here you can reject it.")
        said = ask_verdict(request, self._ask, self._show_line)
        if said is None:
            return
        shown = ShownRequest.of_detail(request)
        try:
            result = self._gate.run(submit_verdict(self._people, shown, said))
        except ApiError as error:
            result = VerdictResult(VerdictOutcome.LEFT, error.detail)
        self._show_line(result.text)
        if result.outcome is not VerdictOutcome.RECORDED:
            # Someone else decided, or the request needs the page: people go on there.
            self._show_line(f"Nothing was recorded. Its page: {url}")

    def _show_line(self, line: Line | str) -> None:
        line = Line(line) if isinstance(line, str) else line
        for shown in render_line(line, shutil.get_terminal_size().columns):
            self._show(shown)


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
