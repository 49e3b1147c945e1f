"""Issuing and revoking standing grants: each is an operation of a person."""

from __future__ import annotations

from datetime import datetime, timedelta

from journal import canonical, clock, log, notify, restore_epochs
from journal.errors import (
    Conflict,
    DomainError,
    NotPermitted,
    TextMissing,
)
from journal.operations import operation
from policies import active, standing_grants, tools
from policies.documents import StandingTerms
from policies.evaluation import Evaluation
from policies.models import Person, PolicyVersion, StandingGrant
from policies.people import build_actor
from reviews import locks, permissions
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Proposal
from reviews.quorum import can_fill_step
from reviews.roles import Permission
from reviews.stops import gate_state
from reviews.stops.stops import build_action_key

from .uses import ISSUED


@operation(
    locks="request, the run's standing grants (advisory)",
    writes="StandingGrant",
    logs="standing_grant.issued",
    after="wake-up",
)
def issue_standing_grant(
    *, request_id: str, person: Person, reason: str, shown: str = ""
) -> StandingGrant:
    """Allow the calls of a request's tool in its run in advance, within the terms of
    the active policy. `shown` is the `canonical.format_shown` of the terms that the
    person read; empty without a page. The request stays open. Raises NotFound,
    TextMissing, and under the lock NotPermitted, AlreadyEscalated, Conflict when the
    policy, the request or a stop does not allow one, or when one is in force."""
    if not reason.strip():
        raise TextMissing("Enter a reason first. Nothing was allowed.")
    request = locks.lock_request_shown_to(person, request_id)
    proposal = request.proposal
    state = gate_state.load_state(build_action_key(proposal))
    restore_epochs.check_not_restored(state.halted)
    if state.mode is not None:
        raise Conflict("This is stopped or paused. Nothing was allowed.")
    person = permissions.load_deciders([person.pk])[person.pk].person
    terms = check_may_issue(person, request, state.policy, state.now)
    parts = build_shown_terms(request, terms)
    canonical.check_shown(shown, parts, "Nothing was allowed.")  # guard: terms-shown
    # Two requests of one run would otherwise each allow the same calls.
    locks.lock_standing_grants(*build_action_key(proposal))
    if _is_in_force(proposal):
        raise Conflict(
            "A standing grant for this tool and run is in force. Nothing was allowed."
        )
    row = StandingGrant(
        agent=proposal.agent,
        thread=proposal.thread,
        tool=proposal.tool_name,
        queue=request.queue,
        request=request.pk,
        issued_by=person,
        role=permissions.check_admitted_to_queue(person, request.queue_id),
        reason=reason.strip(),
        issued_at=state.now,
        expires_at=state.now + timedelta(minutes=terms.minutes),
        budget=terms.uses,
    )
    row.seal = row.compute_seal()
    row.save(force_insert=True)
    _log_change(ISSUED, row, person, state.now)
    return row


def build_shown_terms(
    request: ApprovalRequest, terms: StandingTerms
) -> dict[str, object]:
    """The parts of what a standing grant would allow, which its form is bound to."""
    return {
        "the request": request.version,
        "the terms of the policy": [terms.minutes, terms.uses],
    }


def check_may_issue(
    person: Person,
    request: ApprovalRequest,
    policy: PolicyVersion | None,
    now: datetime,
) -> StandingTerms:
    """Return the terms under which this person may issue a standing grant from this
    request. Raises NotPermitted, AlreadyEscalated, and Conflict with the cause."""
    if request.status != RequestStatus.PENDING or request.expires_at <= now:
        raise Conflict("This request is no longer pending. Nothing was allowed.")
    role = permissions.check_can_decide(person, request, request.sealed)
    revision = request.sealed.revision
    tool = tools.find_current_tool(request.tool_name, policy) if policy else None
    if policy is None or tool is None:
        raise Conflict("The tool is no longer registered. Nothing was allowed.")
    definition = tools.load_definition(tool)
    uncovered = standing_grants.find_uncovered_reason(
        active.load_document(policy),
        definition,
        Evaluation.from_json(revision.evaluation),
        revision.args,
    )
    terms = definition.standing_grant
    if uncovered or terms is None:
        raise Conflict(
            f"You cannot allow this in advance: {uncovered}. Nothing was allowed."
        )
    if not can_fill_step(role, terms.role):  # guard: standing-role
        raise NotPermitted(
            f"Only a {terms.role} can allow this in advance. Nothing was allowed."
        )
    if permissions.is_above_ceiling(person, revision.amount_minor, revision.currency):
        raise NotPermitted(permissions.describe_ceiling(person, revision))
    return terms


def may_issue(person: Person, request: ApprovalRequest, now: datetime) -> bool:
    """Whether `issue_standing_grant` would not refuse this person now."""
    try:
        check_may_issue(person, request, active.find_active_policy(), now)
    except DomainError:
        return False
    return not _is_in_force(request.proposal)


@operation(
    locks="standing grant",
    writes="StandingGrant",
    logs="standing_grant.revoked",
    after="wake-up",
)
def revoke_standing_grant(*, grant_id: str, person: Person) -> StandingGrant:
    """End a standing grant at once. What took a use and has not begun is refused.
    Anybody who may stop runs of its queue may, and who issued it. Raises NotFound,
    NotPermitted, and Conflict when it has ended already."""
    grant = locks.lock_standing_grant(grant_id)
    if not may_revoke(person, grant):
        raise NotPermitted("Your role cannot revoke this. Nothing was changed.")
    now = clock.now()
    if grant.revoked_at is not None:
        raise Conflict("This has been revoked already. Nothing was changed.")
    grant.revoked_at, grant.revoked_by = now, person
    grant.save(update_fields=["revoked_at", "revoked_by"])
    _log_change("standing_grant.revoked", grant, person, now)
    return grant


def may_revoke(person: Person, row: StandingGrant) -> bool:
    """Whether this person may revoke it."""
    if row.issued_by_id == person.pk and person.is_active:
        return True
    if permissions.has_permission(person, Permission.STOP):
        return True
    admitted = row.queue_id in permissions.queues_of(person)
    return admitted and permissions.find_deciding_role(person) is not None


def _is_in_force(proposal: Proposal) -> bool:
    action = build_action_key(proposal)
    return locks.select_usable_standing_grants(*action).exists()


def _log_change(kind: str, row: StandingGrant, person: Person, now: datetime) -> None:
    log.append(
        kind,
        actor=build_actor(person),
        at=now,
        agent=row.agent,
        thread=row.thread,
        request=row.request,
        data={
            "standing_grant": row.pk,
            "tool": row.tool,
            "until": row.expires_at.isoformat(),
            "budget": row.budget,
            "uses": row.uses,
        },
        private={"reason": row.reason},
    )
    notify.announce(row.request)
