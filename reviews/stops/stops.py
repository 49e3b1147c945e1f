"""Stops and pauses over a thread, an agent, a tool, a reviewer or everything.

A pause keeps what is waiting; a stop refuses and withdraws it. Each is a Stop row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from django.db import IntegrityError

from journal import clock, log, notify, outbox
from journal.errors import (
    AgentStopped,
    Conflict,
    InvalidInput,
    NotFound,
    NotPermitted,
    build_field_error,
)
from journal.operations import operation
from journal.statements import Statement
from policies import solo, substitutes
from policies.models import Person
from policies.people import build_actor
from reviews import permissions
from reviews.choices import Scope, StopMode
from reviews.models import Proposal, Stop
from reviews.roles import Permission

# A condition on stops. The stop of everything has an empty key. A lifted stop still
# covers what was granted before it was set.
# guard: stopped-since
STOP_CONDITION = """
key = ANY(%(keys)s::text[])
AND (lifted_at IS NULL OR mode = 'stopped' AND at >= %(since)s::timestamptz)
"""
_MODES = Statement(
    f"SELECT scope, key, mode FROM reviews_stop WHERE {STOP_CONDITION}"  # noqa: S608
)
# Who set a pause that no person set.
SYSTEM = "system"
STOPS_CHANNEL = "stops"  # wake-up channel of every page that shows something stoppable
StoppableAction = tuple[str, str, str]  # agent, thread, tool
MAX_KEY_LENGTH = 200  # characters: an agent's slug, a slash and a thread's name


def build_thread_key(agent: str, thread: str) -> str:
    """The key of a stop over a thread."""
    return f"{agent}/{thread}"


def build_action_key(proposal: Proposal) -> StoppableAction:
    """What a stop over this proposal's agent, thread or tool covers."""
    return proposal.agent, proposal.thread, proposal.tool_name


def find_stop_mode(agent: str, thread: str, tool: str) -> StopMode | None:
    """The strictest mode in force over one action: STOPPED, PAUSED or None."""
    action = (agent, thread, tool)
    return load_stop_modes([action])[action]


def find_blocking_mode(
    action: StoppableAction, granted_at: datetime
) -> StopMode | None:
    """The strictest mode that keeps a granted effect from starting, or None. What a
    stop has revoked must be proposed again, even if the stop has been lifted since."""
    return load_stop_modes([action], since=granted_at)[action]


def load_stop_modes(
    actions: Collection[StoppableAction], *, since: datetime | None = None
) -> dict[StoppableAction, StopMode | None]:
    """The strictest mode in force over each of many actions, in one query. With
    `since`, a stop that was set then or later counts although it has been lifted."""
    keys = {key for action in actions for key in list_keys(action)}
    rows = _MODES.fetch_all(keys=sorted(keys), since=since)
    return {action: find_strictest_mode(action, rows) for action in actions}


def list_keys(action: StoppableAction) -> list[str]:
    """The keys of all stops that could cover an action."""
    return [key for _, key in _list_covering_stops(*action)]


def _list_covering_stops(agent: str, thread: str, tool: str) -> list[tuple[Scope, str]]:
    return [
        (Scope.AGENT, agent),
        (Scope.THREAD, build_thread_key(agent, thread)),
        (Scope.TOOL, tool),
        (Scope.EVERYTHING, ""),
    ]


def find_strictest_mode(
    action: StoppableAction, rows: Iterable[Sequence[str]]
) -> StopMode | None:
    """The strictest mode over an action among stops, given as scope, key and mode."""
    covering = _list_covering_stops(*action)
    modes = {mode for scope, key, mode in rows if (scope, key) in covering}
    if StopMode.STOPPED in modes:
        return StopMode.STOPPED
    return StopMode.PAUSED if modes else None


def check_may_propose(mode: StopMode | None) -> None:
    """Raises AgentStopped under a stop. A paused agent may still propose."""
    if mode is StopMode.STOPPED:  # guard: propose-stop
        raise AgentStopped


def check_run_may_propose(mode: StopMode | None, agent: str, thread: str) -> None:
    """Raises AgentStopped under a stop, and for a run that Counterseal itself has
    paused, after rejections in a row or at the iteration cap. Takes a query only under
    a pause."""
    check_may_propose(mode)
    reason = _find_system_pause(agent, thread) if mode is StopMode.PAUSED else ""
    if reason:  # guard: paused-run
        raise build_paused_error(reason)


def build_paused_error(reason: str) -> AgentStopped:
    """The error for an agent whose run Counterseal itself has paused."""
    return AgentStopped(
        f"This run is paused. {reason} Nothing was proposed. A person must resume the"
        " run."
    )


def _find_system_pause(agent: str, thread: str) -> str:
    rows = Stop.objects.filter(
        scope=Scope.THREAD,
        key=build_thread_key(agent, thread),
        by=SYSTEM,
        lifted_at__isnull=True,
    )
    return rows.values_list("reason", flat=True).first() or ""


@operation(
    writes="Stop, Substitution",
    logs="stop.raised, stop.tightened",
    after="a task that applies the stop, wake-up",
)
def create_stop(
    *,
    scope: Scope,
    key: str = "",
    mode: StopMode = StopMode.STOPPED,
    person: Person,
    reason: str,
    reason_code: str = "",
    owns: bool = False,
) -> Stop:
    """Stop or pause something at once. A stop replaces a pause, never the other way
    round. A task then withdraws and refuses what waits, in chunks. `reason_code` is the
    reason as a code for statistics. `owns` says that the person owns the agent. Raises
    NotPermitted, InvalidInput for an impossible key, or Conflict when a stop over the
    same scope and key is in force already."""
    permissions.check_can_stop(person, scope, mode, owns=owns)
    key = _check_key(scope, key)
    if scope is Scope.REVIEWER:
        _check_not_self(key, person)
    now = clock.now()
    if mode is StopMode.STOPPED:
        _end_pause(scope, key, person, now)
    stop = _insert_stop(scope, key, mode, reason, reason_code, now, person)
    if stop is None:
        raise Conflict("This is already stopped or paused. Nothing was changed.")
    return stop


def pause_run(
    *,
    agent: str,
    thread: str,
    person: Person,
    now: datetime,
    reason: str,
    reason_code: str,
) -> None:
    """Pause a run within the caller's transaction. A pause or stop that is in force
    stays as it is. Raises NotPermitted."""
    permissions.check_can_stop(person, Scope.THREAD, StopMode.PAUSED)
    _insert_run_pause(agent, thread, reason, reason_code, now, person)


def pause_rejected_run(agent: str, thread: str, *, count: int, now: datetime) -> None:
    """Pause a run after `count` rejections in a row, within the caller's transaction.
    A pause or stop that is in force stays as it is."""
    reason = f"{count} of its proposals in a row were rejected."
    _insert_run_pause(agent, thread, reason, "rejections", now)


def pause_iterating_run(agent: str, thread: str, *, count: int, now: datetime) -> str:
    """Pause a run that has reached the iteration cap, within the caller's transaction,
    and return the reason. A pause or stop that is in force stays as it is."""
    reason = (
        f"It proposed {count} times without a person's decision or a change of plan."
    )
    _insert_run_pause(agent, thread, reason, "iterations", now)
    return reason


def _insert_run_pause(
    agent: str,
    thread: str,
    reason: str,
    code: str,
    now: datetime,
    person: Person | None = None,
) -> None:
    key = build_thread_key(agent, thread)
    _insert_stop(Scope.THREAD, key, StopMode.PAUSED, reason, code, now, person)


def create_reviewer_stop(
    *, reviewer: Person, person: Person | None, now: datetime
) -> None:
    """Stop a reviewer within the transaction in which this person, or without one the
    identity provider, deactivates their account: their approvals of what has not run
    are revoked. Raises NotPermitted."""
    if person is not None:
        permissions.check_can_stop(person, Scope.REVIEWER, StopMode.STOPPED)
        _check_not_self(reviewer.public_id, person)
    key, reason = reviewer.public_id, "Their account was deactivated."
    mode = StopMode.STOPPED
    _insert_stop(Scope.REVIEWER, key, mode, reason, "deactivated", now, person)


def _insert_stop(
    scope: Scope,
    key: str,
    mode: StopMode,
    reason: str,
    reason_code: str,
    now: datetime,
    person: Person | None,
) -> Stop | None:
    """Store, log and publish the stop that this person, or without one Counterseal
    itself, sets; None when its scope and key have one in force, including one that was
    set at the same moment."""
    by = person.public_id if person else SYSTEM
    defaults = {"mode": mode, "reason": reason, "by": by, "at": now}
    try:
        stop, created = Stop.objects.get_or_create(
            scope=scope, key=key, lifted_at=None, defaults=defaults
        )
    except IntegrityError:  # another stop got there first and has been lifted since
        return None
    if not created:
        return None
    if scope is Scope.REVIEWER:
        substitutes.end_all(key, now)
    actor = build_actor(person) if person else log.SYSTEM
    _log_stop_change("stop.raised", stop, actor, now, reason, reason_code)
    outbox.publish("stop.raised", subject=str(stop.pk))
    return stop


def _end_pause(scope: Scope, key: str, person: Person, now: datetime) -> None:
    """Lift a pause in favour of the stop that follows in the same transaction."""
    pauses = Stop.objects.filter(scope=scope, key=key, mode=StopMode.PAUSED)
    row = pauses.filter(lifted_at__isnull=True).first()
    if row is not None:
        _update_stop(row, lifted_by=person.public_id, lifted_at=now)
        _log_stop_change("stop.tightened", row, build_actor(person), now, row.reason)


def _check_not_self(key: str, person: Person) -> None:
    """Raises NotPermitted for the person's own key: nobody revokes their own votes."""
    if solo.lacks_second_person(key, person.public_id):
        raise NotPermitted("Someone else must revoke your own approvals.")


def _check_key(scope: Scope, key: str) -> str:
    """The key to store; always empty for everything, so that there is only one stop."""
    if len(key) > MAX_KEY_LENGTH:
        raise InvalidInput(
            errors=[build_field_error("target", "this name is too long")]
        )
    return "" if scope is Scope.EVERYTHING else key


@operation(writes="Stop", logs="stop.lift_asked or stop.lifted", after="wake-up")
def lift_stop(
    *, stop_id: int, person: Person, reason: str, shown_asked: bool | None = None
) -> Stop:
    """Lift a stop or a pause. Lifting a stop over everything takes two people, except
    in solo mode: the first call only records the wish. `shown_asked` says whether the
    person read that somebody else asked already; None without a page. Raises NotFound,
    NotPermitted, or Conflict when it has been lifted already, or when the person read
    something else."""
    permissions.check_permission(person, Permission.LIFT)
    row = Stop.objects.filter(pk=stop_id).first()
    if row is None:
        raise NotFound
    if row.lifted_at is not None:
        raise Conflict("This has already been resumed. Nothing was changed.")
    own = solo.lacks_second_person(row.key, person.public_id)
    if row.scope == Scope.REVIEWER and own:
        raise NotPermitted(
            "Your own decisions were stopped. Someone else must resume them."
        )
    now = clock.now()
    by_two = row.scope == Scope.EVERYTHING and not solo.is_solo()
    if by_two and not row.lift_asked_by:
        _update_stop(row, lift_asked_by=person.public_id)
        _log_stop_change("stop.lift_asked", row, build_actor(person), now, reason)
        return row
    # guard: lift-by-two
    if solo.lacks_second_person(row.lift_asked_by, person.public_id):
        raise NotPermitted("A second person must confirm before everything resumes.")
    if row.lift_asked_by and shown_asked is False:  # guard: lift-shown
        raise Conflict(
            "Somebody else has asked to resume this since you opened the page, so your"
            " confirmation would resume it at once. Nothing was changed. Read it again."
        )
    _update_stop(row, lifted_by=person.public_id, lifted_at=now)
    _log_stop_change("stop.lifted", row, build_actor(person), now, reason)
    return row


def _update_stop(row: Stop, **values: object) -> None:
    unchanged = Stop.objects.filter(
        pk=row.pk, lifted_at__isnull=True, lift_asked_by=row.lift_asked_by
    )
    if unchanged.update(**values) != 1:
        raise Conflict
    row.refresh_from_db()


def _log_stop_change(
    kind: str, row: Stop, actor: log.Actor, now: datetime, reason: str, code: str = ""
) -> None:
    notify.announce(STOPS_CHANNEL)
    more = {"reason_code": code} if code else {}
    agent, _, thread = (
        row.key.partition("/") if row.scope == Scope.THREAD else ("",) * 3
    )
    log.append(
        kind,
        actor=actor,
        at=now,
        agent=row.key if row.scope == Scope.AGENT else agent,
        thread=thread,
        data={"scope": row.scope, "key": row.key, "mode": row.mode, **more},
        private={"reason": reason},
    )
