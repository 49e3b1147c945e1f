"""What people in charge do: escalations, stops, incidents, a reviewer's revoked
approvals, and the confirmation after a backup was restored."""

from __future__ import annotations

from journal import clock, high_water_mark, restore_epochs
from journal.sequencer import LogDelay
from policies.models import Queue, StandingGrant
from reviews import recovery, standstills
from reviews.choices import Scope, StopMode
from reviews.decisions import returns, revoke
from reviews.decisions.submission import PageEvidence
from reviews.models import ApprovalRequest, Incident, Stop
from reviews.standing_grants import issuance
from reviews.stops import incidents, scope, stops
from tests import factories
from tests.factories import decide
from tests.gallery.scene import SceneGroup, Submission, send, url
from tests.gallery.scenes.outcomes import claim, withdraw_stopped
from tests.gallery.scenes.review import escalated
from tests.gallery.store import LABEL, LAPTOP, StoreGate, policy

UP = SceneGroup(
    "up",
    shows=(
        "reviews:escalation",
        "reviews:show_view",
        "reviews:give_back",
        "reviews:assign",
        "reviews:arbitrate",
    ),
)
ESCALATIONS = "/escalations/"


STANDING = SceneGroup(
    "standing",
    shows=("reviews:issue_standing_grant", "reviews:standing_grants"),
)


@STANDING.preparation
def ask_for_labels(gate: StoreGate) -> None:
    """Every label is asked for, and a supervisor can allow those of a run."""
    document = policy()
    document["rules"].append(
        {
            "id": "label.asked",
            "text": "The warehouse counts labels this week.",
            "tools": ["add_label"],
            "when": "true",
            "then": {"tier": "approve"},
        }
    )
    gate.adopt(document)


def label_request(gate: StoreGate) -> ApprovalRequest:
    return gate.ask("add_label", dict(LABEL))


def allow_labels(gate: StoreGate) -> StandingGrant:
    return issuance.issue_standing_grant(
        request_id=label_request(gate).pk,
        person=gate.sue,
        reason="Forty parcels of one lorry need the same label.",
    )


def issue_page(gate: StoreGate) -> str:
    return f"{url(label_request(gate))}allow/"


STANDING.add("none", "No standing grant is in force.", "/standing-grants/")
STANDING.add("offered", "The warehouse counts labels", label_request, "sue")
STANDING.add("issue", "At most", issue_page, "sue")
STANDING.add("issue-refused", "Only a supervisor", issue_page)
STANDING.add(
    "issue-reason",
    "Enter a reason",
    lambda gate: Submission(issue_page(gate), {"reason": " "}),
    "sue",
)


@STANDING.scene("in-force", "1 of 40 uses", "sue")
def in_force(gate: StoreGate) -> str:
    allowed = allow_labels(gate)
    gate.propose("add_label", {**LABEL, "label": "lorry"}, thread=allowed.thread)
    ended = allow_labels(gate)
    issuance.revoke_standing_grant(grant_id=ended.pk, person=gate.sam)
    return "/standing-grants/"


@STANDING.scene("run", "1 of 40", "sue")
def allowed_run(gate: StoreGate) -> str:
    allowed = allow_labels(gate)
    gate.propose("add_label", {**LABEL, "label": "lorry"}, thread=allowed.thread)
    return f"/threads/{allowed.agent}/{allowed.thread}/"


STANDING.add("used", "lorry", "/announced/", "sue")


@UP.preparation
def escalate(gate: StoreGate) -> None:
    """What was handed up, a disagreement, and what expired."""
    escalated(gate)
    escalated(gate)
    gate.address()
    split = gate.refund("610.00", LAPTOP)
    decide(split, gate.sue, reason_code="verified", reason="I rang them.")
    decide(split, gate.sam, "reject", reason_code="unsafe", reason="Wrong account.")
    factories.overdue(gate.refund())


def flagged(gate: StoreGate) -> ApprovalRequest:
    """Escalated by somebody who would reject it."""
    return escalated(gate, page=PageEvidence(flags=("leans_reject",)))


def escalation_page(request: ApprovalRequest) -> str:
    return f"{ESCALATIONS}{request.pk}/"


UP.add("list", "Escalations", ESCALATIONS, "sue")
UP.add("list-reviewer", "Escalations", ESCALATIONS)
UP.add(
    "panel", "Return with guidance…", lambda gate: escalation_page(flagged(gate)), "sue"
)
UP.add("shown", "They would reject it.", send(flagged, "view"), "sue")
UP.add(
    "return-refused", "Enter guidance", send(escalated, "return", guidance=" "), "sue"
)
UP.add(
    "assign-refused",
    "Choose a person.",
    send(escalated, "assign", to=""),
    "sue",
)


@UP.scene("assigned", "Assigned to", "sam")
def assigned(gate: StoreGate) -> str:
    request = escalated(gate)
    returns.assign_request(request_id=request.pk, person=gate.sue, to=gate.sam)
    return escalation_page(request)


def find_split(gate: StoreGate) -> ApprovalRequest:
    return ApprovalRequest.objects.filter(status="rejected").latest("opened_at")


UP.add("close-refused", "Enter what was learned.", send(find_split, "arbitrate"), "sue")

STOPS = SceneGroup(
    "stop",
    shows=(
        "agents:stop_thread",
        "agents:stop_agent",
        "reviews:stopped",
        "reviews:lift",
    ),
)
WHY = "It refunds what was delivered."
RUN = "/threads/riley/ticket-7/stop/"


@STOPS.preparation
def begin_work(gate: StoreGate) -> None:
    """Two threads, of which one has begun an effect and has another queued."""
    gate.refund(thread="ticket-7")
    gate.approve(gate.refund(thread="ticket-7"))
    claim(gate.approve(gate.refund(thread="ticket-7")))
    gate.label(thread="ticket-8")


STOPS.add("run", "Stop now", RUN, "sue")
STOPS.add("run-pause", "Pause", f"{RUN}?mode=paused", "sue")
STOPS.add("run-reviewer", "Pause now", RUN)
STOPS.add("agent", "Stop", "/agents/riley/stop/", "owen")
STOPS.add("all", "all agents", "/stop/?target=everything:", "adam")
STOPS.add("tool", "Stop", "/stop/?tool=process_refund", "adam")
STOPS.add("at-work", "In progress", "/stop/")
STOPS.add("nothing-to-stop", "Stopped or paused", "/stop/", "otto")


def submit(target: str, reason: str) -> Submission:
    """What the form of a stop sends."""
    path = RUN if target.startswith("thread") else "/stop/"
    return Submission(path, {"target": target, "mode": "stopped", "reason": reason})


def newest_stop(gate: StoreGate) -> Stop:
    return Stop.objects.latest("pk")


def stop(
    gate: StoreGate, scope: Scope, key: str, mode: StopMode = StopMode.STOPPED
) -> Stop:
    who = gate.adam if scope is Scope.EVERYTHING else gate.sue
    return stops.create_stop(scope=scope, key=key, mode=mode, person=who, reason=WHY)


STOPS.add("refused", "Nothing was stopped.", submit("agent:riley", ""), "sue")
STOPS.add(
    "halting",
    "Stopping",
    lambda gate: stop(gate, Scope.THREAD, "riley/ticket-7"),
    "sue",
)
STOPS.add(
    "stopped-twice",
    "already stopped or paused",
    submit("thread:riley/ticket-7", WHY),
    "sam",
)
STOPS.add(
    "halted",
    "Stopped",
    lambda gate: withdraw_stopped(stop(gate, Scope.THREAD, "riley/ticket-8")),
    "sam",
)
STOPS.add(
    "lift-refused", "Enter a reason.", send(newest_stop, "lift", reason=""), "sam"
)


@STOPS.scene("lifted-twice", "already been resumed", "sam")
def lifted_twice(gate: StoreGate) -> Submission:
    off = stop(gate, Scope.TOOL, "add_label")
    stops.lift_stop(stop_id=off.pk, person=gate.sue, reason="It was a drill.")
    return Submission(url(off, "lift"), {"reason": "The label was right after all."})


@STOPS.scene("switches", "Stopped or paused", "sue")
def switches(gate: StoreGate) -> str:
    stop(gate, Scope.TOOL, "send_email", StopMode.PAUSED)
    return "/stop/"


def half_lifted(gate: StoreGate) -> Stop:
    """A stop of everything, which two people lift."""
    off = stop(gate, Scope.EVERYTHING, "")
    stops.lift_stop(stop_id=off.pk, person=gate.sam, reason="It was a drill.")
    return off


STOPS.add("half-lifted", "must confirm", half_lifted, "sue")

FROZEN = SceneGroup("frozen", shows=("reviews:incidents",))
INCIDENTS = "/incidents/"
FROZEN.add("none", "No incident is open.", INCIDENTS, "otto")
FROZEN.add("none-supervisor", "Pause deadlines", INCIDENTS, "sue")


def declare(reason: str) -> Submission:
    return Submission(INCIDENTS, {"queue": "every", "reason": reason})


FROZEN.add("refused", "No deadline was paused.", declare(" "), "sue")


@FROZEN.scene("open", "Paused", "sue")
def freeze_queue(gate: StoreGate) -> str:
    gate.refund()
    first = incidents.declare_incident(person=gate.sam, reason="A drill.")
    incidents.end_incident(incident_id=first.pk, person=gate.adam)
    incidents.declare_incident(
        person=gate.sam,
        reason="The refund service answers every second call with an error.",
        queue=Queue.objects.get(name=gate.refund().queue.name),
    )
    incidents.advance_frozen_deadlines()
    return INCIDENTS


FROZEN.add("open-reviewer", "Paused", INCIDENTS)


@FROZEN.scene("review", "Deadlines are paused in")
def review_frozen(gate: StoreGate) -> ApprovalRequest:
    request = gate.refund()
    incidents.advance_frozen_deadlines()
    return request


FROZEN.add("queue", "Paused", "/queue/")


@FROZEN.scene("escalation", "Its deadline is paused.", "sue")
def escalation_frozen(gate: StoreGate) -> str:
    request = escalated(gate)
    incidents.advance_frozen_deadlines()
    return escalation_page(request)


@FROZEN.scene("twice", "Deadlines are paused since", "adam")
def freeze_everything(gate: StoreGate) -> str:
    if not Incident.objects.filter(queue=None, ended_at=None).exists():
        incidents.declare_incident(person=gate.sue, reason="The whole site is down.")
    return INCIDENTS


FROZEN.add("declared-twice", "is open already", declare("Nobody can reach it."), "sue")

REVOKE = SceneGroup("revoke", shows=("reviews:revoke",))


@REVOKE.preparation
def approve_four(gate: StoreGate) -> None:
    """Rita approved four things: one is queued, one runs, one ran, and one can still be
    recalled."""
    gate.refunded()
    gate.approve(gate.refund("31.00", thread="ticket-7"))
    claim(gate.approve(gate.refund("17.00", thread="ticket-7")))
    decide(gate.refund("12.00"), gate.rita, reason_code="verified")


def revoke_page(gate: StoreGate, name: str = "rita") -> str:
    return f"/reviewers/{gate.people[name].public_id}/revoke/"


REVOKE.add("page", "authorized and queued", revoke_page, "sue")
REVOKE.add(
    "refused",
    "Enter a reason.",
    lambda gate: Submission(revoke_page(gate), {"reason": ""}),
    "sue",
)
REVOKE.add(
    "own",
    "Only someone else can revoke",
    lambda gate: revoke_page(gate, "sue"),
    "sue",
)
REVOKE.add("choose", "Approvals by a reviewer", "/stop/", "adam")


def revoked(gate: StoreGate) -> Stop:
    key = gate.rita.public_id
    row = Stop.objects.filter(scope=Scope.REVIEWER, key=key, lifted_at=None).first()
    return row or stop(gate, Scope.REVIEWER, key)


REVOKE.add("revoking", "Revoking", revoked, "sue")


@REVOKE.scene("revoked-twice", "Your text", "sam")
def revoked_twice(gate: StoreGate) -> Submission:
    revoked(gate)
    return Submission(revoke_page(gate), {"reason": "Their account was taken over."})


@REVOKE.scene("revoked", "in need of another approval", "sue")
def revoke_approvals(gate: StoreGate) -> Stop:
    row = revoked(gate)
    for proposal_id in scope.list_proposals_to_withdraw(row):
        revoke.revoke_approval(proposal_id=proposal_id, reviewer=row.key)
    return row


REVOKE.add("revoked-page", "View the result", revoke_page, "sam")
REVOKE.add("half-lifted-own", "not you", half_lifted, "sam")

RESTORED = SceneGroup("restored", shows=("reviews:restored",))
RESTORE = "/restored/"
RESTORED.add("calm", "No restore to confirm.", RESTORE, "sue")


@RESTORED.scene("unread", "Fix the disk.", "sue")
def unread(gate: StoreGate) -> str:
    high_water_mark.build_mark_path().unlink(missing_ok=True)
    high_water_mark.build_mark_path().mkdir()
    restore_epochs.update_status()
    return RESTORE


RESTORED.add("unread-said", "Everything resumes automatically", "/queue/")


@RESTORED.scene("first", "You are the first person.", "sue")
def first(gate: StoreGate) -> str:
    high_water_mark.build_mark_path().rmdir()
    gate.refund()
    gate.refund("12.00")
    recovery.announce_restore(why=restore_epochs.BEHIND)
    restore_epochs.update_status()
    return RESTORE


RESTORED.add("said", "Decisions and proposals are blocked as well.", "/queue/")
RESTORED.add(
    "refused", "Describe what happened.", Submission(RESTORE, {"reason": " "}), "sue"
)


@RESTORED.scene("second", "You are the second person.", "sam")
def second(gate: StoreGate) -> str:
    why = "The disk of db-2 was lost; last night's backup was put back."
    recovery.confirm_restore(person=gate.sue, reason=why)
    return RESTORE


@RESTORED.scene("begun", "No restore to confirm.", "otto")
def begun(gate: StoreGate) -> str:
    recovery.confirm_restore(person=gate.sam, reason="Compared with the provider.")
    restore_epochs.update_status()
    return RESTORE


RESTORED.add(
    "came-back",
    "Counterseal looks up exactly this action",
    lambda gate: ApprovalRequest.objects.earliest("opened_at"),
)


@RESTORED.scene("came-back-closed", "service before anyone proposes it again")
def came_back_closed(gate: StoreGate) -> ApprovalRequest:
    request = ApprovalRequest.objects.latest("opened_at")
    return decide(request, gate.rita, "reject", reason_code="unsafe")


@RESTORED.scene("standstill", "Background work has stopped.", "sue")
def standstill(gate: StoreGate) -> str:
    standstills.known.effects, standstills.known.every_sweep = 130.0, True
    standstills.known.sweeps = ("hitl.tasks.expire_due",)
    return "/queue/"


RESTORED.add("standstill-read", "Contact the operator of Counterseal.", "/queue/")


@RESTORED.scene("late", "Deadlines, reminders or checks", "sue")
def late(gate: StoreGate) -> str:
    standstills.known.effects, standstills.known.every_sweep = 0.0, False
    return "/queue/"


@RESTORED.scene("log-stall", "The audit log has stalled.", "sue")
def log_stall(gate: StoreGate) -> str:
    standstills.known.sweeps = ()
    standstills.known.log = LogDelay(
        since=clock.now(),
        seconds=190.0,
        held_back=True,
        waiting=1204,
        pid=4711,
        application="nightly report",
        open_seconds=195.0,
    )
    return "/queue/"


@RESTORED.scene("calm-again", "No restore to confirm.", "sue")
def calm_again(gate: StoreGate) -> str:
    standstills.known.log = None
    return RESTORE
