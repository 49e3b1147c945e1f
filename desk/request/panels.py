"""The panels of the four verdicts: what each does, what it needs, and what was typed.

After a refusal the same panel returns with the message, the typed text and the error's
own status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from journal.clock import format_time
from journal.errors import DomainError, FieldError
from policies import tools
from reviews import permissions
from reviews.choices import VERDICT_SPECS, Verdict
from reviews.decisions import submission
from reviews.decisions.submission import VerdictSubmission
from reviews.effects.wording import (
    format_delay,
    format_duration,
    format_people,
    format_short_hash,
)
from reviews.models import Draft
from reviews.requests import versions
from reviews.roles import Permission

from .. import argument_form
from ..argument_form import ArgumentForm
from ..components import ready_texts
from ..components.choice import VERDICT_WORDINGS, VerdictWording
from ..components.formatting import SelectOption, list_reason_options
from ..components.fresh_sign_in import build_proof_token
from ..components.regions import Regions
from . import attention, conditions, escalation
from .attention import AttentionCheck, SentAnswers, WrittenCheck
from .comparison import EditPreview
from .conditions import ConditionFields
from .load import LoadedRequest
from .regions import RenderedRegions

CORRECTABLE_CODES = {
    "reason",
    "reauth",
    "policy",
    "verifier",
    "invalid_args",
    "invalid",
    "too_fast",
    "check",
    "throttle",
}
INLINE_CODES = {"reason", "reauth", "check"}  # shown at the field, not at the top


@dataclass(frozen=True, slots=True)
class VerdictPanel:
    name: str
    heading: str
    lines: Sequence[str]
    edits: ArgumentForm | None
    reasons: Sequence[SelectOption]
    reason_required: bool
    reason_error: str
    note: str
    note_hint: str
    ready: Sequence[SelectOption]  # texts for the note
    step_up: bool
    password_error: str
    problem: str
    problem_code: str
    other_errors: Sequence[FieldError]
    commit: str
    after: str
    check: EditPreview | None = None
    field_focus: str = ""  # an element id, when the fields are drawn again
    check_error: str = ""
    asked: AttentionCheck | None = None
    answered: int | None = None
    written: WrittenCheck | None = None
    may_pause: bool = False  # offers to pause the run as well
    pauses: bool = False
    provider_token: str = ""  # for which verdict a fresh sign-in there is
    proved: bool = False  # the password was given for exactly this a moment ago
    conditions: ConditionFields | None = None  # only to approve

    @property
    def commits(self) -> bool:
        """Whether the verdict lets something happen."""
        return VERDICT_SPECS[Verdict(self.name)].commits

    @property
    def first_reason(self) -> int:
        """How many number keys the attention check uses before those of the reasons."""
        if self.asked is None or self.edits is not None:
            return 0
        return len(self.asked.question.options)

    @property
    def focus(self) -> str:
        """The selector that gets the focus: what is wrong, else the heading."""
        if self.check_error:
            return "#id_written" if self.written else "#question"
        if self.reason_error:
            return "#reasons"
        if self.password_error:
            return "#id_password"
        if self.check is not None and not self.problem:
            return f"#{self.field_focus or 'check-heading'}"
        return "#problem" if self.problem else "#panel"

    @property
    def focus_id(self) -> str:
        return self.focus.removeprefix("#")


def build_panel(
    loaded: LoadedRequest,
    verdict: Verdict,
    *,
    data: Mapping[str, str] | None = None,
    error: DomainError | None = None,
    draft: Draft | None = None,
) -> VerdictPanel:
    """The panel of a verdict on the current version.

    `data` is what was just sent, else the panel's own `draft` fills it; `error` is the
    refusal to show in it.
    """
    typed = data or {}
    if draft and not data:
        typed = {"reason": draft.reason, "reason_code": draft.reason_code}
    code = error.code if error else ""
    wording = VERDICT_WORDINGS[verdict]
    edits = None
    if verdict is Verdict.MODIFY:
        sent = data or _find_draft_edits(draft, loaded)
        edits = build_edit_form(loaded, sent, error.errors if error else ())
    asks_reason = verdict is not Verdict.APPROVE or loaded.sealed.requires_reason
    chosen = typed.get("reason_code", "")
    reasons = list_reason_options(verdict, chosen, loaded.preset) if asks_reason else []
    return VerdictPanel(
        name=verdict.value,
        heading=wording.heading,
        lines=_describe_verdict(loaded, verdict),
        edits=edits,
        reasons=reasons,
        reason_required=VERDICT_SPECS[verdict].needs_reason
        or loaded.sealed.requires_reason,
        reason_error=error.detail if error and code == "reason" and reasons else "",
        note=typed.get("reason", ""),
        note_hint=_describe_note(wording, reasons),
        ready=ready_texts.list_ready_texts(loaded.preset, typed.get("ready", "")),
        step_up=code == "reauth"  # an edit may make it needed
        or (loaded.sealed.step_up and VERDICT_SPECS[verdict].commits),
        password_error=error.detail if error and code == "reauth" else "",
        problem=_format_problem(error, reasons),
        problem_code=code,
        check_error=error.detail if error and code == "check" else "",
        other_errors=_list_form_errors(edits, error),
        commit=_format_commit_label(loaded, verdict, edits),
        after=_describe_consequence(loaded, verdict),
        may_pause=verdict is Verdict.REJECT and _may_pause_run(loaded),
        pauses=bool(typed.get("pause")),
        conditions=conditions.build_condition_fields(loaded, data, error)
        if verdict is Verdict.APPROVE
        else None,
    )


def complete_panel(
    panel: VerdictPanel, regions: RenderedRegions, answers: SentAnswers
) -> VerdictPanel:
    """The panel with what the page asks beside it, unless a password was given for
    exactly this decision a moment ago.

    An edit is asked what the version that it makes asks, once the preview knows that
    the editor's vote counts for it.
    """
    loaded, verdict = regions.loaded, Verdict(panel.name)
    bound = VerdictSubmission(
        request_id=loaded.request.pk,
        person=loaded.person,
        verdict=verdict,
        version=loaded.request.version,
        action_hash=loaded.request.action_hash,
    ).bound.digest
    proof = submission.find_stored_proof(answers.session, bound, loaded.now)
    token = build_proof_token(loaded.person, bound) if panel.step_up else ""
    panel = replace(panel, proved=proof is not None, provider_token=token)
    values = regions.values
    if verdict is Verdict.MODIFY:
        if panel.check is None or panel.check.made is None:
            return panel
        values = Regions(loaded.person, panel.check.made)
    question = attention.find_attention_check(
        answers.session, loaded, values, verdict, regions.opened
    )
    return replace(
        panel,
        asked=question,
        answered=answers.choose(question, verdict),
        written=answers.find_written_check(values, verdict),
    )


def _describe_note(wording: VerdictWording, reasons: Sequence[SelectOption]) -> str:
    """Who reads the note, and when it is needed."""
    if not reasons:
        return f"optional, {wording.note_readers}"
    return f"{wording.note_readers}; required for Other"


def _format_problem(error: DomainError | None, reasons: Sequence[SelectOption]) -> str:
    """The message at the top: errors without a field of their own, and a reason error
    where no reasons are shown."""
    if error is None or (
        error.code in INLINE_CODES and (error.code != "reason" or reasons)
    ):
        return ""
    return error.detail


def _may_pause_run(loaded: LoadedRequest) -> bool:
    allowed = permissions.has_permission(loaded.person, Permission.PAUSE)
    return allowed and loaded.stopped is None


def _find_draft_edits(
    draft: Draft | None, loaded: LoadedRequest
) -> Mapping[str, str] | None:
    """The draft's edits, if there are any and they were made on the current version."""
    if draft is None or draft.version != loaded.request.version:
        return None
    return draft.edits or None


def keeps_panel(loaded: LoadedRequest, error: DomainError) -> bool:
    """Whether the person can correct the error in the panel and may still decide."""
    return error.code in CORRECTABLE_CODES and loaded.able


def build_edit_form(
    loaded: LoadedRequest,
    sent: Mapping[str, str] | None,
    errors: Sequence[FieldError] = (),
) -> ArgumentForm | None:
    """The form of the arguments, with what was `sent`; None without a tool."""
    tool = loaded.revision.tool
    if tool is None:
        return None
    return argument_form.build_form(
        tools.load_definition(tool),
        loaded.revision.args,
        labels=loaded.revision.reading.get("labels", {}),
        sent=sent,
        errors=errors,
    )


def _list_form_errors(
    edits: ArgumentForm | None, error: DomainError | None
) -> Sequence[FieldError]:
    if edits is not None:
        return edits.above
    errors = error.errors if error else []
    return [
        problem
        for problem in errors
        if not problem["path"].startswith(conditions.PATH_PREFIX)
    ]


def _describe_verdict(loaded: LoadedRequest, verdict: Verdict) -> list[str]:
    if verdict is Verdict.APPROVE:
        version, digest = loaded.request.version, loaded.request.action_hash
        sentence = (
            f"You are approving version {version} exactly as shown. "
            f"The audit log names it {format_short_hash(digest)}."
        )
        return [sentence, *_describe_further_votes(loaded)]
    if verdict is Verdict.REJECT:
        return [
            "Nothing will be executed. The agent receives the reason you choose and"
            " your note, word for word, but not your name."
        ]
    if verdict is Verdict.ESCALATE:
        asked = escalation.describe_supervisors(
            loaded.request, loaded.person, loaded.now
        )
        return [asked, "You can then no longer decide it yourself."]
    return []


def _describe_further_votes(loaded: LoadedRequest) -> list[str]:
    left = loaded.tally.required - loaded.given - 1
    if left <= 0:
        return []
    return [f"{loaded.describe_missing_approvals(left)}, without seeing your decision."]


def _format_commit_label(
    loaded: LoadedRequest, verdict: Verdict, edits: ArgumentForm | None
) -> str:
    tally = loaded.tally
    if edits is not None and edits.changes:
        return f"Approve with my {format_people(edits.changes, 'change')}"
    if verdict is Verdict.APPROVE and tally.required - tally.given > 1:
        return f"Approve ({tally.given + 1} of {tally.required})"
    if verdict is Verdict.APPROVE and _is_performed_by_agent(loaded):
        return VERDICT_WORDINGS[verdict].verb
    return VERDICT_WORDINGS[verdict].commit


def _is_performed_by_agent(loaded: LoadedRequest) -> bool:
    tool = loaded.revision.tool
    return tool is not None and tools.load_definition(tool).by_agent


def _describe_consequence(loaded: LoadedRequest, verdict: Verdict) -> str:
    if verdict is Verdict.ESCALATE:
        timeout = versions.parse_evaluation(loaded.revision).timeout
        until = versions.compute_escalated_deadline(loaded.request, timeout)
        if loaded.request.frozen_through:
            after = format_duration(until - loaded.request.frozen_through)
            return f"It then expires {after} after deadlines resume."
        return (
            f"It then expires at {format_time(until)}, "
            f"{format_duration(until - loaded.now)} from now. It is never approved "
            "automatically."
        )
    if verdict is Verdict.REJECT:
        return ""
    seconds = loaded.sealed.recall_seconds
    more = loaded.tally.required - loaded.given > 1 or verdict is Verdict.MODIFY
    after = "the last approval" if more else "approval"
    does = "The agent may perform it" if _is_performed_by_agent(loaded) else "Runs"
    sentence = (
        f"{does} {format_delay(seconds)} after {after}. You can undo until then (Z)."
    )
    if not seconds:
        sentence = f"{does} immediately after {after}. The approval cannot be undone."
    if verdict is Verdict.MODIFY:
        later = loaded.request.version + 1
        sentence = f"Creates version {later}; earlier votes no longer count. {sentence}"
    return sentence
