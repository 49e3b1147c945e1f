"""Approvals of access requests: what one covers, its signed state, and why it permits
nothing now.

The tuple that people approved is kept in the blob of the proposal's checkpoint,
encrypted, and written in the same transaction as the proposal. Only this adapter can
store a proposal with `AUTHZEN_SOURCE`, so the first checkpoint of one is the adapter's.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings

from agents import checkpoints, representation
from agents.choices import AUTHZEN_SOURCE
from agents.models import Checkpoint
from agents.schemas.authzen import ApprovalReference
from agents.schemas.proposals import CheckpointIn
from journal import canonical, restore_epochs
from reviews.executions import rechecks
from reviews.grants import tokens
from reviews.models import Execution, Grant, Proposal

from .entities import AccessTuple, replace_action

APPROVAL_TYPE = "counterseal-approval+jwt"
SUMMARY = "An access request over AuthZEN waits for its approval."
RETRY_AFTER_S = 10


class NextAction(NamedTuple):
    """What a caller does about a denial: `reason` and `next_action` of the profile, and
    after how many seconds to retry."""

    reason: str
    next_action: str
    retry_after: int | None = None


EXPIRED = NextAction("approval_expired", "request")
# Grants that were used, or are in use, by the status word of their proposal.
_USED = {
    "executed": NextAction("approval_spent", "none"),
    "failed": NextAction("approval_spent", "request"),
    "unknown": NextAction("outcome_unknown", "none"),
    "refused": EXPIRED,
}
# Checks before the effect whose refusal a new request does not change.
_LASTING = {
    rechecks.STOPPED.code: NextAction("policy_denied", "none"),
    "verifier": NextAction("policy_denied", "none"),
    rechecks.OTHER_BYTES.code: NextAction("approval_unverifiable", "none"),
}


@dataclass(frozen=True, slots=True)
class StoredAccess:
    """The tuple of an access request, and the evaluation that denied it."""

    evaluation_id: str
    access: AccessTuple


@dataclass(frozen=True, slots=True)
class Approval:
    """A grant that an access request led to. `access` is the tuple that was approved:
    with the arguments of the approved revision, which a reviewer may have changed."""

    grant: Grant
    evaluation_id: str
    requested: AccessTuple
    access: AccessTuple

    @property
    def execution(self) -> Execution:
        execution: Execution = self.grant.execution
        return execution


def build_checkpoint(evaluation_id: str, access: AccessTuple) -> CheckpointIn:
    """Build the checkpoint that keeps the tuple of an access request."""
    blob = canonical.encode({"evaluation_id": evaluation_id, **access.build_json()})
    return CheckpointIn(
        summary=SUMMARY,
        state={"evaluation_id": evaluation_id},
        blob=base64.b64encode(blob).decode(),
        resume_at="evaluate again",
    )


def load_stored_access(proposal: Proposal) -> StoredAccess | None:
    """The tuple of an access request; None once the run's blobs are erased."""
    rows = Checkpoint.objects.select_related("thread").filter(
        thread__agent__slug=proposal.agent,
        thread__name=proposal.thread,
        proposal=proposal.pk,
    )
    checkpoint = rows.order_by("number").first()
    blob = checkpoints.decrypt_blob(checkpoint) if checkpoint else None
    if blob is None:
        return None
    members = json.loads(blob)
    return StoredAccess(members.pop("evaluation_id"), AccessTuple(**members))


_GRANTS = Grant.objects.select_related(
    "proposal__request", "revision__tool", "revision__policy", "execution"
)


def find_approval_of(proposal: Proposal, stored: StoredAccess) -> Approval | None:
    """The newest approval of an access request, or None."""
    grant = _GRANTS.filter(proposal=proposal).order_by("-issued_at").first()
    return _build_approval(grant, stored) if grant else None


def find_approval(agent: str, reference: ApprovalReference) -> Approval | None:
    """The approval that a caller presents; None when it does not exist, is another
    agent's, or its state is not one that this gate signed for it."""
    rows = _GRANTS.filter(proposal__agent=agent, proposal__source=AUTHZEN_SOURCE)
    grant = rows.filter(pk=reference.id).first()
    if grant is None or not _is_own_state(reference):
        return None
    stored = load_stored_access(grant.proposal)
    return _build_approval(grant, stored) if stored else None


def _build_approval(grant: Grant, stored: StoredAccess) -> Approval:
    revision = grant.revision
    approved = replace_action(stored.access, revision.args, revision.preconditions)
    return Approval(grant, stored.evaluation_id, stored.access, approved)


def _is_own_state(reference: ApprovalReference) -> bool:
    """Whether the state, if there is one, is signed by this gate and names the same
    approval. Everything else that it says is read from the row."""
    if reference.state is None:
        return True
    here = settings.COUNTERSEAL.base_url
    try:
        claims = tokens.verify_token(reference.state, typ=APPROVAL_TYPE)
    except tokens.ForgedToken:
        return False
    named = (claims.get("iss"), claims.get("aud"), claims.get("approval_id"))
    return named == (here, here, reference.id)  # guard: approval-state


def covers_access(approval: Approval, access: AccessTuple) -> bool:
    """Whether a tuple is exactly the approved one."""
    # guard: approval-scope
    return approval.access.compute_hash() == access.compute_hash()


def build_approval_json(approval: Approval) -> dict[str, Any]:
    """Build the profile's `approval` object, with the signed state."""
    grant = approval.grant
    return {
        "id": grant.pk,
        "approved_at": representation.format_timestamp(grant.issued_at),
        "approved_until": representation.format_timestamp(grant.expires_at),
        "state": tokens.sign_claims(build_state_claims(approval), typ=APPROVAL_TYPE),
    }


def build_state_claims(approval: Approval) -> dict[str, Any]:
    """Build the claims of `approval.state`; docs/authzen.md describes each. They are
    the same whenever the state is asked for."""
    grant, here = approval.grant, settings.COUNTERSEAL.base_url
    request = getattr(grant.proposal, "request", None)
    issued = int(grant.issued_at.timestamp())
    return {
        "iss": here,
        "aud": here,
        "iat": issued,
        "nbf": issued,
        "exp": int(grant.expires_at.timestamp()),
        "approval_id": grant.pk,
        "task_id": grant.proposal_id,
        "evaluation_id": approval.evaluation_id,
        "client_id": grant.proposal.agent,
        "status": "approved",
        "approved_at": representation.format_timestamp(grant.issued_at),
        "approved_until": representation.format_timestamp(grant.expires_at),
        **approval.access.build_json(),
        "binding_context_members": sorted(approval.access.context),
        "action_hash": grant.action_hash,
        "approved_by": request.sealed.steps if request else [],
    }


def find_refusal(
    approval: Approval, described: Mapping[str, Any], now: datetime
) -> NextAction | None:
    """Why an approval permits nothing now, or None. `described` is the proposal's JSON.
    It makes the checks that the redeem makes again right before the effect, and changes
    nothing. Raises DatabaseRestored. Caller holds no transaction: the checks may ask
    the tool's reader and verifiers."""
    execution = approval.execution
    if not execution.by_agent:
        return NextAction("performed_by_gate", "none")
    if described["grant"] is None:
        used = _USED.get(described["status"])
        # Else another process has redeemed the grant, and its lease may still end.
        until = execution.lease_until or now
        return used or _build_retry("approval_in_use", until, now)
    if approval.grant.expires_at <= now:
        return EXPIRED
    if execution.due_at > now:
        return _build_retry("grant_pending", execution.due_at, now)
    definition = execution.tool_definition
    refusal = rechecks.find_refusal(execution, definition)
    restore_epochs.check_not_restored(execution.recheck_facts.state.halted)
    if refusal is None:
        return None
    if refusal.retryable:
        return NextAction(refusal.code, "retry", RETRY_AFTER_S)
    return _LASTING.get(refusal.code, EXPIRED)


def _build_retry(reason: str, at: datetime, now: datetime) -> NextAction:
    seconds = max(int((at - now).total_seconds()) + 1, 1)
    return NextAction(reason, "retry", seconds)
