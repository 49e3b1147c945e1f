"""The armed panels of a batch: what the verdict does to exactly how many, and what was
typed so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from journal.errors import DomainError
from reviews.choices import OFFERED, REASONS, Verdict
from reviews.desk.batches.forms import BatchForm, Do
from reviews.desk.batches.page import BatchPage
from reviews.desk.components.reasons import ReasonChoice
from reviews.queries.batches.titles import called

VERBS = {
    Verdict.APPROVE: "Approve",
    Verdict.REJECT: "Reject",
    Verdict.ESCALATE: "Escalate",
}


@dataclass(frozen=True, slots=True)
class BatchPanel:
    """One verdict, armed for one exact list."""

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
    code = error.code if error else ""
    commits = form.do is Do.COMMIT
    reasons = _reasons(page, verdict, form)
    return BatchPanel(
        name=verdict.value,
        heading=f"{VERBS[verdict]} these",
        digest=page.choice.digest,
        lines=_lines(page, verdict),
        reasons=reasons,
        reason_required=_needs_reason(page, verdict),
        reason_error=error.detail if error and code == "reason" and reasons else "",
        note=str(form.cleaned_data.get("reason", "")),
        stop=bool(form.cleaned_data.get("stop")) if commits else True,
        problem=_problem(error) if error and not (code == "reason" and reasons) else "",
        commit=f"{VERBS[verdict]} {page.choice.what}",
        after=_after(page, verdict),
    )


def _problem(error: DomainError) -> str:
    if error.code == "batch_changed":
        return (
            "What is ticked is not what this panel was made for. Nothing was recorded."
            " Look at the sum again, then confirm."
        )
    return error.detail


def _lines(page: BatchPage, verdict: Verdict) -> list[str]:
    many = called(page.definition, len(page.choice.ids))
    said = {
        Verdict.APPROVE: f"Exactly the {many} that are ticked, as shown.",
        Verdict.REJECT: (
            "Nothing of it will be executed. The agent is told your one reason for"
            " each, not your name."
        ),
        Verdict.ESCALATE: (
            "A supervisor is asked as well, for each alone. You can no longer decide"
            " them yourself."
        ),
    }
    return [said[verdict] + _back(len(page.choice.left_out))]


def _back(out: int) -> str:
    if not out:
        return ""
    return f" {out} left out {'goes' if out == 1 else 'go'} back to the queue."


def _needs_reason(page: BatchPage, verdict: Verdict) -> bool:
    """The same rule as the operation's: refusals, and what the policy marks."""
    return verdict is not Verdict.APPROVE or page.facts.first.version.requires_reason


def _reasons(page: BatchPage, verdict: Verdict, form: BatchForm) -> list[ReasonChoice]:
    if not _needs_reason(page, verdict):
        return []
    chosen = form.cleaned_data.get("reason_code", "")
    return [
        ReasonChoice(code.value, REASONS[code], code.value == chosen)
        for code in OFFERED[verdict]
    ]


def _after(page: BatchPage, verdict: Verdict) -> str:
    if verdict is Verdict.REJECT:
        return ""
    if verdict is Verdict.ESCALATE:
        return "What nobody answers in time expires. Nothing of it is executed."
    seconds = page.facts.first.version.recall_seconds
    if not seconds:
        return "They run at once, one after another. They cannot be recalled."
    return (
        f"They run after {seconds} s, one after another; recall all with Z until then."
    )
