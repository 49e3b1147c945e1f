"""The lines of a dataset: one decided version of a request each, as JSON.

A line has what the reviewer was shown, the label and what backs it. It has no time, no
person and no id of the installation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policies import tools
from reviews.choices import RequestStatus, Verdict
from reviews.models import Canary, Decision, Execution, RequestVersion, Revision
from reviews.presenters.arguments import collect_leaves

from .labels import LineLabel, build_canary_label, build_label
from .redaction import HiddenNames, LineRedactor, LineSubject, build_pseudonym
from .selection import DatasetPlan, Version


def build_lines(
    key: bytes, plan: DatasetPlan, wanted: Sequence[Version], others: HiddenNames
) -> Iterator[dict[str, Any]]:
    """Build the lines of these versions in their order, in a fixed number of
    queries."""
    rows = _LineRows(plan, wanted)
    for version in wanted:
        yield _build_line(key, plan, rows, version, others)


class _LineRows:
    """The rows that some lines are built from."""

    def __init__(self, plan: DatasetPlan, wanted: Sequence[Version]) -> None:
        requests = {request for request, _ in wanted}
        rows = RequestVersion.objects.filter(request__in=requests).select_related(
            "revision__tool", "request__proposal"
        )
        self.versions = {(row.request_id, row.number): row for row in rows}
        self.returned = {  # the last version that a supervisor gave back
            row.request_id: row.number
            for row in sorted(self.versions.values(), key=lambda row: row.number)
            if row.cause == "returned"
        }
        self.decisions = self._load_decisions(plan, wanted)
        proposals = {row.request.proposal_id for row in rows}
        self.canaries = Canary.objects.in_bulk(proposals)
        self.executions = {
            execution.grant.revision_id: execution
            for execution in Execution.objects.filter(proposal__in=proposals)
            .select_related("grant")
            .prefetch_related("reversals__proposal__executions")
            .order_by("queued_at")
        }

    def _load_decisions(
        self, plan: DatasetPlan, wanted: Sequence[Version]
    ) -> Mapping[Version, list[Decision]]:
        shown = {
            pk: version for version in wanted for pk in plan.decisions.get(version, ())
        }
        by_version: dict[Version, list[Decision]] = defaultdict(list)
        rows = Decision.objects.filter(pk__in=shown).select_related("second")
        for decision in rows.order_by("pk"):
            by_version[shown[decision.pk]].append(decision)
        return by_version

    def find_execution(self, version: RequestVersion) -> Execution | None:
        """The effect that this version led to: its own, or that of its edit."""
        own = self.executions.get(version.revision_id)
        edit = self.find_edit(version)
        return own or (self.executions.get(edit.pk) if edit else None)

    def find_edit(self, version: RequestVersion) -> Revision | None:
        """What a reviewer made of this version."""
        after = self.versions.get((version.request_id, version.number + 1))
        return after.revision if after and after.cause == "modified" else None

    def build_label(self, version: RequestVersion) -> LineLabel:
        request = version.request
        if request.canary:
            return build_canary_label(self.canaries[request.proposal_id])
        last = version.number == request.version
        return build_label(
            RequestStatus(request.status) if last else None,
            self.decisions[(version.request_id, version.number)],
            self.find_execution(version),
            returned=version.number < self.returned.get(version.request_id, 0),
        )


def _build_line(
    key: bytes, plan: DatasetPlan, rows: _LineRows, at: Version, others: HiddenNames
) -> dict[str, Any]:
    version = rows.versions[at]
    revision, proposal = version.revision, version.request.proposal
    revision.proposal = proposal
    tool = revision.known_tool
    customers = plan.customers.get(at[0], frozenset())
    subject = LineSubject(proposal, revision, tools.load_definition(tool), customers)
    redactor = LineRedactor(key, subject, others)
    label = rows.build_label(version)
    thread = f"{proposal.agent}/{proposal.thread}"
    return {
        "request": build_pseudonym(key, "request", at[0]),
        "version": at[1],
        "part": plan.parts[at[0]],
        "agent": build_pseudonym(key, "agent", proposal.agent),
        "thread": build_pseudonym(key, "thread", thread),
        "customers": sorted(redactor.pseudonyms.values()),
        "tool": {"name": tool.name, "version": tool.version},
        "risk": version.risk,
        "tier": version.tier,
        "rules": [rule["id"] for rule in version.rules],
        "arguments": redactor.redact_arguments(revision.args),
        **_build_words(redactor, revision),
        "canary": version.request.canary,
        "label": label.label,
        "label_quality": list(label.quality),
        "verdict": label.verdict,
        "reason_code": label.reason_code,
        "edited": _list_edited(redactor, rows, version, label),
    }


def _build_words(redactor: LineRedactor, revision: Revision) -> dict[str, Any]:
    """The agent's words and its evidence. The digest and the time of an item are left
    out: they would lead back to it."""
    return {
        "rationale": redactor.redact_text(revision.rationale),
        "expected_outcome": redactor.redact_text(revision.expected_outcome),
        "evidence": [
            {
                name: redactor.redact_text(str(item.get(name, "")))
                for name in ("kind", "source", "text")
            }
            for item in revision.evidence
        ],
    }


def _list_edited(
    redactor: LineRedactor, rows: _LineRows, version: RequestVersion, label: LineLabel
) -> list[str]:
    """The paths of the arguments that the reviewer changed."""
    edit = rows.find_edit(version) if label.verdict == Verdict.MODIFY else None
    if edit is None:
        return []
    before = {leaf.path: leaf.value for leaf in collect_leaves(version.revision.args)}
    after = {leaf.path: leaf.value for leaf in collect_leaves(edit.args)}
    paths = sorted(before.keys() | after.keys())
    missing = object()
    return [
        redactor.redact_text(path)
        for path in paths
        if before.get(path, missing) != after.get(path, missing)
    ]
