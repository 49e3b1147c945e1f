"""The checks that every verdict must pass. An item of a batch passes the same checks as
a single decision.

A verdict that comes too late is refused with what happened, when and by whom, and the
statement that the verdict has no effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from journal import clock
from journal.clock import format_time
from journal.errors import (
    AlreadyDecided,
    AttentionCheckFailed,
    Conflict,
    DomainError,
    EffectUnreadable,
    FieldError,
    HoldLapsed,
    InvalidInput,
    ReasonMissing,
    RequestExpired,
    RequestWithdrawn,
    StaleVersion,
    build_field_error,
)
from journal.prepared_queries import Parameter, PreparedQuery
from reviews import permissions
from reviews.attention_checks import written_questions
from reviews.choices import (
    DECIDED,
    RETRACTED,
    VERDICT_SPECS,
    ReasonCode,
    RequestStatus,
    StopMode,
    Verdict,
)
from reviews.effects import describe
from reviews.governance import readings as state_readings
from reviews.governance.readings import KnownReadings
from reviews.grants import uncertain
from reviews.grants.grants import NO_CONDITIONS, GrantConditions
from reviews.holds import rows as hold_rows
from reviews.models import (
    ApprovalRequest,
    Decision,
    RequestVersion,
    StateReading,
)
from reviews.requests import versions
from reviews.stops.stops import build_action_key

from .case import DecisionContext, DecisionFacts, check_step_up
from .preflight import Preflight
from .submission import PageEvidence, VerdictSubmission
from .votes import StepVote


def check_still_open(
    request: ApprovalRequest, submission: VerdictSubmission, now: datetime
) -> None:
    """Check that the request is still open for this verdict; a rejection may still end
    a recall window. Raises RequestExpired, RequestWithdrawn, AlreadyDecided or
    HoldLapsed, worded for this person. Caller holds the request's lock, unless the
    request is settled: then its status stays."""
    status = RequestStatus(request.status)
    overdue = status is RequestStatus.PENDING and request.expires_at <= now
    if overdue or status is RequestStatus.EXPIRED:  # guard: deadline
        raise _build_expired_error(request, now)
    if status in RETRACTED:
        raise _build_withdrawn_error(request)
    held = (
        status is RequestStatus.RECALLABLE and submission.verdict is not Verdict.REJECT
    )
    if held or status in DECIDED:
        raise _build_decided_error(request, submission, now)


def _build_expired_error(request: ApprovalRequest, now: datetime) -> DomainError:
    late = max(int((now - request.expires_at).total_seconds()), 0)
    return RequestExpired(
        f"This expired at {format_time(request.expires_at)}, {_format_duration(late)} "
        f"before your decision arrived. {uncertain.describe_effect(request)}",
        expired_at=clock.format_instant(request.expires_at),
    )


def _build_withdrawn_error(request: ApprovalRequest) -> DomainError:
    what = "This was withdrawn"
    if request.status == RequestStatus.SUPERSEDED:
        what = "A later proposal replaced this"
    return RequestWithdrawn(
        f"{what} at {format_time(request.settled_at)}. There is nothing to decide. "
        "Your decision was not recorded."
    )


_NEWEST_DECISION = PreparedQuery(
    lambda: (
        Decision.objects.filter(
            request=Parameter("request"), version=Parameter("version")
        )
        .select_related("reviewer")
        .order_by("-at")[:1]
    )
)


def _build_decided_error(
    request: ApprovalRequest, submission: VerdictSubmission, now: datetime
) -> DomainError:
    decision = _NEWEST_DECISION.fetch_first(request=request.pk, version=request.version)
    if decision is None:
        return AlreadyDecided()
    who = _describe_decider(request, decision, submission)
    what = VERDICT_SPECS[Verdict(decision.verdict)].past_in_full
    noun = VERDICT_SPECS[submission.verdict].noun
    theirs = str(decision.authority.get("hold", ""))
    if submission.hold and theirs and theirs != submission.hold and who != "You":
        return HoldLapsed(
            f"Your claim ended and {_lowercase_decider(who)} {what} this at "
            f"{format_time(decision.at)}. Your {noun} has no effect."
        )
    if who == "You":
        before = "already"
    else:
        ago = max(int((now - decision.at).total_seconds()), 0)
        before = f"{_format_duration(ago) if ago else 'just'} before you"
    return AlreadyDecided(f"{who} {what} this {before}. Your {noun} has no effect.")


def _describe_decider(
    request: ApprovalRequest, decision: Decision, submission: VerdictSubmission
) -> str:
    """The decider's name once the request is settled. During the recall window, and to
    a person who is barred from the proposal, the decider stays anonymous."""
    if decision.reviewer_id == submission.person.pk:
        return "You"
    concerned = submission.person.public_id in request.proposal.barred
    hidden = concerned or request.status == RequestStatus.RECALLABLE
    return "Someone else" if hidden else str(decision.reviewer)


def _lowercase_decider(who: str) -> str:
    return "someone else" if who == "Someone else" else who


def _format_duration(count: int) -> str:
    if count >= 120:
        minutes = count // 60
        return f"{minutes} minutes"
    return f"{count} second{'' if count == 1 else 's'}"


def build_decision_context(
    submission: VerdictSubmission,
    request: ApprovalRequest,
    preflight: Preflight,
    facts: DecisionFacts,
    *,
    now: datetime,
) -> DecisionContext:
    """Check one verdict and build its decision context. Raises what
    `decide.decide_request` raises, except the refusal that the page deferred. Caller
    holds the request's lock, and loaded `facts` under it."""
    version = request.sealed
    _check_current(submission, request, facts, now)
    if not preflight.current:
        raise Conflict  # it became current during the wait, and no verifier was called
    role = permissions.check_can_decide(
        submission.person, request, version, facts.known
    )
    hold = facts.holds.get(request.pk)
    hold_rows.check_hold(hold, submission.person, now, submission.hold)
    reading = _check_reading(submission, version, facts.readings)
    _check_reason(submission, version)
    _check_readable(submission, version)
    _check_conditions(submission, version, reading, now)
    # `check_made_version` asks it of an edit instead.
    if submission.verdict is not Verdict.MODIFY:
        _check_written_answer(submission, version)
    if version.step_up and submission.commits:  # guard: step-up
        check_step_up(submission, version, now)
    return DecisionContext(
        submission,
        request,
        version,
        role,
        now,
        preflight=preflight,
        hold=hold,
        reading=reading,
        filled=facts.filled[request.pk],
        earlier=facts.earlier[request.pk],
    )


def _check_readable(submission: VerdictSubmission, version: RequestVersion) -> None:
    # An edit is shown again as a version of its own.
    if (
        submission.verdict is Verdict.APPROVE
        and describe.load_brief(version.revision).unreadable
    ):
        raise EffectUnreadable


def _check_current(
    submission: VerdictSubmission,
    request: ApprovalRequest,
    facts: DecisionFacts,
    now: datetime,
) -> None:
    check_still_open(request, submission, now)
    # A stop withdraws open requests in the background. One that it has not reached yet
    # may no longer be decided either. A paused request may be.
    # guard: decide-stop
    if facts.state.modes[build_action_key(request.proposal)] is StopMode.STOPPED:
        raise RequestWithdrawn("This was stopped. Your decision was not recorded.")
    if submission.is_stale(request):  # guard: seen-version
        raise StaleVersion(current_version=request.version)


def _check_reading(
    submission: VerdictSubmission, version: RequestVersion, readings: KnownReadings
) -> StateReading | None:
    """A verdict that lets something happen needs the current state to be the one shown.
    Returns that reading; None for other verdicts, and for an edit, whose arguments have
    a reading of their own."""
    if not submission.commits:
        return None
    shown = state_readings.check_reading(version.revision, submission.reading, readings)
    return None if submission.verdict is Verdict.MODIFY else shown


def _check_written_answer(
    submission: VerdictSubmission, version: RequestVersion
) -> None:
    """Only the request's own page asks for a written answer, and refuses a missing one
    itself. Raises AttentionCheckFailed for an approval from anywhere else."""
    on_its_page = submission.page is not None and not submission.batch
    if on_its_page or not submission.commits:
        return
    if versions.needs_written_answer(version):  # guard: written-answer
        raise AttentionCheckFailed(
            "Approving this needs a written answer on its page, because of what"
            " Counterseal found in it. Nothing was recorded. Open the request's page.",
            errors=[build_field_error("args", describe_written_answer(version))],
        )


def describe_written_answer(version: RequestVersion) -> str:
    """What Counterseal found in a version and asks about it in writing; empty where an
    approval of the version needs no written answer."""
    if not versions.needs_written_answer(version):
        return ""
    shown = describe.build_presentation(version.revision)
    question = written_questions.build_written_question(shown) if shown else None
    return f"{question.finding}. {question.text}" if question else written_questions.WHY


def check_made_version(case: DecisionContext, made: RequestVersion) -> None:
    """Check the version that an edit makes, for which the editor's vote counts, as
    `build_decision_context` checks the version that was shown. The page evidence of the
    submission becomes that of the made version. Raises ReasonMissing,
    ReauthenticationRequired, AttentionCheckFailed."""
    submission = case.submission
    _check_reason(submission, made)
    _check_written_answer(submission, made)
    if made.step_up:  # the edit may be what requires it
        check_step_up(submission, made, case.now)
    if submission.page is not None and submission.page.edit is not None:
        # guard: edit-examined
        case.submission = replace(submission, page=submission.page.edit.examine(made))


def _check_reason(submission: VerdictSubmission, version: RequestVersion) -> None:
    _check_reason_fits(submission)
    needed = version.requires_reason or VERDICT_SPECS[submission.verdict].needs_reason
    if needed and not submission.reason_code:
        raise ReasonMissing(
            errors=[
                build_field_error(
                    "reason_code",
                    f"required; {_describe_reason_codes(submission.verdict)}",
                )
            ]
        )
    if submission.reason_code == ReasonCode.OTHER and not submission.reason.strip():
        raise ReasonMissing(
            "Enter a note: the reason “Other” needs one. Nothing was recorded.",
            errors=[build_field_error("reason", "please specify")],
        )


def _check_reason_fits(submission: VerdictSubmission) -> None:
    """The agent acts on the reason code, so one that contradicts the verdict would
    mislead it. Raises ReasonMissing."""
    code, verdict = submission.reason_code, submission.verdict
    if not code or code in VERDICT_SPECS[verdict].reasons:
        return
    known = code in set(ReasonCode)
    wrong = f"{code} does not fit {verdict}" if known else "not a known reason"
    raise ReasonMissing(
        "This reason does not fit your verdict. Nothing was recorded. Choose another"
        " reason or verdict.",
        errors=[
            build_field_error(
                "reason_code", f"{wrong}; {_describe_reason_codes(verdict)}"
            )
        ],
    )


def _describe_reason_codes(verdict: Verdict) -> str:
    return f"use one of: {', '.join(VERDICT_SPECS[verdict].reasons)}"


MOST_EXPECTED = 10  # expected values of one approval
LONGEST_DELAY = timedelta(days=30)


def _check_conditions(
    submission: VerdictSubmission,
    version: RequestVersion,
    reading: StateReading | None,
    now: datetime,
) -> None:
    """Only an approval has conditions. They must leave time to execute it, and name
    fields that the tool's reader gives. Raises InvalidInput."""
    if submission.conditions == NO_CONDITIONS:
        return
    if submission.verdict is not Verdict.APPROVE:
        rule = "only an approval takes conditions; leave them out"
        raise InvalidInput(errors=[build_field_error("conditions", rule)])
    errors = [
        *_list_time_errors(submission.conditions, now),
        *_list_expected_errors(submission.conditions, version, reading),
    ]
    if errors:
        raise InvalidInput(
            "The conditions need correction. Nothing was recorded.", errors=errors
        )


def _list_time_errors(
    conditions: GrantConditions, now: datetime
) -> Iterator[FieldError]:
    begins, ends = conditions.not_before, conditions.not_after
    if begins is not None and begins > now + LONGEST_DELAY:
        rule = f"at most {LONGEST_DELAY.days} days from now; choose an earlier time"
        yield build_field_error("conditions.not_before", rule)
    if ends is not None and ends <= now:
        rule = "must be later than now; choose a later time"
        yield build_field_error("conditions.not_after", rule)
    elif ends is not None and begins is not None and ends <= begins:
        rule = "must be later than “not before”; choose a later time"
        yield build_field_error("conditions.not_after", rule)


def _list_expected_errors(
    conditions: GrantConditions, version: RequestVersion, reading: StateReading | None
) -> list[FieldError]:
    expected = conditions.expected
    if len(expected) > MOST_EXPECTED:
        rule = f"at most {MOST_EXPECTED} values: {len(expected)} were given"
        return [build_field_error("conditions.expect", rule)]
    shown = state_readings.load_shown_reading(reading, version.revision)
    known = state_readings.list_plain_values(shown)
    names = ", ".join(sorted(known)) or "the tool's reader gives none: leave it out"
    return [
        build_field_error(
            f"conditions.expect.{at}.field",
            f"not a field of the current reading; use one of: {names}",
        )
        for at, value in enumerate(expected)
        if value.field not in known
    ]


def build_vote(case: DecisionContext) -> StepVote:
    """Build the vote: for an approval, with the step that it fills. Raises
    NotPermitted."""
    if case.submission.verdict is not Verdict.APPROVE:
        return StepVote(case)
    person, role = case.submission.person, case.role
    place = permissions.check_vote_counts(person, role, case.version, case.filled)
    return StepVote(case, place)


def check_deferred_refusal(page: PageEvidence | None) -> None:
    """Raise the refusal that the page deferred, if there is one: it had changed, the
    answer was wrong, the commit came too fast, or too many came in a row.

    This is the last step, because the page's reasons are the weakest: a person first
    hears that another decided the request, that it is not theirs to decide, or that the
    policy forbids the edit. Some of these show only in the writes, so the verdict is
    checked and written first. The exception then leaves the transaction, and its
    rollback undoes every write.
    """
    if page is not None and page.deferred_refusal is not None:
        raise page.deferred_refusal
