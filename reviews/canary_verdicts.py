"""The end of a canary: what its reviewer decided, whether they caught the defect, and
what they say about how real it looked.

The verdict is stored with the canary, not as a Decision. Nothing is granted, nobody is
notified, and the agent whose name it bears hears nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from journal import clock, log, sweeps
from journal.errors import NotFound
from journal.operations import operation
from policies import active
from policies.models import Person
from policies.people import build_actor
from reviews import locks, permissions, transitions
from reviews.choices import CanaryEnding, RealismFlag, RequestStatus, StopMode, Verdict
from reviews.holds import rows as hold_rows
from reviews.models import ApprovalRequest, Canary
from reviews.standing_grants import issuance
from reviews.stops import stops

TIMER = log.Actor("system", "timer")


def is_caught(
    canary: Canary,
    verdict: Verdict,
    planted: Mapping[str, Any],
    edited: Mapping[str, Any] | None,
) -> bool:
    """Whether a verdict stops the defect. A rejection and an escalation do. An edit
    does if it changes the argument that holds it."""
    if verdict is Verdict.MODIFY:
        changed = edited is not None and bool(canary.field)
        return changed and (edited or {}).get(canary.field) != planted.get(canary.field)
    return verdict in {Verdict.REJECT, Verdict.ESCALATE}


def record_verdict(
    request: ApprovalRequest,
    verdict: Verdict,
    *,
    actor: log.Actor,
    now: datetime,
    edited: Mapping[str, Any] | None = None,
    took_ms: int | None = None,
) -> None:
    """Store the verdict and end the canary. A step of the decide operation, which holds
    the request's lock and has made every check of a verdict."""
    canary = Canary.objects.get(pk=request.proposal_id)
    planted = request.sealed.revision.args
    Canary.objects.filter(pk=canary.pk, ending="").update(
        verdict=verdict,
        caught=is_caught(canary, verdict, planted, edited),
        took_ms=took_ms,
        ending=CanaryEnding.DECIDED,
        ended_at=now,
    )
    # The log proves the verdict without saying it: it is nobody's but the reviewer's.
    _end_request(
        request, CanaryEnding.DECIDED, actor, now, private={"verdict": verdict}
    )


def end_canary(
    request: ApprovalRequest, ending: CanaryEnding, *, actor: log.Actor, now: datetime
) -> None:
    """End a canary that nobody decided. Caller holds the request's lock."""
    undecided = Canary.objects.filter(pk=request.proposal_id, ending="")
    undecided.update(ending=ending, ended_at=now)
    _end_request(request, ending, actor, now)


@operation(
    locks="request, Hold",
    writes="ApprovalRequest, Canary, Hold",
    logs="canary.revealed, hold.released",
    after="mail, wake-up",
)
def pass_on_canary(*, request_id: str, person: Person, allows: bool = False) -> bool:
    """End a canary whose reviewer hands it to a colleague, or with `allows` allows such
    calls in advance, instead of deciding it. Returns False for a request of an agent
    and for a canary that has ended: the caller then does what it does with a request.

    Raises what the same raises for a request.
    """
    request = locks.lock_request_shown_to(person, request_id)
    now = clock.now()
    if not request.canary or request.status != RequestStatus.PENDING:
        return False
    permissions.check_can_decide(person, request, request.sealed)
    if allows:
        policy = active.find_active_policy()
        issuance.check_may_issue(person, request, policy, now)
    end_canary(request, CanaryEnding.ASKED, actor=build_actor(person), now=now)
    hold_rows.free_hold_of_person(request, person, now)
    return True


def _end_request(
    request: ApprovalRequest,
    ending: CanaryEnding,
    actor: log.Actor,
    now: datetime,
    private: Mapping[str, str] | None = None,
) -> None:
    transitions.request.apply(
        request,
        "reveal",
        actor=actor,
        now=now,
        changes={"settled_at": now},
        data={"ending": ending},
        private=private,
    )


def end_lapsed_canaries() -> int:
    """End the canaries that nobody decided in time, and those of a run, agent or tool
    that was stopped. Returns how many."""
    now = clock.now()
    undecided = Canary.objects.filter(ending="").select_related("proposal__request")
    return sweeps.run_each(lambda canary: _end_if_lapsed(canary, now), undecided)


def _end_if_lapsed(canary: Canary, now: datetime) -> bool:
    ending = _find_ending(canary, now)
    if ending is None:
        return False
    request_id = canary.proposal.request.pk
    return end_undecided_canary(request_id=request_id, ending=ending)


def _find_ending(canary: Canary, now: datetime) -> CanaryEnding | None:
    """How a canary that nobody decided ends now; None while it stays open."""
    stopped = stops.find_stop_mode(*stops.build_action_key(canary.proposal))
    if stopped is StopMode.STOPPED:
        return CanaryEnding.STOPPED
    if canary.proposal.request.expires_at <= now:
        return CanaryEnding.EXPIRED
    return None


@operation(
    locks="request",
    writes="ApprovalRequest, Canary",
    logs="canary.revealed",
    after="wake-up",
)
def end_undecided_canary(*, request_id: str, ending: CanaryEnding) -> bool:
    """End a canary unless its reviewer has just decided it. Returns whether it ended.
    Raises NotFound."""
    request = locks.lock_request_or_canary(request_id)
    if not request.canary:
        raise NotFound
    if request.status != RequestStatus.PENDING:
        return False
    end_canary(request, ending, actor=TIMER, now=clock.now())
    return True


@operation(writes="Canary", logs="canary.flagged")
def record_realism(*, request_id: str, person: Person, flag: RealismFlag) -> None:
    """Store what a reviewer says about their own revealed canary; a later answer takes
    the place of an earlier one. Raises NotFound."""
    own = Canary.objects.filter(proposal__request=request_id, reviewer=person)
    if not own.exclude(ending="").update(realism=flag):
        raise NotFound
    request = ApprovalRequest.with_canaries.select_related("proposal").get(
        pk=request_id
    )
    log.append(
        "canary.flagged",
        actor=build_actor(person),
        at=clock.now(),
        data={"flag": flag},
        **transitions.request.context(request),
    )
