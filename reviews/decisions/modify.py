"""MODIFY: a person's edit becomes a new revision that the whole policy rules on. It is
also the editor's approval, if it needs no more authority than the editor may give
(gate.md section 6).

A preview assesses an edit while it is typed: it decides, writes, locks and logs
nothing, and calls no verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db import transaction

from journal import clock
from journal.errors import (
    InvalidArgs,
    InvalidInput,
    NotFound,
    PolicyViolation,
    StaleVersion,
)
from policies import tools
from policies.choices import Risk, Tier
from reviews import permissions, quorum
from reviews.governance import readings
from reviews.governance.ruling import (
    ProposedAction,
    Ruling,
    build_policy_refusal,
    govern,
)
from reviews.models import ApprovalRequest, Revision
from reviews.quorum import StepData
from reviews.requests import versions
from reviews.requests.revisions import Narrative, replace_revision
from reviews.tool_services import readers
from reviews.tool_services.readers import ToolReading

from .case import DecisionContext, check_step_up
from .preflight import Preflight
from .submission import VerdictSubmission
from .tally import tally_votes
from .votes import StepVote, log_decision_event, record_votes


class EditAssessment(NamedTuple):
    """An edited action and the policy's ruling on it."""

    action: ProposedAction
    ruling: Ruling
    exceeds: bool  # more than the editor may decide, so others are asked


def modify_requests(votes: Sequence[StepVote]) -> None:
    """Replace the revision of each request by the edited one, as a step.

    If an edit needs more authority than was asked or than the editor may give, the new
    version is open for others; otherwise it also records the editor's approval. A
    verifier may demand a higher tier than the policy. Raises what `assess_edit` raises,
    and ReauthenticationRequired. Caller holds the locks of the requests.
    """
    for case, _ in votes:
        _modify_request(case)


def _modify_request(case: DecisionContext) -> None:
    said, request = case.said, case.request
    before, least = case.version.revision, case.preflight.least
    action, ruling, exceeds = assess_edit(case)
    shown = Tier(request.tier)
    rises = versions.compute_asked_tier(ruling.evaluation, least).rank > shown.rank
    upward = rises or exceeds
    if upward:
        record_votes([StepVote(case)])
    narrative = _copy_narrative(before)
    replace_revision(
        request,
        action,
        narrative,
        ruling,
        said.actor,
        case.now,
        event="modify",
        least=least,
    )
    case.version, case.filled = request.sealed, ()  # the edit voids all earlier votes
    if not upward:
        _record_editor_vote(case)
    _log_lowered_tier(case, before, shown)


def assess_edit(case: DecisionContext, *, firmly: bool = True) -> EditAssessment:
    """Assess the edited action by the policy, without writing anything. The preflight
    holds the state that was read for the edited arguments.

    Raises PolicyViolation when the policy blocks it, or when it would lower the
    required authority and this person could not have given all of it; InvalidInput when
    nothing changed. `firmly` as in `govern`.
    """
    action = _build_edited_action(case, case.version.revision)
    ruling = govern(action, now=case.now, firmly=firmly)
    if ruling.tier is Tier.BLOCK:  # guard: edit-blocked
        raise build_policy_refusal(ruling)
    _check_may_lower_tier(case, ruling)
    return EditAssessment(action, ruling, _exceeds_editor(case, ruling))


def _exceeds_editor(case: DecisionContext, ruling: Ruling) -> bool:
    """Whether the editor may not decide the edited action: its amount is above their
    ceiling, or its queue is not theirs."""
    money, person = ruling.money, case.said.person
    # guard: edit-ceiling
    if money and permissions.is_above_ceiling(person, money.minor, money.currency):
        return True
    return versions.load_queue(ruling).pk not in permissions.queues_of(person)


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


def _build_edited_action(case: DecisionContext, before: Revision) -> ProposedAction:
    if case.said.args is None or dict(case.said.args) == before.args:
        raise InvalidInput(
            "Nothing changed. Use Approve.",
            errors=[{"path": "args", "message": "at least one change"}],
        )
    proposal = case.request.proposal
    return ProposedAction(
        proposal=proposal.pk,
        tool=proposal.tool_name,
        args=case.said.args,
        agent=proposal.agent,
        thread=proposal.thread,
        preconditions=before.preconditions,
        reading=case.preflight.reading,
        uncertain=before.uncertain,
        resembles=bool(before.facts.get("resembles")),
        agent_version=before.agent_version,
        unattended=bool(before.facts.get("agent", {}).get("unattended")),
    )


def _copy_narrative(revision: Revision) -> Narrative:
    return Narrative(
        rationale=revision.rationale,
        expected_outcome=revision.expected_outcome,
        reversal=revision.reversal,
        alternatives=revision.alternatives,
        evidence=revision.evidence,
    )


def _record_editor_vote(case: DecisionContext) -> None:
    """Record the editor's vote on the new version, if their role fills a step."""
    if case.version.step_up:
        check_step_up(case.said, case.now)  # the edit may be what requires the step-up
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
    verifiers: int  # number of verifiers that committing the edit would call

    @property
    def rises(self) -> bool:
        """Whether the edit needs a higher tier than is asked now."""
        return self.tier.rank > self.tier_now.rank

    @property
    def is_enough(self) -> bool:
        """Whether the editor's approval alone is enough for the edit."""
        alone = sum(step["required"] for step in self.steps) == 1
        return alone and not self.rises and not self.exceeds


def preview_edit(said: VerdictSubmission) -> EditRequirements:
    """Preview an edit for the person who types it.

    Raises what committing the edit would raise, except for verifiers, reasons and
    step-up proofs: NotFound, NotPermitted, StaleVersion, InvalidArgs, InvalidInput,
    PolicyViolation. Calls the tool's reader once, outside any transaction.
    """
    request = (
        ApprovalRequest.with_canaries.select_related("proposal")
        .filter(pk=said.request_id)
        .first()
    )
    if request is None:
        raise NotFound
    if (said.version, said.action_hash) != (request.version, request.action_hash):
        raise StaleVersion(current_version=request.version)
    revision = request.sealed.revision
    permissions.check_can_decide(said.person, request, request.sealed)
    if problems := tools.list_argument_errors(revision.known_tool, said.args):
        raise InvalidArgs("Some fields need correction.", errors=problems)
    if request.canary:  # its state is that of the request that it was cloned from
        own = ToolReading.from_json(revision.reading) or ToolReading(at=clock.now())
        return _build_preview(said, request, own)
    definition = tools.load_definition(revision.known_tool)
    asker = readings.build_asker(request.proposal)
    reading = readers.read_state(definition, said.args or {}, asker=asker)
    return _build_preview(said, request, reading)


@transaction.atomic(durable=True)
def _build_preview(
    said: VerdictSubmission, request: ApprovalRequest, reading: ToolReading
) -> EditRequirements:
    version = request.sealed
    role = permissions.check_can_decide(said.person, request, version)
    preflight = Preflight(reading=reading)
    case = DecisionContext(said, request, version, role, clock.now(), preflight)
    _, ruling, exceeds = assess_edit(case, firmly=False)
    found, held = ruling.evaluation, {rule["id"] for rule in version.rules}
    return EditRequirements(
        tier=versions.compute_asked_tier(found),
        tier_now=Tier(request.tier),
        risk=found.risk,
        risk_now=Risk(request.risk),
        steps=versions.build_steps(found),
        rules=[rule.text for rule in found.rules if rule.id not in held],
        reading=reading,
        exceeds=exceeds,
        verifiers=len(ruling.definition.verifiers) if ruling.definition else 0,
    )
