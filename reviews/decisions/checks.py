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
    request: ApprovalRequest, said: VerdictSubmission, now: datetime
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
    held = status is RequestStatus.RECALLABLE and said.verdict is not Verdict.REJECT
    if held or status in DECIDED:
        raise _build_decided_error(request, said, now)


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
    request: ApprovalRequest, said: VerdictSubmission, now: datetime
) -> DomainError:
    decision = _NEWEST_DECISION.fetch_first(request=request.pk, version=request.version)
    if decision is None:
        return AlreadyDecided()
    who = _describe_decider(request, decision, said)
    what = VERDICT_SPECS[Verdict(decision.verdict)].past_in_full
    noun = VERDICT_SPECS[said.verdict].noun
    theirs = str(decision.authority.get("hold", ""))
    if said.hold and theirs and theirs != said.hold and who != "You":
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
    request: ApprovalRequest, decision: Decision, said: VerdictSubmission
) -> str:
    """The decider's name once the request is settled. During the recall window, and to
    a person who is barred from the proposal, the decider stays anonymous."""
    if decision.reviewer_id == said.person.pk:
        return "You"
    concerned = said.person.public_id in request.proposal.barred
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
    said: VerdictSubmission,
    request: ApprovalRequest,
    preflight: Preflight,
    found: DecisionFacts,
    *,
    now: datetime,
) -> DecisionContext:
    """Check one verdict and build its decision context.

    Raises what `decide.decide_request` raises, except the refusal that the page
    deferred. Caller holds the request's lock, and loaded `found` under it.
    """
    version = request.sealed
    _check_current(said, request, found, now)
    if not preflight.current:
        raise Conflict  # it became current during the wait, and no verifier was called
    role = permissions.check_can_decide(said.person, request, version, found.known)
    hold = found.holds.get(request.pk)
    hold_rows.check_hold(hold, said.person, now, said.hold)
    reading = _check_reading(said, version, found.readings)
    _check_reason(said, version)
    _check_readable(said, version)
    _check_conditions(said, version, reading, now)
    if said.verdict is not Verdict.MODIFY:  # which `check_made_version` asks instead
        _check_written_answer(said, version)
    if version.step_up and said.commits:  # guard: step-up
        check_step_up(said, now)
    return DecisionContext(
        said,
        request,
        version,
        role,
        now,
        preflight=preflight,
        hold=hold,
        reading=reading,
        filled=found.filled[request.pk],
        earlier=found.earlier[request.pk],
    )


def _check_readable(said: VerdictSubmission, version: RequestVersion) -> None:
    # An edit is shown again as a version of its own.
    if (
        said.verdict is Verdict.APPROVE
        and describe.load_brief(version.revision).unreadable
    ):
        raise EffectUnreadable


def _check_current(
    said: VerdictSubmission,
    request: ApprovalRequest,
    found: DecisionFacts,
    now: datetime,
) -> None:
    check_still_open(request, said, now)
    # A stop withdraws open requests in the background. One that it has not reached yet
    # may no longer be decided either. A paused request may be.
    # guard: decide-stop
    if found.state.modes[build_action_key(request.proposal)] is StopMode.STOPPED:
        raise RequestWithdrawn("This was stopped. Your decision was not recorded.")
    if said.is_stale(request):  # guard: seen-version
        raise StaleVersion(current_version=request.version)


def _check_reading(
    said: VerdictSubmission, version: RequestVersion, found: KnownReadings
) -> StateReading | None:
    """A verdict that lets something happen needs the current state to be the one shown.
    Returns that reading; None for other verdicts, and for an edit, whose arguments have
    a reading of their own."""
    if not said.commits:
        return None
    shown = state_readings.check_reading(version.revision, said.reading, found)
    return None if said.verdict is Verdict.MODIFY else shown


def _check_written_answer(said: VerdictSubmission, version: RequestVersion) -> None:
    """Only the request's own page asks for a written answer, and refuses a missing one
    itself. Raises AttentionCheckFailed for an approval from anywhere else."""
    on_its_page = said.page is not None and not said.batch
    if on_its_page or not said.commits:
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
    said = case.said
    _check_reason(said, made)
    _check_written_answer(said, made)
    if made.step_up:  # the edit may be what requires it
        check_step_up(said, case.now)
    if said.page is not None and said.page.edit is not None:
        # guard: edit-examined
        case.said = replace(said, page=said.page.edit.examine(made))


def _check_reason(said: VerdictSubmission, version: RequestVersion) -> None:
    _check_reason_fits(said)
    needed = version.requires_reason or VERDICT_SPECS[said.verdict].needs_reason
    if needed and not said.reason_code:
        raise ReasonMissing(
            errors=[
                build_field_error(
                    "reason_code", f"required; {_describe_reason_codes(said.verdict)}"
                )
            ]
        )
    if said.reason_code == ReasonCode.OTHER and not said.reason.strip():
        raise ReasonMissing(
            "Enter a note: the reason “Other” needs one. Nothing was recorded.",
            errors=[build_field_error("reason", "please specify")],
        )


def _check_reason_fits(said: VerdictSubmission) -> None:
    """The agent acts on the reason code, so one that contradicts the verdict would
    mislead it. Raises ReasonMissing."""
    code, verdict = said.reason_code, said.verdict
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
    said: VerdictSubmission,
    version: RequestVersion,
    reading: StateReading | None,
    now: datetime,
) -> None:
    """Only an approval has conditions. They must leave time to execute it, and name
    fields that the tool's reader gives. Raises InvalidInput."""
    if said.conditions == NO_CONDITIONS:
        return
    if said.verdict is not Verdict.APPROVE:
        rule = "only an approval takes conditions; leave them out"
        raise InvalidInput(errors=[build_field_error("conditions", rule)])
    errors = [
        *_list_time_errors(said.conditions, now),
        *_list_expected_errors(said.conditions, version, reading),
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
        for at, one in enumerate(expected)
        if one.field not in known
    ]


def build_vote(case: DecisionContext) -> StepVote:
    """Build the vote: for an approval, with the step that it fills. Raises
    NotPermitted."""
    if case.said.verdict is not Verdict.APPROVE:
        return StepVote(case)
    person, role = case.said.person, case.role
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
