"""MODIFY: a person's edit is a new revision through the whole policy, and the editor's
own approval only where the tier did not rise (gate.md section 6)."""

from __future__ import annotations

from journal.errors import Invalid, Policy
from policies.choices import Tier

from . import permissions, quorum, requests
from .cases import Case, close_to_voter, note, tally, write
from .governance import Action, Ruling, govern
from .models import Revision
from .proposals import Narrative, blocked_edit, replace_revision
from .readers import Reading


def modify(case: Case, reading: Reading | None, *, least: Tier = Tier.AUTO) -> None:
    """A new revision through the whole policy; it may be the editor's own approval.

    `least` is the authority that a verifier asked for, beside the policy.
    """
    said, request = case.said, case.request
    before = case.version.revision
    action = _edited(case, before, reading)
    ruling = govern(action, now=case.now)
    if ruling.tier is Tier.BLOCK:
        raise blocked_edit(ruling)
    _check_may_lower(case, ruling)
    money = ruling.money
    if money and permissions.above_ceiling(said.person, money.minor, money.currency):
        raise Policy(errors=[{"path": "args", "message": "above what you may decide"}])
    shown = Tier(request.tier)
    rises = requests.asked_tier(ruling.evaluation, least).rank > shown.rank
    if rises:
        write(case)
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
    case.version = request.sealed
    if not rises:
        _count_editor(case)
    _log_edit(case, before, shown)


def _check_may_lower(case: Case, ruling: Ruling) -> None:
    """An edit asks for less authority only by someone who could have given all that
    was asked: a reviewer's edit cannot undo a colleague's escalation. Raises Policy."""
    asked = case.version.steps
    if all(quorum.fills(case.role, step["role"]) for step in asked):
        return
    asks = requests.steps_of(ruling.evaluation)
    tier = requests.asked_tier(ruling.evaluation)
    lower = tier.rank < Tier(case.request.tier).rank
    if lower or quorum.weaker(asks, than=asked):
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
    step = quorum.place(case.version.steps, [], case.role)
    write(case, counts=step)
    if step is None:
        close_to_voter(case)
    else:
        tally(case, [step])


def _log_edit(case: Case, before: Revision, shown: Tier) -> None:
    tier = Tier(case.request.tier)
    if tier.rank < shown.rank:
        note(case, "decision.tier_lowered", data={"from": shown, "to": tier})
