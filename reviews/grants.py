"""One-use permission for exactly one action hash, and the execution it allows."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime, timedelta

from django.conf import settings

from journal import log
from journal.errors import NotFound
from policies import tools
from policies.models import Queue

from . import transitions, turns
from .choices import GrantStatus
from .models import ApprovalRequest, Execution, Grant, Proposal, Revision
from .models.base import new_grant_id

# From authorization to the end of the execution window, for the first claim and
# every retry (gate.md section 7).
WINDOW = timedelta(minutes=15)


def token(grant_id: str) -> str:
    """The grant's bearer token: `<grant id>.<MAC>`, the same whenever it is asked."""
    mac = hmac.new(settings.HOLDPOINT.grant_key, grant_id.encode(), hashlib.sha256)
    return f"{grant_id}.{base64.urlsafe_b64encode(mac.digest()).decode().rstrip('=')}"


def token_hash(value: str) -> str:
    return "sha256:" + hashlib.sha256(value.encode()).hexdigest()


def find(value: str, *, agent: str) -> Grant:
    """The grant a token stands for, of this agent only. Raises NotFound."""
    grant = (
        Grant.objects.select_related("proposal", "execution")
        .filter(token_hash=token_hash(value), proposal__agent=agent)
        .first()
    )
    if grant is None:
        raise NotFound
    return grant


def idempotency_key(proposal_id: str, action_hash: str) -> str:
    """What the provider sees: a function of proposal and bytes, never of an attempt."""
    material = f"{proposal_id}|{action_hash}".encode()
    return "hp-" + hashlib.sha256(material).hexdigest()[:48]


def issue(
    proposal: Proposal,
    revision: Revision,
    *,
    actor: log.Actor,
    now: datetime,
    request: ApprovalRequest | None = None,
    announced_in: Queue | None = None,
) -> Execution:
    """Permit one revision and queue its execution; the people of `announced_in` are
    told of it at once.

    Caller is in the transaction that authorised it and holds the request's lock if
    there is a request.
    """
    about = {"request": request.pk, "version": request.version} if request else {}
    grant_id = new_grant_id()
    grant = Grant(
        id=grant_id,
        proposal=proposal,
        revision=revision,
        action_hash=revision.action_hash,
        token_hash=token_hash(token(grant_id)),
        issued_at=now,
        expires_at=now + WINDOW,
    )
    transitions.grant.create(grant, "issue", actor=actor, now=now, **about)
    definition = tools.definition(revision.known_tool)
    batch, place = None, None
    if request and definition.batchable:
        batch, place = turns.place_of(request.pk, request.version)
    execution = Execution(
        proposal=proposal,
        grant=grant,
        batch_id=batch,
        batch_position=place,
        by_agent=definition.executor.kind == "agent",
        idempotency_key=idempotency_key(proposal.pk, revision.action_hash),
        announced_in=announced_in,
        due_at=now,
        queued_at=now,
    )
    return transitions.execution.create(
        execution, "queue", actor=actor, now=now, **about
    )


def revoke(proposal: Proposal, *, actor: log.Actor, now: datetime, code: str) -> bool:
    """Take back what has not been claimed: grant REVOKED, execution REFUSED.

    False when nothing was left to revoke. Caller holds the request's lock if there
    is one.
    """
    live = list(
        Grant.objects.filter(proposal=proposal, status=GrantStatus.LIVE).select_related(
            "execution", "proposal", "revision"
        )
    )
    for grant in live:
        transitions.grant.apply(grant, "revoke", actor=actor, now=now)
        execution = grant.execution
        execution.grant = grant
        transitions.execution.apply(
            execution,
            "refuse",
            actor=actor,
            now=now,
            changes={"finished_at": now, "code": code},
        )
    return bool(live)
