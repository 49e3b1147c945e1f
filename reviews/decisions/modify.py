"""MODIFY: a person's edit becomes a new revision that the whole policy rules on. It is
also the editor's approval, if it needs no more authority than the editor may give.

A preview assesses an edit while it is typed: it decides, writes, locks and logs
nothing, and calls no verifier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from journal import clock
from journal.errors import (
    Conflict,
    InvalidArgs,
    NotFound,
    PolicyViolation,
    StaleVersion,
    build_field_error,
)
from journal.operations import operation
from policies import edits, solo, tools
from policies.choices import Risk, Tier
from reviews import permissions, quorum
from reviews.governance import readings, voters
from reviews.governance.ruling import (
    ProposedAction,
    Ruling,
    build_policy_refusal,
    govern,
)
from reviews.models import ApprovalRequest, RequestVersion, Revision
from reviews.quorum import StepData
from reviews.requests import versions
from reviews.requests.revisions import Narrative, draft_version, replace_revision
from reviews.tool_services import readers
from reviews.tool_services.readers import ToolReading

from .case import DecisionContext
from .checks import check_made_version
from .preflight import Preflight, build_edited_action
from .submission import VerdictSubmission
from .tally import tally_votes
from .votes import StepVote, log_decision_event, record_votes


class EditAssessment(NamedTuple):
    action: ProposedAction
    ruling: Ruling
    made: RequestVersion  # the version that the edit makes; not stored
    rises: bool  # to a higher tier than is asked now
    exceeds: bool  # more than the editor may decide, so others are asked
    # Why the tool's policy wants another person for this edit; empty if it does not.
    widenings: Sequence[str]

    @property
    def counts(self) -> bool:
        """Whether the edit is also the editor's approval."""
        return not (self.rises or self.exceeds or self.widenings)

    @property
    def bars_editor(self) -> bool:
        """Whether the editor does not decide what the edit made. Where two people have
        to approve it, the editor may be one of them: the other one is the second."""
        people = sum(step["required"] for step in self.made.steps)
        return bool(self.widenings) and people == 1


def modify_requests(votes: Sequence[StepVote]) -> None:
    """Replace the revision of each request by the edited one, as a step.

    If an edit needs more authority than was asked or than the editor may give, or
    another person because of what it changes, the new version is open for others;
    otherwise it also records the editor's approval. A verifier may demand a higher tier
    than the policy. Raises what `check_edit` raises. Caller holds the locks of the
    requests.
    """
    for case, _ in votes:
        _modify_request(case)


def check_edit(case: DecisionContext) -> EditAssessment:
    """Assess the edited action, and check the version that it makes where the editor's
    vote counts for it. Raises what `assess_edit` and `checks.check_made_version`
    raise."""
    assessment = assess_edit(case)
    if assessment.counts:
        check_made_version(case, assessment.made)
    return assessment


def _modify_request(case: DecisionContext) -> None:
    assessment = check_edit(case)
    submission, request, before = case.submission, case.request, case.version.revision
    shown, editor = Tier(request.tier), case.submission.person.public_id
    if not assessment.counts:
        record_votes([StepVote(case)])
    if assessment.widenings:
        because = {"because": list(assessment.widenings)}
        log_decision_event(case, "decision.second_person", data=because)
    narrative = _copy_narrative(before)
    barred = [*case.version.edited_by, *([editor] if assessment.bars_editor else [])]
    replace_revision(
        request,
        assessment.action,
        narrative,
        assessment.ruling,
        submission.actor,
        case.now,
        event="modify",
        least=case.preflight.least,
        edited_by=list(dict.fromkeys(barred)),
    )
    case.version, case.filled = request.sealed, ()  # the edit voids all earlier votes
    if assessment.counts:
        _record_editor_vote(case)
    _log_lowered_tier(case, before, shown)


def assess_edit(case: DecisionContext, *, firmly: bool = True) -> EditAssessment:
    """Assess the edited action by the policy, without writing anything. The preflight
    holds the state that was read for the edited arguments.

    Raises PolicyViolation when the policy blocks it, when it would lower the required
    authority and this person could not have given all of it, or when it needs another
    person and nobody else can decide it; InvalidInput when nothing changed. `firmly` as
    in `govern`.
    """
    action = build_edited_action(case.submission, case.version, case.preflight.reading)
    ruling = govern(action, now=case.now, firmly=firmly)
    if ruling.tier is Tier.BLOCK:  # guard: edit-blocked
        raise build_policy_refusal(ruling)
    _check_may_lower_tier(case, ruling)
    least = case.preflight.least
    made = draft_version(case.version, action, ruling, least=least)
    if case.preflight.queue not in {"", made.queue.name}:  # guard: edit-verifiers
        raise Conflict  # the verifiers of another queue were asked
    assessment = EditAssessment(
        action,
        ruling,
        made,
        rises=Tier(made.tier).rank > Tier(case.request.tier).rank,
        exceeds=_exceeds_editor(case, ruling),
        widenings=_list_widenings(case, action, ruling),
    )
    if assessment.widenings:
        _check_second_person(case, assessment)
    return assessment


def _list_widenings(
    case: DecisionContext, action: ProposedAction, ruling: Ruling
) -> Sequence[str]:
    """Why this edit needs another person. It is compared with what the editor found:
    nobody raises an amount by two edits of their own."""
    definition = ruling.definition
    if definition is None or definition.edit == "alone" or solo.is_solo():
        return ()
    before = _find_revision_of_others(case)
    return edits.list_widenings(
        definition,
        _build_judged_call(before.args, before.facts),
        _build_judged_call(action.args, ruling.facts),
    )


def _find_revision_of_others(case: DecisionContext) -> Revision:
    shown, editor = case.version.revision, case.submission.person.public_id
    if shown.author_id != editor:
        return shown
    rows = Revision.objects.filter(proposal=shown.proposal_id)
    return rows.exclude(author_id=editor).order_by("-number")[0]


def _build_judged_call(
    args: Mapping[str, Any], facts: Mapping[str, Any]
) -> edits.JudgedCall:
    return edits.JudgedCall(args, facts.get("keys", {}), facts.get("before", {}))


def _check_second_person(case: DecisionContext, assessment: EditAssessment) -> None:
    """Raises PolicyViolation when too few people could decide what the edit makes."""
    without = case.submission.person.public_id if assessment.bars_editor else ""
    lacking = voters.find_shortage_without(
        assessment.made.steps,
        voters.list_voters(assessment.made.queue_id),
        case.request,
        assessment.made,
        (),
        without=without,
    )
    if lacking:  # guard: edit-in-vain
        because = " and ".join(assessment.widenings)
        raise PolicyViolation(
            f"This edit needs another person, because {because}, and too few people can"
            " decide it. Nothing was recorded. Keep what widens it as it was, or have"
            " another person admitted to its queue.",
            errors=[build_field_error("args", f"only {lacking} could decide it")],
        )


def _exceeds_editor(case: DecisionContext, ruling: Ruling) -> bool:
    """Whether the editor may not decide the edited action: its amount is above their
    ceiling, or its queue is not theirs."""
    money, person = ruling.money, case.submission.person
    # guard: edit-ceiling
    if money and permissions.is_above_ceiling(person, money.minor, money.currency):
        return True
    queue = versions.find_revised_queue(case.version, ruling)
    return queue.pk not in permissions.queues_of(person)


def _check_may_lower_tier(case: DecisionContext, ruling: Ruling) -> None:
    """Only a person who could fill every step may lower the required authority by an
    edit: a reviewer's edit cannot undo a colleague's escalation. Raises
    PolicyViolation."""
    asked = case.version.steps
    if all(quorum.can_fill_step(case.role, step["role"]) for step in asked):
        return
    asks = versions.build_steps(ruling.evaluation)
    tier = versions.compute_asked_tier(ruling.evaluation)
    lower = tier.rank < Tier(case.request.tier).rank
    if lower or quorum.is_weaker(asks, than=asked):  # guard: edit-lowers
        message = "this requires fewer people than before; a supervisor must edit it"
        raise PolicyViolation(errors=[{"path": "args", "message": message}])


def _copy_narrative(revision: Revision) -> Narrative:
    return Narrative(
        rationale=revision.rationale,
        expected_outcome=revision.expected_outcome,
        reversal=revision.reversal,
        alternatives=revision.alternatives,
        evidence=revision.evidence,
    )


def _record_editor_vote(case: DecisionContext) -> None:
    step = quorum.find_step_to_fill(case.version.steps, [], case.role)
    vote = StepVote(case, step)
    record_votes([vote])
    tally_votes([vote])


def _log_lowered_tier(case: DecisionContext, before: Revision, shown: Tier) -> None:
    tier = Tier(case.request.tier)
    if tier.rank < shown.rank:
        log_decision_event(
            case, "decision.tier_lowered", data={"from": shown, "to": tier}
        )


@dataclass(frozen=True, slots=True)
class EditRequirements:
    """The authority that the edit would need, beside what is required now."""

    tier: Tier
    tier_now: Tier
    risk: Risk
    risk_now: Risk
    steps: Sequence[StepData]
    rules: Sequence[str]  # texts of the rules that apply only to the edit
    reading: ToolReading
    exceeds: bool  # more than the editor may decide, so others are asked
    widenings: Sequence[str]  # why another person is needed
    made: RequestVersion  # the version that the edit would make; not stored
    counts: bool  # the edit would also be the editor's approval
    reason_asked: bool  # the version that was shown needs a reason already
    step_up_asked: bool
    verifiers: int  # number of verifiers that committing the edit would call

    @property
    def rises(self) -> bool:
        return self.tier.rank > self.tier_now.rank

    @property
    def is_enough(self) -> bool:
        """Whether the editor's approval alone is enough for the edit."""
        alone = sum(step["required"] for step in self.steps) == 1
        return alone and self.counts


def preview_edit(submission: VerdictSubmission) -> EditRequirements:
    """Preview an edit for the person who types it.

    Raises what committing the edit would raise, except for verifiers, reasons and
    step-up proofs: NotFound, NotPermitted, StaleVersion, InvalidArgs, InvalidInput,
    PolicyViolation. Calls the tool's reader once, outside any transaction.
    """
    request = (
        ApprovalRequest.with_canaries.select_related("proposal", "queue")
        .filter(pk=submission.request_id)
        .first()
    )
    if request is None:
        raise NotFound
    if submission.is_stale(request):
        raise StaleVersion(current_version=request.version)
    revision = request.sealed.revision
    permissions.check_can_decide(submission.person, request, request.sealed)
    if problems := tools.list_argument_errors(revision.known_tool, submission.args):
        raise InvalidArgs("Some fields need correction.", errors=problems)
    definition = tools.load_definition(revision.known_tool)
    asker = readings.build_asker(request.proposal)
    reading = readers.read_state(definition, submission.args or {}, asker=asker)
    return _build_preview(submission, request, reading)


@operation(entry="preview_edit", writes="none: it only reads")
def _build_preview(
    submission: VerdictSubmission, request: ApprovalRequest, reading: ToolReading
) -> EditRequirements:
    version = request.sealed
    role = permissions.check_can_decide(submission.person, request, version)
    preflight = Preflight(reading=reading)
    case = DecisionContext(submission, request, version, role, clock.now(), preflight)
    assessed = assess_edit(case, firmly=False)
    ruling = assessed.ruling
    evaluation, held = ruling.evaluation, {rule["id"] for rule in version.rules}
    return EditRequirements(
        tier=versions.compute_asked_tier(evaluation),
        tier_now=Tier(request.tier),
        risk=evaluation.risk,
        risk_now=Risk(request.risk),
        steps=versions.build_steps(evaluation),
        rules=[rule.text for rule in evaluation.rules if rule.id not in held],
        reading=reading,
        exceeds=assessed.exceeds,
        widenings=assessed.widenings,
        made=assessed.made,
        counts=assessed.counts,
        reason_asked=version.requires_reason,
        step_up_asked=version.step_up,
        verifiers=len(ruling.definition.verifiers) if ruling.definition else 0,
    )
