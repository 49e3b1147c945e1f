"""Whether every step in the log was legal, and each row is where its log ends.

Every record of every machine is put through the table of its edges, from the first.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import models

from agents import transitions as agents_transitions
from agents.models import Delivery, Thread
from journal.models import LogRecord
from journal.state_machine import NO_SOURCE, Machine
from reviews import transitions
from reviews.models import ApprovalRequest, Batch, Execution, Grant

from .claims import Claim, Findings

MACHINES: dict[type[models.Model], Machine] = {
    **transitions.MACHINES,
    **agents_transitions.MACHINES,
}
# Whose records name their row. Of the others each step is looked up in the table, and
# as many rows must stand in a status as went there and did not leave.
NAMED = {
    transitions.request,
    transitions.grant,
    transitions.execution,
    transitions.batch,
    agents_transitions.thread,
    agents_transitions.delivery,
}
TAKEN = {"execution.claimed", "execution.reclaimed"}
Subject = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One record, as its machine reads it."""

    kind: str
    source: str
    target: str
    subject: Subject
    fence: int | None


class LogFindings(Findings):
    """The log as its machines read it, and whatever was wrong."""

    def __init__(self) -> None:
        self.illegal = Claim("steps that no edge allows")
        # In the positions, or a leaf that is not the one hashed.
        self.gaps = Claim("gaps in the log")
        self.stale = Claim("writes under an old fence accepted")
        self.steps: Counter[str] = Counter()  # records of each machine
        self.last: dict[tuple[str, Subject], str] = {}
        self.fences: dict[Subject, int] = {}
        self.standing: Counter[tuple[str, str]] = Counter()  # rows in each status

    def take(self, machine: Machine, step: Step) -> None:
        """The next step of a machine."""
        self.illegal.n += 1
        self.steps[machine.name] += 1
        if (step.kind, step.source, step.target) not in _edges(machine):
            self.illegal.fail(f"{machine.name}: {step.kind} from {step.source}")
        if machine in NAMED:
            self._follow(machine, step)
        self.standing[machine.name, step.source] -= 1
        self.standing[machine.name, step.target] += 1
        if machine is transitions.execution and step.fence is not None:
            self._check_fence(step, step.fence)

    def _follow(self, machine: Machine, step: Step) -> None:
        """One row from status to status."""
        key = (machine.name, step.subject)
        before = self.last.get(key, NO_SOURCE)
        if before != step.source:
            name = f"{machine.name} {'/'.join(step.subject)}: {step.kind}"
            self.illegal.fail(f"{name} from {step.source or 'nothing'}, was {before}")
        self.last[key] = step.target

    def _check_fence(self, step: Step, fence: int) -> None:
        """What a holder writes carries the fence that it was given last
        (docs/invariants.md I22)."""
        newest = self.fences.get(step.subject, 0)
        if step.kind in TAKEN:
            if fence != newest + 1:
                self.illegal.fail(f"execution {step.subject}: fence {fence}")
            self.fences[step.subject] = fence
        elif fence != newest:
            self.stale.fail(f"{step.subject}: {step.kind} under {fence}")

    def compare_rows(self) -> None:
        """The rows are where their records end, each of them has records, and no record
        is about a row that is not there."""
        rows = dict(_rows())
        for key in rows.keys() | self.last.keys():
            status, logged = rows.get(key), self.last.get(key)
            if status != logged:
                self.illegal.fail(f"{key}: row {status}, log {logged}")
        for model, machine in MACHINES.items():
            counts = Counter(model._default_manager.values_list("status", flat=True))
            for status in {str(edge.target) for edge in machine.edges}:
                count, logged_count = (
                    counts[status],
                    self.standing[machine.name, status],
                )
                if count != logged_count:
                    self.illegal.fail(
                        f"{machine.name} {status}: {count} rows, {logged_count} in the"
                        " log"
                    )


def check_log() -> LogFindings:
    """In the log's own order, of the whole log."""
    findings = LogFindings()
    rows = LogRecord.objects.select_related("position").order_by("position__seq")
    for seq, row in enumerate(rows.iterator()):
        leaf = bytes(row.leaf)
        findings.gaps.n += 1
        if _place(row) != (seq, hashlib.sha256(b"\0" + leaf).digest()):
            findings.gaps.fail(f"record {row.pk}")
        for machine, step in _steps(row, json.loads(leaf)):
            findings.take(machine, step)
    findings.compare_rows()
    return findings


def _place(row: LogRecord) -> tuple[int, bytes] | None:
    """None when nobody came to give it one."""
    place = getattr(row, "position", None)
    return None if place is None else (place.seq, bytes(place.leaf_hash))


def _steps(row: LogRecord, leaf: dict[str, Any]) -> Iterator[tuple[Machine, Step]]:
    for machine in MACHINES.values():
        if any(edge.logged_as == row.kind for edge in machine.edges):
            subject = _subject(machine, row, leaf)
            fence = (leaf.get("data") or {}).get("fence")
            step = Step(
                row.kind,
                leaf["from"] or NO_SOURCE,
                leaf["to"] or NO_SOURCE,
                subject,
                fence,
            )
            yield machine, step


def _subject(machine: Machine, row: LogRecord, leaf: dict[str, Any]) -> Subject:
    """Which row of the machine a record is about. A revision has one grant, and a
    grant one execution."""
    if machine is transitions.request:
        return (leaf["request"],)
    if machine in (transitions.grant, transitions.execution):
        return (leaf["proposal"], str(leaf["revision"]))
    if machine is agents_transitions.thread:
        return (row.agent, row.thread)
    if machine is agents_transitions.delivery:
        return (leaf["data"]["delivery"],)
    return (str((leaf.get("data") or {}).get("batch", "")),)


def _edges(machine: Machine) -> set[tuple[str, str, str]]:
    return {
        (edge.logged_as, str(edge.source), str(edge.target)) for edge in machine.edges
    }


def _rows() -> Iterator[tuple[tuple[str, Subject], str]]:
    for pk, status in ApprovalRequest.objects.values_list("pk", "status"):
        yield (transitions.request.name, (pk,)), status
    for pk, status in Batch.objects.values_list("pk", "status"):
        yield (transitions.batch.name, (pk,)), status
    for pk, status in Delivery.objects.values_list("pk", "status"):
        yield (agents_transitions.delivery.name, (pk,)), status
    grants = Grant.objects.values_list("proposal_id", "revision__number", "status")
    for proposal, number, status in grants:
        yield (transitions.grant.name, (proposal, str(number))), status
    executions = Execution.objects.values_list(
        "proposal_id", "grant__revision__number", "status"
    )
    for proposal, number, status in executions:
        yield (transitions.execution.name, (proposal, str(number))), status
    threads = Thread.objects.values_list("agent__slug", "name", "status")
    for agent, name, status in threads:
        yield (agents_transitions.thread.name, (agent, name)), status
