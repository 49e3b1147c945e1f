"""The panels of the four verdicts and of messages to the agent: what each does, what it
needs, and what was typed.

After a refusal the same panel returns with the message, the typed text and the error's
own status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.http import QueryDict
from django.utils import timezone

from journal.clock import format_time
from journal.errors import DomainError, FieldError
from notifications.on_call import duty
from policies import tools
from policies.models import Person
from reviews import permissions
from reviews.choices import REASON_LABELS, VERDICT_SPECS, Verdict
from reviews.effects.wording import (
    format_delay,
    format_duration,
    format_people,
    format_short_hash,
)
from reviews.governance import readings
from reviews.models import ApprovalRequest, Draft, Message
from reviews.people import preferences
from reviews.people.preferences import NotificationPreferences
from reviews.permissions import Permission
from reviews.requests import versions

from .. import argument_form
from ..argument_form import ArgumentForm
from ..components import holding
from ..components.choice import VERDICT_WORDINGS, VerdictWording
from ..components.formatting import ReasonChoice, format_condition_value
from ..forms import name_message_draft
from .load import LoadedRequest

MOST_NAMES = 4  # people listed by name


def describe_supervisors(
    request: ApprovalRequest, person: Person, now: datetime
) -> str:
    """The supervisors an escalation would ask, those on call first; in two
    queries."""
    rows = holding.select_supervisors(request).exclude(pk=person.pk)
    found = list(rows.select_related("preferences").order_by("username"))
    on_call = duty.select_on_call(request.queue_id, found, now) if found else set()
    told = [
        (
            preferences.load_preferences(one).notifications,
            str(one),
            one.pk in on_call,
        )
        for one in found
    ]
    if not told:
        return (
            "No other supervisor is admitted to this queue, so it would wait for one."
        )
    told.sort(key=lambda one: not one[2])
    names = [
        f"{name} ({_format_local_time(wants, now, on_call=called)})"
        for wants, name, called in told[:MOST_NAMES]
    ]
    more = [f"{len(told) - MOST_NAMES} more"] if len(told) > MOST_NAMES else []
    return f"These supervisors can then decide it: {', '.join([*names, *more])}."


def _format_local_time(
    wants: NotificationPreferences, now: datetime, *, on_call: bool
) -> str:
    local = f"local time {now.astimezone(ZoneInfo(wants.zone)):%H:%M}"
    return f"on call, {local}" if on_call else local


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
MESSAGE_CODES = {
    "reason",
    "invalid",
    "rounds",
    "returned",
    "unanswered",
    "no_question",
    "conflict",
}
INLINE_CODES = {"reason", "reauth", "check"}  # shown at the field, not at the top


@dataclass(frozen=True, slots=True)
class ConditionChoice:
    """A field of the current reading, and its value: untrusted text."""

    name: str
    label: str
    value: str
    checked: bool


@dataclass(frozen=True, slots=True)
class ConditionFields:
    """The conditions of an approval as typed, and what is wrong with them."""

    not_before: str
    not_after: str
    choices: Sequence[ConditionChoice]
    zone: str  # of the times
    errors: Mapping[str, str]  # by field: not_before, not_after, expect

    @property
    def is_open(self) -> bool:
        typed = bool(self.not_before or self.not_after or self.errors)
        return typed or any(one.checked for one in self.choices)


LONGEST_VALUE = 200  # characters; a longer value is no condition for people
CONDITIONS = "conditions."  # how the paths of their errors begin


def _build_condition_fields(
    loaded: LoadedRequest, data: Mapping[str, str] | None, error: DomainError | None
) -> ConditionFields:
    shown = readings.load_shown_reading(loaded.reading, loaded.revision)
    labels, known = shown.get("labels", {}), readings.list_plain_values(shown)
    chosen = data.getlist("expect") if isinstance(data, QueryDict) else []
    typed = data or {}
    errors = {
        one["path"].removeprefix(CONDITIONS).partition(".")[0]: one["message"]
        for one in (error.errors if error else ())
        if one["path"].startswith(CONDITIONS)
    }
    return ConditionFields(
        not_before=typed.get("not_before", ""),
        not_after=typed.get("not_after", ""),
        choices=[
            ConditionChoice(
                name,
                labels.get(name, name.replace("_", " ").capitalize()),
                format_condition_value(value),
                name in chosen,
            )
            for name, value in known.items()
            if len(str(value)) <= LONGEST_VALUE
        ],
        zone=timezone.get_current_timezone_name(),
        errors=errors,
    )


@dataclass(frozen=True, slots=True)
class VerdictPanel:
    """The panel of one verdict, ready to commit."""

    name: str
    heading: str
    version: int
    action_hash: str
    lines: Sequence[str]
    edits: ArgumentForm | None
    reasons: Sequence[ReasonChoice]
    reason_required: bool
    reason_error: str
    note: str
    note_hint: str
    step_up: bool
    password_error: str
    problem: str
    problem_code: str
    other_errors: Sequence[FieldError]
    commit: str
    after: str
    check: Any = None  # the preview of the edit
    field_focus: str = ""  # an element id, when the fields are drawn again

    check_error: str = ""
    asked: Any = None  # the attention check, once the page is known
    answered: int | None = None
    written: Any = None  # the written question with its answer, once the page is known
    may_pause: bool = False  # offers to pause the run as well
    pauses: bool = False
    proved: bool = False  # the password was given for exactly this a moment ago
    conditions: ConditionFields | None = None  # only to approve

    @property
    def commits(self) -> bool:
        """Whether the verdict lets something happen."""
        return VERDICT_SPECS[Verdict(self.name)].commits

    @property
    def first_reason(self) -> int:
        """How many number keys the attention check uses before those of the reasons."""
        asks = self.asked is not None and self.edits is None
        return len(self.asked.question.options) if asks else 0

    @property
    def focus(self) -> str:
        """The selector that gets the focus: what is wrong, else the heading, never a
        button."""
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
        """The same as an element id."""
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
    typed = data or _find_draft_reason(draft)
    code = error.code if error else ""
    wording = VERDICT_WORDINGS[verdict]
    edits = _build_edit_form(
        loaded,
        verdict,
        data or _find_draft_edits(draft, loaded) or None,
        error,
    )
    reasons = _build_reason_choices(loaded, verdict, typed)
    return VerdictPanel(
        name=verdict.value,
        heading=wording.heading,
        version=loaded.request.version,
        action_hash=loaded.request.action_hash,
        lines=_describe_verdict(loaded, verdict),
        edits=edits,
        reasons=reasons,
        reason_required=is_reason_required(loaded, verdict),
        reason_error=error.detail if error and code == "reason" and reasons else "",
        note=typed.get("reason", ""),
        note_hint=_describe_note(wording, reasons),
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
        conditions=_build_condition_fields(loaded, data, error)
        if verdict is Verdict.APPROVE
        else None,
    )


def _describe_note(wording: VerdictWording, reasons: Sequence[ReasonChoice]) -> str:
    """Who reads the note, and when it is needed."""
    if not reasons:
        return f"optional, {wording.note_readers}"
    return f"{wording.note_readers}; required for Other"


def _format_problem(error: DomainError | None, reasons: Sequence[ReasonChoice]) -> str:
    """The message at the top: errors without a field of their own, and a reason error
    where no reasons are shown."""
    if error is None or (
        error.code in INLINE_CODES and (error.code != "reason" or reasons)
    ):
        return ""
    return error.detail


def _may_pause_run(loaded: LoadedRequest) -> bool:
    """Whether the person may pause the run and nothing of it is stopped already."""
    allowed = permissions.has_permission(loaded.person, Permission.PAUSE)
    return allowed and loaded.stopped is None


def _find_draft_reason(draft: Draft | None) -> Mapping[str, str]:
    if draft is None:
        return {}
    return {"reason": draft.reason, "reason_code": draft.reason_code}


def _find_draft_edits(
    draft: Draft | None, loaded: LoadedRequest
) -> Mapping[str, str] | None:
    """The draft's edits, if they were made on the current version."""
    if draft is None:
        return None
    return draft.edits if draft.version == loaded.request.version else None


def keeps_panel(loaded: LoadedRequest, error: DomainError) -> bool:
    """Whether the person can correct the error in the panel and may still decide."""
    return error.code in CORRECTABLE_CODES and loaded.able


def is_reason_required(loaded: LoadedRequest, verdict: Verdict) -> bool:
    """Whether a reason is required, by the operation's rule: to reject or escalate, and
    where the policy says so."""
    return VERDICT_SPECS[verdict].needs_reason or loaded.sealed.requires_reason


def _build_edit_form(
    loaded: LoadedRequest,
    verdict: Verdict,
    data: Mapping[str, str] | None,
    error: DomainError | None,
) -> ArgumentForm | None:
    tool = loaded.revision.tool
    if verdict is not Verdict.MODIFY or tool is None:
        return None
    return argument_form.build_form(
        tools.load_definition(tool),
        loaded.revision.args,
        labels=loaded.revision.reading.get("labels", {}),
        sent=data,
        errors=error.errors if error else (),
    )


def _list_form_errors(
    edits: ArgumentForm | None, error: DomainError | None
) -> Sequence[FieldError]:
    if edits is not None:
        return edits.above
    found = error.errors if error else []
    return [one for one in found if not one["path"].startswith(CONDITIONS)]


def _build_reason_choices(
    loaded: LoadedRequest, verdict: Verdict, typed: Mapping[str, str]
) -> list[ReasonChoice]:
    if verdict is Verdict.APPROVE and not loaded.sealed.requires_reason:
        return []
    chosen = typed.get("reason_code", "")
    return [
        ReasonChoice(code.value, REASON_LABELS[code], code.value == chosen)
        for code in VERDICT_SPECS[verdict].reasons
    ]


def _describe_verdict(loaded: LoadedRequest, verdict: Verdict) -> list[str]:
    if verdict is Verdict.APPROVE:
        version, digest = loaded.request.version, loaded.request.action_hash
        said = (
            f"You are approving version {version} exactly as shown. "
            f"The audit log names it {format_short_hash(digest)}."
        )
        return [said, *_describe_further_votes(loaded)]
    if verdict is Verdict.REJECT:
        return [
            "Nothing will be executed. The agent receives the reason you choose and"
            " your note, word for word, but not your name."
        ]
    if verdict is Verdict.ESCALATE:
        asked = describe_supervisors(loaded.request, loaded.person, loaded.now)
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
    said = f"{does} {format_delay(seconds)} after {after}. You can undo until then (Z)."
    if not seconds:
        said = f"{does} immediately after {after}. The approval cannot be undone."
    if verdict is Verdict.MODIFY:
        later = loaded.request.version + 1
        said = f"Creates version {later}; earlier votes no longer count. {said}"
    return said


@dataclass(frozen=True, slots=True)
class MessageButton:
    """A message as a button beside the verdicts, with its shortcut."""

    name: str
    label: str
    key: str


ASK = MessageButton("ask", "Ask…", "Q")
ANSWER = MessageButton("ask", "Answer…", "Q")
SEND_BACK = MessageButton("send_back", "Send back…", "B")
DECIDES_NOTHING = "This decides nothing, and the deadline stands."


def list_message_buttons(loaded: LoadedRequest) -> tuple[MessageButton, ...]:
    """Ask, which is Answer while a question of the agent is unanswered, and Send back
    until the agent has it."""
    asked = loaded.dialogue.list_questions(by_agent=True)
    back = () if loaded.request.with_agent_since else (SEND_BACK,)
    return (ANSWER if asked else ASK, *back)


_MESSAGE_HEADINGS = {
    "ask": "Ask the agent",
    "send_back": "Send back for revision",
    "answer": "Answer the agent",
}


def name_draft(loaded: LoadedRequest, arm: str) -> str:
    """The name by which the draft of the panel that `arm` opens is stored."""
    if arm != "ask":
        return arm
    asked = loaded.dialogue.list_questions(by_agent=True)
    return name_message_draft(arm, asked[0].round if asked else None)


def describe_draft(panel: str) -> str:
    """The heading of the panel that a draft was typed into; empty if it names none."""
    if panel in set(Verdict):
        return VERDICT_WORDINGS[Verdict(panel)].heading
    return _MESSAGE_HEADINGS.get(panel.partition("-")[0], "")


def describe_sent(loaded: LoadedRequest, name: str) -> str:
    """The confirmation of a message; `loaded` is the request before it was sent."""
    if name == "send_back":
        return (
            "Sent back. The agent has the request until it answers; you can still"
            " decide it."
        )
    if loaded.dialogue.list_questions(by_agent=True):
        return "Your answer is sent."
    return "Your question is sent. The answer appears on this page."


@dataclass(frozen=True, slots=True)
class MessagePanel:
    """The panel of a message to the agent, ready to send."""

    name: str
    heading: str
    version: int
    line: str  # what it does, in one line
    commit: str
    note: str
    question: Message | None = None  # of the agent, which the text answers
    why_not: str = ""  # why nothing can be sent now
    problem: str = ""
    problem_code: str = ""

    @property
    def focus(self) -> str:
        return "#problem" if self.problem else "#panel"


def build_message_panel(
    loaded: LoadedRequest,
    name: str,
    *,
    data: Mapping[str, str] | None = None,
    error: DomainError | None = None,
    draft: Draft | None = None,
) -> MessagePanel:
    """The panel of a message. Ask becomes an answer while a question of the agent is
    unanswered. The other parameters are those of `build_panel`."""
    asked = loaded.dialogue.list_questions(by_agent=True)
    typed = data.get("reason", "") if data else draft.reason if draft else ""
    if name == "send_back":
        heading, commit = _MESSAGE_HEADINGS[name], "Send back"
        line = "The agent revises or withdraws it. Others can decide it meanwhile."
    elif asked:
        heading, commit = _MESSAGE_HEADINGS["answer"], "Send the answer"
        line = "The agent and everybody who can see this request can read your answer."
    else:
        heading, commit = _MESSAGE_HEADINGS["ask"], "Send the question"
        line = "The answer appears on this page, and you are notified."
    return MessagePanel(
        name=name,
        heading=heading,
        version=loaded.request.version,
        line=f"{line} {DECIDES_NOTHING}",
        commit=commit,
        note=typed,
        question=asked[0] if asked and name == "ask" else None,
        why_not="" if error else _find_message_refusal(loaded, name, bool(asked)),
        problem=_format_message_problem(error),
        problem_code=error.code if error else "",
    )


def _format_message_problem(error: DomainError | None) -> str:
    if error is None:
        return ""
    rules = [one["message"] for one in error.errors]
    return " ".join([error.detail, *(f"Text: {rule}." for rule in rules)])


def _find_message_refusal(loaded: LoadedRequest, name: str, answers: bool) -> str:
    """Why the operation would refuse this message now; "" if it would not."""
    dialogue = loaded.dialogue
    if name == "ask" and answers:
        return ""
    if not dialogue.count_rounds_left(by_agent=False):
        return "All rounds of this request are used. Decide it, or escalate it."
    since = loaded.request.with_agent_since
    if name == "send_back" and since is not None:
        return f"This has been with the agent since {format_time(since)}."
    questions = dialogue.list_questions(by_agent=False)
    if name == "ask" and any(one.author_id == loaded.person.pk for one in questions):
        return "The agent has not answered your last question yet."
    return ""


def keeps_message_panel(loaded: LoadedRequest, error: DomainError) -> bool:
    """Whether the person can correct the error in the panel, or read there why not."""
    return loaded.able and error.code in MESSAGE_CODES
