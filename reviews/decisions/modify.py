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
from journal.errors import Invalid, InvalidArgs, NotFound, Policy, Stale
from policies import tools
from policies.choices import Risk, Tier
from reviews import permissions, quorum
from reviews.governance import readings
from reviews.governance.ruling import Action, Ruling, blocked_edit, govern
from reviews.models import ApprovalRequest, Revision
from reviews.quorum import StepData
from reviews.requests import versions
from reviews.requests.revisions import Narrative, replace_revision
from reviews.tool_services import readers
from reviews.tool_services.readers import Reading

from .case import Case, check_step_up
from .submission import Said
from .tally import tally
from .votes import Vote, note, write


class Weighed(NamedTuple):
    """An edited action and the policy's ruling on it."""

    action: Action
    ruling: Ruling
    exceeds: bool  # more than the editor may decide, so others are asked


def modify(case: Case, reading: Reading | None, *, least: Tier = Tier.AUTO) -> None:
    """Replace the revision by the edited one, as a step. If the edit needs more
    authority than was asked or than the editor may give, the new version is open for
    others; otherwise it also records the editor's approval.

    `least` is the tier that a verifier demands in addition to the policy. Raises what
    `assess_edit` raises, and Reauth. Caller holds the request's lock.
    """
    said, request = case.said, case.request
    before = case.version.revision
    action, ruling, exceeds = weigh(case, reading)
    shown = Tier(request.tier)
    rises = versions.asked_tier(ruling.evaluation, least).rank > shown.rank
    upward = rises or exceeds
    if upward:
        write([Vote(case)])
    narrative = _narrative_of(before)
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
        _count_editor(case)
    _log_edit(case, before, shown)


def weigh(case: Case, reading: Reading | None, *, firmly: bool = True) -> Weighed:
    """Assess the edited action by the policy, without writing anything.

    Raises Policy when the policy blocks it, or when it would lower the required
    authority and this person could not have given all of it; Invalid when nothing
    changed. `firmly` as in `govern`.
    """
    action = _edited(case, case.version.revision, reading)
    ruling = govern(action, now=case.now, firmly=firmly)
    if ruling.tier is Tier.BLOCK:  # guard: edit-blocked
        raise blocked_edit(ruling)
    _check_may_lower(case, ruling)
    return Weighed(action, ruling, _exceeds(case, ruling))


def _exceeds(case: Case, ruling: Ruling) -> bool:
    """Whether the editor may not decide the edited action: its amount is above their
    ceiling, or its queue is not theirs."""
    money, person = ruling.money, case.said.person
    # guard: edit-ceiling
    if money and permissions.above_ceiling(person, money.minor, money.currency):
        return True
    return versions.queue_of(ruling).pk not in permissions.queues_of(person)


def _check_may_lower(case: Case, ruling: Ruling) -> None:
    """Only a person who could fill every step may lower the required authority by an
    edit: a reviewer's edit cannot undo a colleague's escalation. Raises Policy."""
    asked = case.version.steps
    if all(quorum.fills(case.role, step["role"]) for step in asked):
        return
    asks = versions.steps_of(ruling.evaluation)
    tier = versions.asked_tier(ruling.evaluation)
    lower = tier.rank < Tier(case.request.tier).rank
    if lower or quorum.weaker(asks, than=asked):  # guard: edit-lowers
        message = "this would need fewer people than were asked: a supervisor must"
        raise Policy(errors=[{"path": "args", "message": message}])


def _edited(case: Case, before: Revision, reading: Reading | None) -> Action:
    if case.said.args is None or dict(case.said.args) == before.args:
        raise Invalid(
            "Nothing changed: use Approve.",
            errors=[{"path": "args", "message": "at least one change"}],
        )
    proposal = case.request.proposal
    return Action(
        proposal=proposal.pk,
        tool=proposal.tool_name,
        args=case.said.args,
        agent=proposal.agent,
        thread=proposal.thread,
        preconditions=before.preconditions,
        reading=reading,
        uncertain=before.uncertain,
        resembles=bool(before.facts.get("resembles")),
        agent_version=before.agent_version,
        unattended=bool(before.facts.get("agent", {}).get("unattended")),
    )


def _narrative_of(revision: Revision) -> Narrative:
    return Narrative(
        rationale=revision.rationale,
        expected_outcome=revision.expected_outcome,
        reversal=revision.reversal,
        alternatives=revision.alternatives,
        evidence=revision.evidence,
    )


def _count_editor(case: Case) -> None:
    """Record the editor's vote on the new version, if their role fills a step."""
    if case.version.step_up:
        check_step_up(case.said, case.now)  # the edit may be what requires the step-up
    step = quorum.place(case.version.steps, [], case.role)
    vote = Vote(case, step)
    write([vote])
    tally([vote])


def _log_edit(case: Case, before: Revision, shown: Tier) -> None:
    tier = Tier(case.request.tier)
    if tier.rank < shown.rank:
        note(case, "decision.tier_lowered", data={"from": shown, "to": tier})


@dataclass(frozen=True, slots=True)
class Preview:
    """The authority that the edit would need, beside what is required now."""

    tier: Tier
    tier_now: Tier
    risk: Risk
    risk_now: Risk
    steps: Sequence[StepData]
    rules: Sequence[str]  # texts of the rules that apply only to the edit
    reading: Reading
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


def preview(said: Said) -> Preview:
    """Preview an edit for the person who types it.

    Raises what committing the edit would raise, except for verifiers, reasons and
    step-up proofs: NotFound, NotYours, Stale, InvalidArgs, Invalid, Policy. Calls the
    tool's reader once, outside any transaction.
    """
    request = (
        ApprovalRequest.objects.select_related("proposal")
        .filter(pk=said.request_id)
        .first()
    )
    if request is None:
        raise NotFound
    if (said.version, said.action_hash) != (request.version, request.action_hash):
        raise Stale(current_version=request.version)
    revision = request.sealed.revision
    permissions.check_can_decide(said.person, request, request.sealed)
    if problems := tools.validate(revision.known_tool, said.args):
        raise InvalidArgs("Some fields are not right yet.", errors=problems)
    definition = tools.definition(revision.known_tool)
    asker = readings.asker_of(request.proposal)
    reading = readers.read(definition, said.args or {}, asker=asker)
    return _weigh(said, request, reading)


@transaction.atomic(durable=True)
def _weigh(said: Said, request: ApprovalRequest, reading: Reading) -> Preview:
    version = request.sealed
    role = permissions.check_can_decide(said.person, request, version)
    case = Case(said, request, version, role, clock.now())
    _, ruling, exceeds = weigh(case, reading, firmly=False)
    found, held = ruling.evaluation, {rule["id"] for rule in version.rules}
    return Preview(
        tier=versions.asked_tier(found),
        tier_now=Tier(request.tier),
        risk=found.risk,
        risk_now=Risk(request.risk),
        steps=versions.steps_of(found),
        rules=[rule.text for rule in found.rules if rule.id not in held],
        reading=reading,
        exceeds=exceeds,
        verifiers=len(ruling.definition.verifiers) if ruling.definition else 0,
    )
