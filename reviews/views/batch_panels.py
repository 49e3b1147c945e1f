"""The two armed panels of a batch: what the verdict does to exactly how many, and what
was typed so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from journal.errors import DomainError
from reviews.choices import OFFERED, REASONS, Verdict
from reviews.forms.batches import BatchForm
from reviews.queries.batches import BatchPage, called

from .panels import ReasonChoice


@dataclass(frozen=True, slots=True)
class BatchPanel:
    """Approve or reject, armed for one exact list."""

    name: str
    heading: str
    digest: str
    lines: Sequence[str]
    reasons: Sequence[ReasonChoice]
    reason_required: bool
    reason_error: str
    note: str
    stop: bool
    problem: str
    commit: str
    after: str

    @property
    def focus(self) -> str:
        """To what is wrong, else the heading, never a button."""
        if self.reason_error:
            return "#reasons"
        return "#problem" if self.problem else "#panel"


def build(
    page: BatchPage,
    verdict: Verdict,
    form: BatchForm,
    *,
    error: DomainError | None = None,
) -> BatchPanel:
    """The panel for what is chosen now, with what was typed so far."""
    approves = verdict is Verdict.APPROVE
    code = error.code if error else ""
    commits = form.do.value == "commit"
    return BatchPanel(
        name=verdict.value,
        heading="Approve these" if approves else "Reject these",
        digest=page.choice.digest,
        lines=_lines(page, approves),
        reasons=_reasons(page, verdict, form),
        reason_required=not approves or page.facts.first.version.requires_reason,
        reason_error=error.detail if error and code == "reason" else "",
        note=str(form.cleaned_data.get("reason", "")),
        stop=bool(form.cleaned_data.get("stop")) if commits else True,
        problem=_problem(error) if error and code != "reason" else "",
        commit=f"{'Approve' if approves else 'Reject'} {page.choice.what}",
        after=_after(page) if approves else "",
    )


def _problem(error: DomainError) -> str:
    if error.code == "batch_changed":
        return (
            "What is ticked is not what this panel was made for. Nothing was recorded."
            " Look at the sum again, then confirm."
        )
    return error.detail


def _lines(page: BatchPage, approves: bool) -> list[str]:
    out = len(page.choice.left_out)
    back = f" {out} left out {'goes' if out == 1 else 'go'} back to the queue."
    if not approves:
        return [
            "Nothing of it will be executed. The agent is told your one reason for"
            f" each, not your name.{back if out else ''}"
        ]
    said = (
        f"Exactly the {called(page.definition, len(page.choice.ids))} that are ticked"
    )
    return [f"{said}, as shown.{back if out else ''}"]


def _reasons(page: BatchPage, verdict: Verdict, form: BatchForm) -> list[ReasonChoice]:
    if verdict is Verdict.APPROVE and not page.facts.first.version.requires_reason:
        return []
    chosen = form.cleaned_data.get("reason_code", "")
    return [
        ReasonChoice(code.value, REASONS[code], code.value == chosen)
        for code in OFFERED[verdict]
    ]


def _after(page: BatchPage) -> str:
    seconds = page.facts.first.version.recall_seconds
    if not seconds:
        return "They run at once, one after another. They cannot be recalled."
    return (
        f"They run after {seconds} s, one after another; recall all with Z until then."
    )
