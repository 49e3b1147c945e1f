"""The gate's own MCP server: an agent that speaks nothing but MCP proposes actions,
asks what became of them, withdraws them, and asks people.

It performs nothing. A proposal of a tool that the gate performs runs there; a tool
behind the proxy or the extension is called there.
"""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from ..errors import CountersealError
from ..gate import AsyncGate
from ..models import Proposal, Question
from ..operations import Details
from ..questions import TEXT_SCHEMA

LONGEST_WAIT = 25.0
"""Seconds: below the time-out that clients usually have for one call."""

INSTRUCTIONS = (
    "Counterseal is an approval gate. Propose an action with `propose`; its policy says"
    " whether people must agree. Ask with `get_proposal` until the status is final."
    " `executed` means that it happened; `rejected` comes with a reason; never propose"
    " the same again after `unknown`. `ask` asks people what only they can tell."
)
Json = dict[str, Any]


def build_gate_server(gate: AsyncGate, thread: str) -> MCPServer[Any]:
    """The server of one agent. `thread` names its run unless a call names another."""
    server: MCPServer[Any] = MCPServer(
        "counterseal", instructions=INSTRUCTIONS, log_level="WARNING"
    )

    @server.tool(annotations=ToolAnnotations(destructive_hint=False))
    async def propose(
        tool: str,
        arguments: Json,
        idempotency_key: str,
        rationale: str = "",
        run: str = "",
    ) -> Json:
        """Propose one action for approval. `idempotency_key` is a text of your choice
        that is the same whenever you propose this very action again. `rationale` says
        why, in one or two sentences."""
        details: Details = {"rationale": rationale} if rationale else {}
        try:
            proposal = await gate.propose(
                run or thread,
                tool,
                arguments,
                idempotency_key=idempotency_key,
                **details,
            )
        except (CountersealError, ValueError) as error:
            raise ToolError(str(error)) from error
        return describe_proposal(proposal)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def get_proposal(proposal: str, wait_seconds: float = 0) -> Json:
        """Return the current state of a proposal. With `wait_seconds`, at most 25, wait
        for that long until it has changed."""
        try:
            seconds = max(0.0, min(wait_seconds, LONGEST_WAIT))
            return describe_proposal(await gate.wait(proposal, seconds))
        except CountersealError as error:
            raise ToolError(str(error)) from error

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True))
    async def withdraw(proposal: str) -> Json:
        """Withdraw a proposal that is no longer needed."""
        try:
            return describe_proposal(await gate.withdraw(proposal))
        except CountersealError as error:
            raise ToolError(str(error)) from error

    _add_question_tools(server, gate, thread)
    return server


def _add_question_tools(server: MCPServer[Any], gate: AsyncGate, thread: str) -> None:
    @server.tool(annotations=ToolAnnotations(destructive_hint=False))
    async def ask(
        to: str,
        question: str,
        idempotency_key: str,
        schema: Json | None = None,
        run: str = "",
    ) -> Json:
        """Ask people a question. `to` is a queue, or `@` and a person's login. `schema`
        is a flat JSON Schema of the answer, one text if you leave it out. The answer
        permits nothing. Call `get_question` until the status is no longer `open`."""
        try:
            asked = await gate.open_question(
                to,
                schema or TEXT_SCHEMA,
                question,
                thread=run or thread,
                idempotency_key=idempotency_key,
            )
        except (CountersealError, ValueError) as error:
            raise ToolError(str(error)) from error
        return describe_question(asked)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def get_question(question: str, wait_seconds: float = 0) -> Json:
        """Return the current state of a question, and its answer. With `wait_seconds`,
        at most 25, wait for that long until it has ended."""
        try:
            seconds = max(0.0, min(wait_seconds, LONGEST_WAIT))
            return describe_question(await gate.wait_question(question, seconds))
        except CountersealError as error:
            raise ToolError(str(error)) from error


def describe_question(question: Question) -> Json:
    """A question for a model."""
    return {
        "id": question.id,
        "status": question.status,
        "answer": question.answer,
        "note": question.note,
        "url": question.url,
    }


def describe_proposal(proposal: Proposal) -> Json:
    """A proposal for a model: its state, why, and where people decide. The token of a
    grant is left out: a model has no use for it."""
    decision, execution = proposal.decision, proposal.execution
    facts: Json = {
        "id": proposal.id,
        "tool": proposal.tool,
        "status": proposal.status,
        "final": proposal.final,
        "url": proposal.request.url if proposal.request else "",
        "rules": [rule.text for rule in proposal.policy.rules if rule.text],
        "messages": [{"kind": m.kind, "text": m.text} for m in proposal.messages],
        "approved_for_the_agent": proposal.grant is not None,
    }
    if decision is not None:
        facts["decision"] = {
            "verdict": decision.verdict,
            "reason_code": decision.reason_code,
            "reason": decision.reason,
            "arguments": decision.final_args,
        }
    if execution is not None:
        facts["execution"] = {
            "status": execution.status,
            "result": execution.result,
            "detail": execution.detail,
        }
    return facts
