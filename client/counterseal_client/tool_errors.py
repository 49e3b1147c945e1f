"""How a call of a tool can end without a result.

The texts are written so that an agent can hand `str(error)` to its model: what
happened, why, and whether to call again. A rejection always carries a text, since
models repeat a call that was refused without one.
"""

from __future__ import annotations

from collections.abc import Mapping

from .errors import CountersealError
from .models import Proposal

UNKNOWN_TOOL_RULE = "tool.unknown"

ENDINGS: Mapping[str, tuple[str, str]] = {
    "blocked": ("The policy forbids it.", "Do not call it again; find another way."),
    "expired": ("Nobody decided in time.", "Call it again only if it is still needed."),
    "withdrawn": ("It was withdrawn.", "Do not call it again."),
    "superseded": ("A later call replaced it.", "Do not call it again."),
    "refused": (
        "It was approved, but no longer held right before the effect.",
        "Read the current state before you call it again.",
    ),
}
"""For each status without an effect: what happened, and what to do."""


class ToolError(CountersealError):
    """A call of a tool ended without a result. `proposal` is its state at the gate."""

    def __init__(self, proposal: Proposal, text: str, *, next_step: str = "") -> None:
        self.proposal = proposal
        super().__init__(f"{proposal.tool}: {text}", next_step=next_step)


class ApprovalPending(ToolError):
    """People have not decided yet, or another process is performing the effect. Call
    the tool again with the same thread and call id to go on waiting."""

    def __init__(self, proposal: Proposal) -> None:
        performed = proposal.status == "executing"
        text = "The call is being performed." if performed else "The call is waiting."
        step = "Call it again later with the same thread and call id."
        super().__init__(proposal, text, next_step=step)


class ReturnedForRevision(ToolError):
    """A person sent the request back with guidance. Revise the proposal with `revise`,
    or withdraw it."""

    def __init__(self, proposal: Proposal) -> None:
        text = f"A person sent it back with guidance. {proposal.guidance}".strip()
        step = "Revise the proposal accordingly, or withdraw it."
        super().__init__(proposal, text, next_step=step)


class NotPerformed(ToolError):
    """The call ended without an effect: it was blocked, rejected, expired, withdrawn,
    superseded or refused. `proposal.status` says which."""

    def __init__(self, proposal: Proposal, text: str = "", next_step: str = "") -> None:
        happened, step = ENDINGS.get(
            proposal.status, (f"It ended as {proposal.status}.", "")
        )
        text = text or " ".join([happened, *_list_causes(proposal)])
        step = next_step or step
        if proposal.may_have_run:
            text += " It was restored from a backup and may have happened before."
            step = "Check whether it happened before you do anything else."
        super().__init__(proposal, text, next_step=step)


class Rejected(NotPerformed):
    """A person rejected the call. `reason_code` and `reason` say why; with
    `reason_code` "skip" the agent carries on without the effect."""

    def __init__(self, proposal: Proposal) -> None:
        decision = proposal.decision
        self.reason_code = decision.reason_code if decision else ""
        self.reason = decision.reason if decision else ""
        code = (self.reason_code or "no reason given").replace("_", " ")
        words = f' They wrote: "{self.reason}"' if self.reason else ""
        super().__init__(
            proposal,
            f"A reviewer rejected it ({code}).{words}",
            "Carry on without it."
            if self.reason_code == "skip"
            else "Do not call it again with the same arguments.",
        )


class ToolNotDeclared(NotPerformed):
    """The gate's policy has no tool of this name. `declaration` is an entry for the
    policy, as YAML, that an administrator completes."""

    def __init__(self, proposal: Proposal, declaration: str) -> None:
        self.declaration = declaration
        super().__init__(
            proposal,
            "The gate's policy declares no such tool.",
            "Ask an administrator to add it under `tools:` of the policy (`counterseal"
            " policy load`) and to allow it to this agent (`counterseal agents change"
            f" AGENT --by ADMINISTRATOR --add-tool {proposal.tool}`).",
        )
        self.add_note(f"An entry for the policy, to be completed:\n{declaration}")


class EffectFailed(ToolError):
    """The effect was tried and certainly did not happen. `code` says why."""

    def __init__(self, proposal: Proposal) -> None:
        self.code = proposal.execution.code if proposal.execution else ""
        text = "The effect failed and nothing happened."
        text = " ".join([text, *_list_causes(proposal)])
        super().__init__(proposal, text, next_step="A person may have it tried again.")


class OutcomeUnknown(ToolError):
    """Nobody can say yet whether the effect happened."""

    def __init__(self, proposal: Proposal) -> None:
        text = "Nobody can say yet whether the effect happened."
        step = "Do not call it again. A person finds out what happened."
        super().__init__(proposal, text, next_step=step)


class NothingHappened(Exception):
    """Raise it from a tool's function when the effect certainly did not happen. The
    client then reports the call as failed; after any other exception it reports that
    the outcome is unknown."""

    def __init__(self, detail: str, *, code: str = "failed") -> None:
        self.code = code
        super().__init__(detail)


def build_tool_error(proposal: Proposal, declaration: str) -> ToolError:
    """The exception for a proposal that has ended without a result."""
    if proposal.status == "blocked" and _is_undeclared(proposal):
        return ToolNotDeclared(proposal, declaration)
    special = {
        "rejected": Rejected,
        "failed": EffectFailed,
        "unknown": OutcomeUnknown,
    }
    return special.get(proposal.status, NotPerformed)(proposal)


def _is_undeclared(proposal: Proposal) -> bool:
    return any(rule.id == UNKNOWN_TOOL_RULE for rule in proposal.policy.rules)


def _list_causes(proposal: Proposal) -> list[str]:
    """What the policy or the execution says about the end."""
    if proposal.status == "blocked":
        return [rule.text for rule in proposal.policy.rules if rule.text]
    detail = proposal.execution.detail if proposal.execution else ""
    return [detail] if detail else []
