"""The panel of a verdict on a batch: what it does to exactly which requests, and what
the person typed so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from journal.errors import DomainError
from reviews.choices import VERDICT_SPECS, Verdict
from reviews.effects.wording import format_delay

from ..components import ready_texts
from ..components.choice import VERDICT_WORDINGS
from ..components.formatting import SelectOption, list_reason_options
from .forms import BatchButton, BatchForm
from .links import format_request_count
from .selection import TickedRows

NOTE_HINT = "the same for each item"


@dataclass(frozen=True, slots=True)
class BatchPanel:
    """One verdict, armed for one exact list of requests."""

    name: str
    heading: str
    digest: str
    lines: Sequence[str]
    reasons: Sequence[SelectOption]
    reason_required: bool
    reason_error: str
    note: str
    note_hint: str
    ready: Sequence[SelectOption]
    stop: bool
    problem: str
    commit: str
    after: str

    @property
    def focus(self) -> str:
        """The element to focus: the error, else the heading, never a button."""
        if self.reason_error:
            return "#reasons"
        return "#problem" if self.problem else "#panel"


def build_panel(
    ticked: TickedRows,
    verdict: Verdict,
    form: BatchForm,
    *,
    error: DomainError | None = None,
) -> BatchPanel:
    code = error.code if error else ""
    verb = VERDICT_WORDINGS[verdict].verb
    commits = form.do is BatchButton.COMMIT
    # The operation's own rule.
    marked = ticked.loaded.members[0].version.requires_reason
    required = VERDICT_SPECS[verdict].needs_reason or marked
    chosen = form.cleaned_data.get("reason_code", "")
    preset = ticked.loaded.preset
    reasons = list_reason_options(verdict, chosen, preset) if required else []
    chosen_text = form.cleaned_data.get("ready", "")
    own = form.data.get("verdict", verdict) == verdict  # typed for this verdict
    return BatchPanel(
        name=verdict.value,
        heading=f"{verb} selected items",
        digest=ticked.digest,
        lines=_describe_consequences(ticked, verdict),
        reasons=reasons,
        reason_required=required,
        reason_error=error.detail if error and code == "reason" and reasons else "",
        note=str(form.cleaned_data.get("reason", "")) if own else "",
        note_hint=NOTE_HINT,
        ready=ready_texts.list_ready_texts(preset, chosen_text if own else ""),
        stop=bool(form.cleaned_data.get("stop")) if commits else True,
        problem=_describe_problem(error)
        if error and not (code == "reason" and reasons)
        else "",
        commit=f"{verb} {ticked.what}",
        after=_describe_what_follows(ticked, verdict),
    )


def _describe_problem(error: DomainError) -> str:
    if error.code == "batch_changed":
        return (
            "This panel was opened for a different selection. Nothing was recorded."
            " Check the total, then confirm again."
        )
    return error.detail


def _describe_consequences(ticked: TickedRows, verdict: Verdict) -> list[str]:
    many = format_request_count(ticked.loaded.definition, len(ticked.ids))
    effect = VERDICT_WORDINGS[verdict].batch_effect.format(many=many)
    return [f"{effect} {ticked.left_out_said}".rstrip()]


def _describe_what_follows(ticked: TickedRows, verdict: Verdict) -> str:
    if verdict is Verdict.REJECT:
        return ""
    if verdict is Verdict.ESCALATE:
        return "An item that nobody decides in time expires and is not executed."
    seconds = ticked.loaded.members[0].version.recall_seconds
    when = f"{format_delay(seconds)} after approval"
    undo = "You can undo all of them until then (Z)."
    if not seconds:
        when, undo = "immediately", "The approvals cannot be undone."
    if ticked.loaded.definition.by_agent:
        return f"The agent may perform them {when}. {undo}"
    return f"They run {when}, one after another. {undo}"
