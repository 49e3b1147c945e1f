"""Revisions: the immutable versions of a proposal, and how a new one replaces one."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from journal import canonical, log, writes
from policies.choices import Tier
from reviews import transitions
from reviews.effects import describe
from reviews.evidence import files
from reviews.governance.ruling import ProposedAction, Ruling, record_observations
from reviews.models import ApprovalRequest, Proposal, RequestVersion, Revision
from reviews.redaction.redactor import Redactor, load_redactor

from . import versions


@dataclass(frozen=True, slots=True)
class Narrative:
    """What the agent says about its proposal. Raw here; redacted before storage."""

    rationale: str = ""
    expected_outcome: str = ""
    reversal: str = ""
    alternatives: Sequence[Mapping[str, Any]] = ()
    evidence: Sequence[Mapping[str, Any]] = ()


def add_revision(
    proposal: Proposal,
    number: int,
    action: ProposedAction,
    narrative: Narrative,
    ruling: Ruling,
    author: log.Actor,
    now: datetime,
    *,
    redactor: Redactor,
    key: int = 0,
) -> Revision:
    """Store an immutable revision with its canonical bytes and redacted texts. `key` is
    its primary key, where the caller has drawn it."""
    texts = redactor.members(
        {
            "rationale": narrative.rationale,
            "expected_outcome": narrative.expected_outcome,
            "reversal": narrative.reversal,
            "alternatives": list(narrative.alternatives),
        }
    )
    revision = Revision(
        id=key or writes.draw_keys(Revision)[0],
        proposal=proposal,
        number=number,
        author_kind=author.kind,
        author_id=author.id,
        agent_version=action.agent_version,
        uncertain=action.uncertain,
        created_at=now,
        evidence=redactor.items(narrative.evidence),
        **texts,
        **_build_judged_columns(action, ruling),
    )
    revision.text_signs = describe.find_text_signs(
        revision,
        words=[narrative.rationale, narrative.expected_outcome, narrative.reversal],
        evidence_texts=[
            str(value) for item in narrative.evidence for value in item.values()
        ],
    )
    writes.insert_rows([revision])
    files.mark_used(proposal.agent, revision.evidence, now)
    proposal.current = revision
    return revision


def _build_judged_columns(action: ProposedAction, ruling: Ruling) -> dict[str, Any]:
    """The columns of a revision that hold the action and the policy's ruling on it."""
    blob = action.canonical(ruling.tool.version if ruling.tool else 0)
    return {
        "tool": ruling.tool,
        "canonical": blob,
        "action_hash": canonical.digest(blob),
        "reading": action.reading.as_json() if action.reading else {},
        "facts": dict(ruling.facts),
        "evaluation": ruling.evaluation.as_json(),
        "tier": ruling.tier,
        "risk": ruling.evaluation.risk,
        "amount_minor": ruling.money.minor if ruling.money else None,
        "currency": ruling.money.currency if ruling.money else "",
        "policy": ruling.policy,
    }


def draft_revision(
    source: Revision, action: ProposedAction, ruling: Ruling
) -> Revision:
    """The revision that another action in place of that of `source` would be, with its
    words. It is not stored."""
    revision = copy.copy(source)
    revision.pk = None
    for name, value in _build_judged_columns(action, ruling).items():
        setattr(revision, name, value)
    return revision


def draft_version(
    sealed: RequestVersion,
    action: ProposedAction,
    ruling: Ruling,
    *,
    least: Tier = Tier.AUTO,
) -> RequestVersion:
    """The version that an edit of this one makes, as `replace_revision` seals it. It is
    not stored."""
    evaluation, made = ruling.evaluation, copy.copy(sealed)
    asked = versions.compute_required_authority(
        sealed.request, evaluation, by_agent=False, least=least
    )
    made.pk, made.number, made.carried = None, sealed.number + 1, []
    made.revision = draft_revision(sealed.revision, action, ruling)
    made.tier, made.risk, made.steps = asked.tier, evaluation.risk, asked.steps
    made.queue = versions.find_revised_queue(sealed, ruling)
    made.requires_reason = evaluation.requires_reason
    made.step_up = evaluation.step_up or asked.tier is Tier.ESCALATE
    made.rules = [rule.as_json() for rule in evaluation.rules]
    if ruling.policy is not None:
        made.policy = ruling.policy
    return made


def build_redactor(
    action: ProposedAction, ruling: Ruling, *, has_earlier: bool = False
) -> Redactor:
    """The redactor for the texts of this proposal. `has_earlier`: it has earlier
    revisions, whose redacted values count too."""
    return load_redactor(
        action.agent,
        action.thread,
        ruling.definition,
        action.args,
        proposal=action.proposal if has_earlier else "",
    )


def replace_revision(
    request: ApprovalRequest,
    action: ProposedAction,
    narrative: Narrative,
    ruling: Ruling,
    author: log.Actor,
    now: datetime,
    *,
    event: str,
    least: Tier = Tier.AUTO,
    revision_key: int = 0,
    edited_by: Sequence[str] = (),
) -> Revision:
    """Store revision n+1 and seal request version n+1, at tier `least` or above.

    `event` is "revise" (by the agent) or "modify" (by a reviewer). `edited_by` are the
    people whose edit needs another person. The deadline and the reminder are taken from
    the request object in hand. The caller holds the request's lock.
    """
    proposal = request.proposal
    revision = add_revision(
        proposal,
        # The proposal was read beside the lock, so its own number may be older.
        request.sealed.revision.number + 1,
        action,
        narrative,
        ruling,
        author,
        now,
        redactor=build_redactor(action, ruling, has_earlier=True),
        key=revision_key,
    )
    Proposal.objects.filter(pk=proposal.pk).update(revision=revision.number)
    proposal.revision = revision.number
    record_observations(ruling, now=now)
    escalated_by = request.sealed.escalated_by
    asked = versions.compute_required_authority(
        request, ruling.evaluation, by_agent=author.kind == "agent", least=least
    )
    transitions.request.apply(
        request,
        event,
        actor=author,
        now=now,
        changes=_build_request_changes(request, revision, ruling, asked.tier),
        policy=revision.policy_number,
        steps=asked.steps,
        data=_build_record_data(revision, ruling),
    )
    versions.seal_version(
        request,
        revision,
        ruling.evaluation,
        cause="revised" if event == "revise" else "modified",
        now=now,
        steps=asked.steps,
        escalated_by=escalated_by,
        edited_by=edited_by,
    )
    return revision


def _build_record_data(revision: Revision, ruling: Ruling) -> dict[str, Any]:
    named = files.list_hashes(revision.evidence)
    rules = [rule.id for rule in ruling.evaluation.rules]
    return {"rules": rules, **({"files": named} if named else {})}


def _build_request_changes(
    request: ApprovalRequest, revision: Revision, ruling: Ruling, tier: Tier
) -> dict[str, Any]:
    """The changed columns of the request, with the deadline that the caller set."""
    return {
        "version": request.version + 1,
        "action_hash": revision.action_hash,
        "tier": tier,
        "risk": ruling.evaluation.risk,
        "queue": versions.find_revised_queue(request.sealed, ruling),
        "expires_at": request.expires_at,
        "reminded_at": request.reminded_at,
        "recall_until": None,
        "returned_at": None,
    }
