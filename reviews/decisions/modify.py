"""MODIFY: a person's edit is a new revision through the whole policy, and the editor's
own approval only where it asks for no more than they may give (gate.md section 6)."""

from __future__ import annotations

from typing import NamedTuple

from journal.errors import Invalid, Policy
from policies.choices import Tier
from reviews import permissions, quorum
from reviews.blocked import blocked_edit
from reviews.governance.ruling import Action, Ruling, govern
from reviews.models import Revision
from reviews.requests import versions
from reviews.requests.revisions import Narrative, replace_revision
from reviews.tool_services.readers import Reading

from .case import Case, check_step_up
from .tally import tally
from .votes import Vote, note, write


class Weighed(NamedTuple):
    """An edited action, and what the policy says of it."""

    action: Action
    ruling: Ruling
    exceeds: bool  # what the editor may decide: others are asked


def modify(case: Case, reading: Reading | None, *, least: Tier = Tier.AUTO) -> None:
    """A new revision through the whole policy; it may be the editor's own approval.
    What asks for more than the editor may give goes to those who may.

    `least` is the authority that a verifier asked for, beside the policy.
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
    case.version, case.filled = request.sealed, ()  # every vote before it is void
    if not upward:
        _count_editor(case)
    _log_edit(case, before, shown)


def weigh(case: Case, reading: Reading | None, *, firmly: bool = True) -> Weighed:
    """The edited action and what the policy says of it, without writing anything.

    Raises Policy where it is forbidden, or would ask for less than this person could
    have given; Invalid when nothing changed. `firmly` as in `govern`.
    """
    action = _edited(case, case.version.revision, reading)
    ruling = govern(action, now=case.now, firmly=firmly)
    if ruling.tier is Tier.BLOCK:  # guard: edit-blocked
        raise blocked_edit(ruling)
    _check_may_lower(case, ruling)
    return Weighed(action, ruling, _exceeds(case, ruling))


def _exceeds(case: Case, ruling: Ruling) -> bool:
    """Whether the edit is more than its editor may decide: a larger amount, or in a
    queue that is not theirs."""
    money, person = ruling.money, case.said.person
    # guard: edit-ceiling
    if money and permissions.above_ceiling(person, money.minor, money.currency):
        return True
    return versions.queue_of(ruling).pk not in permissions.queues_of(person)


def _check_may_lower(case: Case, ruling: Ruling) -> None:
    """An edit asks for less authority only by someone who could have given all that
    was asked: a reviewer's edit cannot undo a colleague's escalation. Raises Policy."""
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
    """The editor's vote on the version they made, where their role fills a step."""
    if case.version.step_up:
        check_step_up(case.said, case.now)  # the edit alone may have made it needed
    step = quorum.place(case.version.steps, [], case.role)
    vote = Vote(case, step)
    write([vote])
    tally([vote])


def _log_edit(case: Case, before: Revision, shown: Tier) -> None:
    tier = Tier(case.request.tier)
    if tier.rank < shown.rank:
        note(case, "decision.tier_lowered", data={"from": shown, "to": tier})
