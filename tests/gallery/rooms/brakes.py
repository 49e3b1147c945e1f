"""The brakes of people in charge: incidents, and the approvals of a reviewer."""

from __future__ import annotations

from journal import log
from policies.models import Queue
from reviews.choices import Scope
from reviews.decisions import revoke
from reviews.executions import claims, run
from reviews.models import Incident, Stop
from reviews.stops import incidents, scope, stops
from tests.factories import decide
from tests.gallery.scene import Room, Sent
from tests.gallery.stage import Stage, path

from .over import approved

FROZEN, REVOKE = Room("frozen"), Room("revoke")
INCIDENTS, PAGE, STOPPED = "reviews:incidents", "reviews:revoke", "reviews:stopped"
WHY = "The refund service answers every second call with an error."

FROZEN.page("none", INCIDENTS, "/incidents/", "No incident is open.", who="otto")
FROZEN.page("none-supervisor", INCIDENTS, "/incidents/", "Freeze", who="sue")


@FROZEN.scene("refused", INCIDENTS, "Nothing was frozen.", who="sue")
def refused(stage: Stage) -> Sent:
    return Sent("/incidents/", {"queue": "every", "reason": " "})


@FROZEN.scene("open", INCIDENTS, "Frozen", who="sue")
def opened(stage: Stage) -> str:
    stage.refund()
    first = incidents.declare_incident(person=stage.sam, reason="A drill.")
    incidents.end_incident(incident_id=first.pk, person=stage.adam)
    queue = Queue.objects.get(name=stage.refund().queue.name)
    incidents.declare_incident(person=stage.sam, reason=WHY, queue=queue)
    incidents.advance_frozen_deadlines()
    return "/incidents/"


FROZEN.page("open-reviewer", INCIDENTS, "/incidents/", "Frozen")


@FROZEN.scene("review", "reviews:request_detail", "Deadlines are frozen in")
def review(stage: Stage) -> str:
    request = stage.refund()
    incidents.advance_frozen_deadlines()
    return path(request)


FROZEN.page("queue", "reviews:queue", "/queue/", "Frozen")


@FROZEN.scene("escalation", "reviews:escalation", "Its deadline is frozen.", who="sue")
def escalation(stage: Stage) -> str:
    request = stage.refund()
    decide(request, stage.rita, "escalate", reason_code="unclear", reason="Which door?")
    incidents.advance_frozen_deadlines()
    return f"/escalations/{request.pk}/"


@FROZEN.scene("twice", INCIDENTS, "Deadlines are frozen since", who="adam")
def twice(stage: Stage) -> str:
    if not Incident.objects.filter(queue=None, ended_at=None).exists():
        incidents.declare_incident(person=stage.sue, reason="The whole site is down.")
    return "/incidents/"


@FROZEN.scene("declared-twice", INCIDENTS, "frozen already", who="sue")
def declared_twice(stage: Stage) -> Sent:
    said = {"queue": "every", "reason": "Nobody can reach the store."}
    return Sent("/incidents/", said)


@REVOKE.furnished
def decided(stage: Stage) -> None:
    """Rita approved four things: one is queued, one runs, one ran, and one can still be
    recalled."""
    ran = approved(stage.refund("59.00"), stage)
    run.run_execution(ran.pk)
    approved(stage.refund("31.00", thread="ticket-7"), stage)
    begun = approved(stage.refund("17.00", thread="ticket-7"), stage)
    claims.claim_execution(execution_id=begun.pk, actor=log.SYSTEM)
    decide(stage.refund("12.00"), stage.rita, reason_code="verified")


def revoking(stage: Stage, name: str = "rita") -> str:
    return f"/reviewers/{stage.gate.people[name].public_id}/revoke/"


@REVOKE.scene("page", PAGE, "authorized and queued", who="sue")
def page(stage: Stage) -> str:
    return revoking(stage)


@REVOKE.scene("refused", PAGE, "Say why.", who="sue")
def no_reason(stage: Stage) -> Sent:
    return Sent(revoking(stage), {"reason": ""})


@REVOKE.scene("own", PAGE, "must be revoked by someone else", who="sue")
def own(stage: Stage) -> str:
    return revoking(stage, "sue")


REVOKE.page("choose", "reviews:stop", "/stop/", "What a reviewer approved", who="adam")


def revoked(stage: Stage) -> Stop:
    key = stage.rita.public_id
    row = Stop.objects.filter(scope=Scope.REVIEWER, key=key, lifted_at=None).first()
    reason = "Somebody else was at their desk."
    return row or stops.create_stop(
        scope=Scope.REVIEWER, key=key, person=stage.sue, reason=reason
    )


@REVOKE.scene("revoking", STOPPED, "Revoking", who="sue")
def under_way(stage: Stage) -> str:
    return f"/stop/{revoked(stage).pk}/"


@REVOKE.scene("revoked-twice", PAGE, "What you wrote", who="sam")
def twice_revoked(stage: Stage) -> Sent:
    revoked(stage)
    return Sent(revoking(stage), {"reason": "Their account was taken over."})


@REVOKE.scene("revoked", STOPPED, "asked again of others", who="sue")
def done(stage: Stage) -> str:
    row = revoked(stage)
    for proposal_id in scope.list_proposals_to_withdraw(row):
        revoke.revoke_approval(proposal_id=proposal_id, reviewer=row.key)
    return f"/stop/{row.pk}/"


@REVOKE.scene("revoked-page", PAGE, "What came of it", who="sam")
def after(stage: Stage) -> str:
    return revoking(stage)


@REVOKE.scene("half-lifted-own", STOPPED, "not you", who="sam")
def half_lifted(stage: Stage) -> str:
    off = stops.create_stop(
        scope=Scope.EVERYTHING, person=stage.adam, reason="A drill."
    )
    stops.lift_stop(stop_id=off.pk, person=stage.sam, reason="It is over.")
    return f"/stop/{off.pk}/"
