"""Exit codes, and what became of a proposal in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import IntEnum

from ..models import Proposal
from ..terminal.decisions import VerdictOutcome
from ..terminal.text import Line, Style


class ExitCode(IntEnum):
    """What the exit code of every command means; docs/command-line.md lists them."""

    DONE = 0
    ERROR = 1
    USAGE = 2  # argparse's own
    WAITING = 3
    ENDED = 4  # without the effect, or nothing left to decide for this person
    PAGE = 5
    CHANGED = 6
    UNKNOWN = 7
    INTERRUPTED = 130  # as of a program that SIGINT ends


STATUS_CODES: Mapping[str, ExitCode] = {
    "pending": ExitCode.WAITING,
    "granted": ExitCode.DONE,
    "executing": ExitCode.DONE,
    "executed": ExitCode.DONE,
    "unknown": ExitCode.UNKNOWN,
}
"""Every other status ended without the effect."""

VERDICT_CODES: Mapping[VerdictOutcome, ExitCode] = {
    VerdictOutcome.RECORDED: ExitCode.DONE,
    VerdictOutcome.PAGE_NEEDED: ExitCode.PAGE,
    VerdictOutcome.CHANGED: ExitCode.CHANGED,
    VerdictOutcome.CLOSED: ExitCode.ENDED,
    VerdictOutcome.LEFT: ExitCode.WAITING,
}

STATUS_WORDS: Mapping[str, str] = {
    "pending": "waits for people",
    "granted": "is authorized",
    "executing": "is being performed",
    "executed": "was performed",
    "failed": "was tried, and nothing happened",
    "unknown": "was tried, and nobody can say yet whether it happened",
    "refused": "was approved, but no longer held right before the effect",
    "rejected": "was rejected",
    "expired": "expired: nobody decided in time",
    "withdrawn": "was withdrawn",
    "superseded": "was replaced by a later proposal",
    "blocked": "is forbidden by the policy",
}


def find_exit_code(proposal: Proposal) -> ExitCode:
    """The exit code of a command that ends with this proposal."""
    return STATUS_CODES.get(proposal.status, ExitCode.ENDED)


def describe_proposal(proposal: Proposal) -> Iterator[Line]:
    """A proposal in words: what became of it, why, and what comes next."""
    words = STATUS_WORDS.get(proposal.status, proposal.status)
    yield Line(f"{proposal.id}: {proposal.tool} {words}.", style=Style.STRONG)
    for rule in proposal.policy.rules:
        yield Line(f"Rule: {rule.text or rule.id}", indent=2)
    if proposal.status == "pending":
        yield from _describe_waiting(proposal)
    if proposal.decision is not None and proposal.decision.verdict != "approve":
        yield from _describe_decision(proposal)
    for message in proposal.messages:
        yield Line(f"{message.sender}, {message.kind}:", indent=2)
        for text in message.text.split("\n"):
            yield Line(text, indent=2, quoted=True)
    yield from _describe_execution(proposal)
    if proposal.may_have_run:
        text = "It came back with a backup and may have happened before: check first."
        yield Line(text, indent=2, style=Style.WARNING)


def _describe_waiting(proposal: Proposal) -> Iterator[Line]:
    if proposal.returned:
        text = "A person returned it with guidance: revise or withdraw it."
        yield Line(text, indent=2, style=Style.WARNING)
    if request := proposal.request:
        steps = [
            f"{step.required} {step.role}{'' if step.required == 1 else 's'}"
            f" ({step.given} approved)"
            for step in request.steps
        ]
        if steps:
            yield Line(f"Needs {', then '.join(steps)}", indent=2)
        yield Line(f"People decide at {request.url}", indent=2, copied=True)
    text = f"Wait for it: counterseal wait {proposal.id}"
    yield Line(text, indent=2, copied=True)


def _describe_decision(proposal: Proposal) -> Iterator[Line]:
    assert proposal.decision is not None
    said = proposal.decision
    edited = " with changed arguments" if said.verdict == "modify" else ""
    yield Line(f"Decided{edited}: {said.reason_code or said.verdict}", indent=2)
    for text in said.reason.split("\n") if said.reason else []:
        yield Line(text, indent=2, quoted=True)


def _describe_execution(proposal: Proposal) -> Iterator[Line]:
    if proposal.grant is not None:
        text = (
            "Its grant waits for the agent, which redeems it and performs the effect."
        )
        yield Line(text, indent=2)
    execution = proposal.execution
    if execution is None:
        return
    why = ": ".join(text for text in (execution.code, execution.detail) if text)
    if why:
        yield Line(why, indent=2)
    if execution.result is not None:
        yield Line("Result:", indent=2)
        text = json.dumps(execution.result, ensure_ascii=False)
        yield Line(text, indent=2, quoted=True)
