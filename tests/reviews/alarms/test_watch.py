"""Standing alarms: each raised by what really happened, once, and none by anything
else. What happens at once: tests/races/test_alarms.py."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from structlog.testing import capture_logs

from agents import proposals
from agents.choices import ThreadResult
from desk.components import retry
from journal import clock, errors, failpoints, log
from journal.models import LogRecord, OutboxMessage
from policies.choices import Risk
from reviews.alarms import standing, watch
from reviews.alarms.late_reports import MAX_KEPT_REPORTS
from reviews.alarms.wording import describe_alarm
from reviews.choices import AlarmKind, Scope, StopMode
from reviews.executions import claims, reconcile, redeem, run
from reviews.executions import record as executions
from reviews.grants import tokens
from reviews.models import Alarm, Execution, Grant, LateReport, Notice, Revision
from reviews.stops import stops
from reviews.tool_services import executors
from reviews.tool_services.executors import EffectOutcome
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.hitl.tasks.draining import drain
from tests.notifications.test_plan import chooses, time_comes
from tests.reviews import states

RILEY = log.Actor("agent", "riley")


def raised() -> list[tuple[str, str, int]]:
    """(kind, subject, times) of every alarm."""
    return list(Alarm.objects.order_by("pk").values_list("kind", "subject", "times"))


def the_alarm() -> Alarm:
    return Alarm.objects.get()


def ended(execution: Execution) -> Execution:
    """Its window is over now."""
    past = clock.now() - timedelta(minutes=2)
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=past)
    Execution.objects.filter(pk=execution.pk, status="queued").update(due_at=past)
    return execution


def letter(gate: Gate, text: str = "hello") -> Execution:
    """What the agent performs itself, approved."""
    args = {"to": "a friend", "text": text}
    request = propose(gate.agent, "write", args=args, thread=f"t-{text}").request
    decide(request, gate.rita, reason_code="verified")
    return Execution.objects.select_related("grant").get(proposal=request.proposal)


def redeemed(execution: Execution) -> Execution:
    redeem.redeem_grant(token=tokens.load_token(execution.grant_id), agent="riley")
    execution.refresh_from_db()
    return execution


def report(execution: Execution, status: str = "succeeded", **fields: Any) -> None:
    """As the agent says it over HTTP."""
    made: dict[str, Callable[[], EffectOutcome]] = {
        "succeeded": lambda: executors.build_success(fields.get("result", {"sent": 1})),
        "failed": lambda: executors.build_failure("declined", "no such box"),
        "unknown": lambda: executors.build_unknown("ambiguous", "it hung"),
    }
    execution.grant.refresh_from_db()
    redeem.report_outcome(
        execution=execution,
        fence=fields.get("fence", execution.fence),
        action_hash=fields.get("action_hash", execution.grant.action_hash),
        outcome=made[status](),
        actor=RILEY,
    )


def too_late(execution: Execution, status: str = "succeeded", **fields: Any) -> None:
    with pytest.raises(errors.StaleFence):
        report(execution, status, **fields)


# Approved, and never executed.


def test_a_grant_that_its_agent_never_redeemed(gate: Gate) -> None:
    execution = ended(letter(gate))
    with pytest.raises(errors.GrantExpired):
        redeemed(execution)
    assert raised() == [("never_executed", execution.pk, 1)]
    alarm = the_alarm()
    assert alarm.data == {"execution": execution.pk, "code": "window_closed"}
    assert alarm.queue is not None
    assert alarm.queue.name == "mail"
    record = LogRecord.objects.get(kind="alarm.raised")
    assert record.proposal == execution.proposal_id


def test_what_no_worker_took_in_its_window(gate: Gate) -> None:
    execution = ended(states.queued(gate))
    run.run_execution(execution.pk)
    assert raised() == [("never_executed", execution.pk, 1)]


def test_what_a_check_refused_before_the_effect(gate: Gate) -> None:
    execution = states.queued(gate)
    worlds.WORLD["preconditions"] = {"row_version": 2}
    run.run_execution(execution.pk)
    assert raised() == [("never_executed", execution.pk, 1)]
    assert the_alarm().data["code"] == "precondition"


def test_what_was_announced_and_did_not_run(gate: Gate) -> None:
    propose(gate.agent, "tag")
    execution = ended(Execution.objects.get())
    run.run_execution(execution.pk)
    assert raised() == [("never_executed", execution.pk, 1)]


def test_what_somebody_wanted_not_to_run_is_no_alarm(gate: Gate) -> None:
    stopped = states.queued(gate)
    stops.create_stop(
        scope=Scope.TOOL, key="pay", person=gate.sue, reason="wrong payee"
    )
    run.run_execution(stopped.pk)
    withdrawn = letter(gate)
    states.withdraw(gate.agent, withdrawn.proposal)
    letter(gate, "again")
    proposals.finish_thread(
        agent=gate.agent, name="t-again", result=ThreadResult.GAVE_UP
    )
    assert set(Execution.objects.values_list("status", flat=True)) == {"refused"}
    watch.sweep_alarms()
    assert raised() == []


def test_what_nobody_was_asked_about_is_no_alarm(gate: Gate) -> None:
    propose(gate.agent, "look")
    execution = ended(Execution.objects.get())
    run.run_execution(execution.pk)
    watch.sweep_alarms()
    assert raised() == []


def test_the_sweep_finds_what_another_release_refused(gate: Gate) -> None:
    """Its code raised nothing."""
    execution = ended(states.queued(gate))
    run.run_execution(execution.pk)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("DELETE FROM reviews_alarm")
        cursor.execute("SET LOCAL session_replication_role = origin")
    assert (watch.sweep_alarms(), watch.sweep_alarms()) == (1, 0)
    assert raised() == [("never_executed", execution.pk, 1)]


def test_what_stays_queued_is_found_and_closes_itself_when_it_runs(gate: Gate) -> None:
    execution = ended(states.queued(gate))
    assert watch.sweep_alarms() == 1
    later = clock.now() + timedelta(minutes=5)
    worlds.rewrite(Grant, execution.grant_id, expires_at=later)
    run.run_execution(execution.pk)
    assert (watch.sweep_alarms(), watch.sweep_alarms()) == (1, 0)
    alarm = the_alarm()
    assert (alarm.status, alarm.closed_how, alarm.closed_by) == (
        "closed",
        "itself",
        None,
    )


def test_an_alarm_that_was_closed_is_not_raised_anew(gate: Gate) -> None:
    ended(states.queued(gate))
    watch.sweep_alarms()
    standing.close_alarm(alarm_id=the_alarm().pk, person=gate.sue, note="asked again")
    assert watch.sweep_alarms() == 0
    assert the_alarm().status == "closed"


# Executed without a permission.


@pytest.mark.parametrize("status", ["succeeded", "unknown"])
def test_an_effect_that_was_never_redeemed(gate: Gate, status: str) -> None:
    execution = letter(gate)
    too_late(execution, status, fence=1)
    assert raised() == [("without_grant", execution.pk, 1)]
    execution.refresh_from_db()
    assert (execution.status, execution.grant.status) == ("queued", "live")
    assert LateReport.objects.get().found == "queued"


def test_a_fence_that_was_never_given(gate: Gate) -> None:
    execution = redeemed(letter(gate))
    too_late(execution, fence=10**30)
    assert raised() == [("without_grant", execution.pk, 1)]


def test_an_effect_after_its_refusal(gate: Gate) -> None:
    execution = letter(gate)
    states.withdraw(gate.agent, execution.proposal)
    too_late(execution, fence=1)
    assert raised() == [("without_grant", execution.pk, 1)]


def test_a_failure_without_a_claim_had_no_effect(gate: Gate) -> None:
    too_late(letter(gate), "failed", fence=1)
    assert [kind for kind, _, _ in raised()] == ["late_report"]


def test_rows_that_say_so_whoever_wrote_them(gate: Gate) -> None:
    """No operation can do this: by SQL, with the triggers off."""
    execution = states.queued(gate)
    now = clock.now()
    over = {"status": "succeeded", "claimed_at": now, "finished_at": now}
    worlds.rewrite(Execution, execution.pk, **over)
    assert (watch.sweep_alarms(), watch.sweep_alarms()) == (1, 0)
    assert raised() == [("without_grant", execution.pk, 1)]


def test_a_success_is_recorded_under_a_grant_that_is_not_spent(gate: Gate) -> None:
    execution = states.claimed(gate)
    worlds.rewrite(Grant, execution.grant_id, status="revoked")
    execution.refresh_from_db()
    executions.record_outcome(
        execution_id=execution.pk,
        fence=execution.fence,
        outcome=executors.build_success({"done": 1}),
        actor=claims.EXECUTOR_ACTOR,
    )
    assert raised() == [("without_grant", execution.pk, 1)]


def test_a_service_knows_an_effect_that_was_refused(gate: Gate) -> None:
    execution = ended(states.queued(gate, "pay_queryable"))
    run.run_execution(execution.pk)
    worlds.plain(_call(execution))
    past = clock.now() - timedelta(minutes=2)
    Execution.objects.filter(pk=execution.pk).update(finished_at=past)
    assert reconcile.list_due_audits() == [execution.pk]
    assert (audit_all(), audit_all()) == (1, 0)
    assert [kind for kind, _, _ in raised()] == ["never_executed", "without_grant"]
    execution.refresh_from_db()
    assert execution.status == "refused"


def test_what_a_service_says_unclearly_is_asked_again(gate: Gate) -> None:
    """After as long again each time, until it says something clear."""
    execution = ended(states.queued(gate, "pay_queryable"))
    run.run_execution(execution.pk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(worlds.LEDGER, "/nowhere/ledger")
        for minutes in (1, 3, 10):
            _over_since(execution, timedelta(minutes=minutes))
            assert (reconcile.list_due_audits(), audit_all()) == ([execution.pk], 0)
            assert reconcile.list_due_audits() == []
            assert _asked_again(execution) == minutes
    worlds.plain(_call(execution))
    _over_since(execution, timedelta(minutes=20))
    assert audit_all() == 1
    assert ("without_grant", execution.pk, 1) in raised()
    execution.refresh_from_db()
    assert (execution.ask_at, reconcile.list_due_audits()) == (None, [])


def test_a_service_that_knows_nothing_is_asked_once(gate: Gate) -> None:
    execution = ended(states.queued(gate, "pay_queryable"))
    run.run_execution(execution.pk)
    past = clock.now() - timedelta(minutes=2)
    Execution.objects.filter(pk=execution.pk).update(finished_at=past)
    assert audit_all() == 0
    assert reconcile.list_due_audits() == []
    assert [kind for kind, _, _ in raised()] == ["never_executed"]


def audit_all() -> int:
    """The sweep, and all whom it names; how many were found."""
    return [
        reconcile.audit_execution(one) for one in reconcile.list_due_audits()
    ].count(True)


def _over_since(execution: Execution, age: timedelta) -> None:
    now = clock.now()
    Execution.objects.filter(pk=execution.pk).update(finished_at=now - age)
    Execution.objects.filter(pk=execution.pk, ask_at__isnull=False).update(ask_at=now)


def _asked_again(execution: Execution) -> int:
    """In how many minutes."""
    execution.refresh_from_db()
    assert execution.ask_at is not None
    assert execution.audited_at is not None
    return round((execution.ask_at - execution.audited_at).total_seconds() / 60)


def _call(execution: Execution) -> Any:
    row = Execution.objects.select_related("grant__revision__tool").get(pk=execution.pk)
    return claims.build_look_up_call(row)


# Executed with other content.


@pytest.mark.parametrize("said", ["sha256:" + "0" * 64, "<b>anything</b>"])
def test_an_outcome_of_another_action(gate: Gate, said: str) -> None:
    execution = redeemed(letter(gate))
    with pytest.raises(errors.Conflict):
        report(execution, action_hash=said)
    assert raised() == [("other_bytes", execution.pk, 1)]
    assert the_alarm().data["granted_hash"] == execution.grant.action_hash
    assert factories.count_of("<b>anything") == 0
    execution.refresh_from_db()
    assert execution.status == "claimed"
    report(execution)  # the right one still counts
    execution.refresh_from_db()
    assert execution.status == "succeeded"


def test_stored_bytes_that_changed_never_run(gate: Gate) -> None:
    execution = states.queued(gate)
    _forge(execution)
    assert watch.sweep_alarms() == 1
    run.run_execution(execution.pk)
    found = {(kind, times) for kind, _, times in raised()}
    assert found == {("other_bytes", 2), ("never_executed", 1)}
    assert worlds.effects() == []


def test_bytes_that_change_during_the_effect(gate: Gate) -> None:
    execution = states.claimed(gate)
    _forge(execution)
    executions.record_outcome(
        execution_id=execution.pk,
        fence=1,
        outcome=executors.build_success({"done": 1}),
        actor=claims.EXECUTOR_ACTOR,
    )
    assert raised() == [("other_bytes", execution.pk, 1)]


def _forge(execution: Execution) -> None:
    revision = Revision.objects.get(pk=execution.grant.revision_id)
    other = bytes(revision.canonical).replace(b"40.00", b"41.00")
    worlds.rewrite(Revision, revision.pk, canonical=other)


# Executed more than once.


def test_a_second_success_with_another_result(gate: Gate) -> None:
    execution = redeemed(letter(gate))
    report(execution)
    too_late(execution, result={"sent": 2})
    assert raised() == [("twice", execution.pk, 1)]


def test_two_attempts_that_both_say_they_did_it(gate: Gate) -> None:
    execution = redeemed(letter(gate))
    factories.lapsed(execution)
    execution = redeemed(execution)
    too_late(execution, fence=1, result={"sent": "first"})
    assert [kind for kind, _, _ in raised()] == ["late_report"]
    report(execution, result={"sent": "second"})
    assert [kind for kind, _, _ in raised()] == ["late_report", "twice"]


def test_a_provider_that_honours_the_key_answers_twice_for_one(gate: Gate) -> None:
    execution = redeemed(letter(gate))
    factories.lapsed(execution)
    execution = redeemed(execution)
    report(execution)
    too_late(execution, fence=1)
    assert [kind for kind, _, _ in raised()] == ["late_report"]


def test_a_service_that_counts_two(gate: Gate) -> None:
    execution = states.claimed(gate, "pay_queryable")
    worlds.plain(_call(execution))
    worlds.plain(_call(execution))
    factories.lapsed(execution)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.looked_up) == ("succeeded", True)
    assert raised() == [("twice", execution.pk, 1)]
    assert the_alarm().data["count"] == 2


# Reported late.


def unknown_letter(gate: Gate) -> Execution:
    """Redeemed, and then nobody heard of it again."""
    execution = ended(redeemed(letter(gate)))
    factories.lapsed(execution)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == "unknown"
    return execution


def test_evidence_for_the_unknown_settles_nothing(gate: Gate) -> None:
    execution = unknown_letter(gate)
    too_late(execution, result={"mail": "casey@example.org"})
    execution.refresh_from_db()
    assert execution.status == "unknown"
    assert raised() == [("late_report", execution.pk, 1)]
    (said,) = retry.list_late_reports(execution)
    assert (said.claim, said.same_attempt, said.same_bytes) == (
        "It happened",
        True,
        True,
    )
    assert factories.count_of("casey@example.org") == 0
    assert LogRecord.objects.filter(kind="execution.reported_late").count() == 1


def test_a_stale_attempt_is_heard(gate: Gate) -> None:
    execution = redeemed(letter(gate))
    factories.lapsed(execution)
    execution = redeemed(execution)
    too_late(execution, "failed", fence=1)
    assert raised() == [("late_report", execution.pk, 1)]
    report(execution)
    execution.refresh_from_db()
    assert execution.status == "succeeded"


@pytest.mark.parametrize("late", [factories.lapsed, ended])
def test_what_comes_late_and_still_counts(
    gate: Gate, late: Callable[[Execution], Any]
) -> None:
    execution = redeemed(letter(gate))
    late(execution)
    report(execution)
    execution.refresh_from_db()
    assert execution.status == "succeeded"
    assert raised() == [("late_report", execution.pk, 1)]
    (said,) = retry.list_late_reports(execution)
    assert (said.counted, said.recorded) == (True, "it was under way")


def test_whoever_asks_again_whether_they_were_heard_tells_nothing_new(
    gate: Gate,
) -> None:
    execution = redeemed(letter(gate))
    report(execution)
    for _ in range(3):
        report(execution)
    unsure = redeemed(letter(gate, "unsure"))
    for _ in range(2):
        report(unsure, "unknown")
    assert not LateReport.objects.exists()
    assert raised() == []


def test_a_report_is_kept_once_and_no_flood_of_them(gate: Gate) -> None:
    execution = unknown_letter(gate)
    for _ in range(3):
        too_late(execution)
    assert LateReport.objects.count() == 1
    for number in range(MAX_KEPT_REPORTS + 5):
        too_late(execution, result={"sent": number})
    assert LateReport.objects.count() == MAX_KEPT_REPORTS
    assert len(raised()) == 1


def test_what_a_lost_worker_did_is_compared_when_nobody_finds_it(gate: Gate) -> None:
    """It says done, and the next attempt is refused for good."""
    execution = states.claimed(gate)
    factories.lapsed(execution)
    claims.claim_execution(execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR)
    executions.record_late_report(
        execution_id=execution.pk,
        fence=1,
        action_hash=execution.grant.action_hash,
        outcome=executors.build_success({"done": 1}),
        actor=claims.EXECUTOR_ACTOR,
    )
    assert watch.sweep_alarms() == 0
    executions.record_outcome(
        execution_id=execution.pk,
        fence=2,
        outcome=executors.build_failure("declined", ""),
        actor=claims.EXECUTOR_ACTOR,
    )
    assert (watch.sweep_alarms(), watch.sweep_alarms()) == (1, 0)
    assert raised() == [("late_report", execution.pk, 1)]


def test_a_late_report_never_changes(gate: Gate) -> None:
    execution = unknown_letter(gate)
    too_late(execution)
    with pytest.raises(Exception, match="rows never change"):
        LateReport.objects.update(status="failed")


# What people do with them.


def test_raised_again_while_it_stands_it_is_counted(gate: Gate) -> None:
    execution = states.queued(gate)
    for _ in range(3):
        standing.raise_execution_alarm(execution, AlarmKind.TWICE, clock.now())
    assert raised() == [("twice", execution.pk, 3)]
    assert LogRecord.objects.filter(kind="alarm.repeated").count() == 2
    standing.close_alarm(alarm_id=the_alarm().pk, person=gate.sue, note="reversed one")
    standing.raise_execution_alarm(execution, AlarmKind.TWICE, clock.now())
    assert [times for _, _, times in raised()] == [3, 1]


def test_a_grave_one_never_closes_itself(gate: Gate) -> None:
    execution = states.queued(gate)
    standing.raise_execution_alarm(execution, AlarmKind.TWICE, clock.now())
    subject = execution.pk
    with pytest.raises(Exception, match="alarm_grave_by_person"):
        standing.close_resolved_alarm(
            AlarmKind.TWICE, subject=subject, now=clock.now(), code="executed"
        )


@pytest.mark.parametrize("name", ["rita", "adam", "otto", "owen"])
def test_only_supervisors_answer(gate: Gate, name: str) -> None:
    alarm = states.open_alarm(gate)
    with pytest.raises(errors.NotPermitted):
        standing.acknowledge_alarm(alarm_id=alarm.pk, person=gate.people[name])
    with pytest.raises(errors.NotPermitted):
        standing.close_alarm(alarm_id=alarm.pk, person=gate.people[name], note="mine")


def test_no_note_no_end(gate: Gate) -> None:
    alarm = states.open_alarm(gate)
    with pytest.raises(errors.ReasonMissing):
        standing.close_alarm(alarm_id=alarm.pk, person=gate.sue, note=" \n")


def test_the_note_is_in_the_log_for_those_with_its_salt(gate: Gate) -> None:
    states.closed_alarm(gate)
    record = LogRecord.objects.get(kind="alarm.closed")
    assert b"asked again" not in bytes(record.leaf)
    assert record.payload.values == {"note": "asked again"}


# Mail.


def told() -> list[str]:
    return sorted(one.to[0].partition("@")[0] for one in mail.outbox)


def test_supervisors_of_its_queue_hear_of_it_once(gate: Gate) -> None:
    execution = letter(gate)
    too_late(execution, fence=1)
    too_late(execution, fence=1, result={"sent": 2})
    OutboxMessage.objects.filter(topic="alarm.raised").update(done_at=None)
    drain("alarm.raised")
    OutboxMessage.objects.filter(topic="alarm.raised").update(done_at=None)
    drain("alarm.raised")
    assert told() == ["sam", "sue"]
    sent = mail.outbox[0]
    assert describe_alarm(AlarmKind.WITHOUT_GRANT).title in str(sent.subject)
    assert f"/alarms/{the_alarm().pk}/" in str(sent.body)
    assert "hello" not in str(sent.body)
    assert Notice.objects.filter(alarm=the_alarm()).count() == 2


def test_each_hears_of_it_as_they_chose(gate: Gate) -> None:
    chooses(gate.sue, email={Risk.HIGH: "digest"})
    chooses(gate.sam, email={Risk.HIGH: "never"})
    alarm = states.open_alarm(gate)
    drain("alarm.raised")
    assert told() == []
    time_comes()
    assert told() == ["sue"]
    assert describe_alarm(AlarmKind.NEVER_EXECUTED).title in str(mail.outbox[0].body)
    assert alarm.subject in str(mail.outbox[0].body)


def test_who_closed_it_in_time_spares_the_mail(gate: Gate) -> None:
    states.closed_alarm(gate)
    drain("alarm.raised")
    assert told() == []


def test_what_is_everybodys_is_told_to_every_supervisor(gate: Gate) -> None:
    now = clock.now()
    standing.raise_alarm(
        AlarmKind.RESTORED, subject="epoch-2", proposal=None, data={"n": 2}, now=now
    )
    drain("alarm.raised")
    assert told() == ["sam", "sue"]


# What it costs.


INDEXES = {
    "refused": "execution_refused",
    "stuck": "execution_queued",
    "waiting": "execution_queued",
    "ungranted": "grant_unspent",
    "queued": "execution_queued",
    "claimed": "execution_leased",
    "unknown": "execution_unknown",
    "denied": "late_report_age",
}
HISTORY = 4000


def test_the_sweep_walks_small_indexes_whatever_the_history(gate: Gate) -> None:
    """Among thousands of executions that are over, no table is read from end to end."""
    too_late(unknown_letter(gate))
    _history(states.succeeded(gate))
    now = clock.now()
    with connection.cursor() as cursor:  # a table of three rows is best read whole
        cursor.execute("SET LOCAL enable_seqscan = off")
    for _, name, search in watch.SEARCHES:
        plan = search(now).values("pk")[:100].explain()
        assert INDEXES[name] in plan, f"{name}\n{plan}"
        for table in (
            "execution",
            "grant",
            "approvalrequest",
            "revision",
            "latereport",
        ):
            assert f"Seq Scan on reviews_{table}" not in plan, f"{name}\n{plan}"


def _history(execution: Execution) -> None:
    """The same execution thousands of times, long ago: rows by SQL, as a bench may."""
    execution.refresh_from_db()
    ago = "now() - g.n * interval '1 hour'"
    like: dict[Any, Any] = {
        Grant: execution.grant_id,
        Execution: execution.pk,
        LateReport: LateReport.objects.get().pk,
    }
    other: dict[Any, dict[str, str]] = {
        Grant: {"id": "'g-' || g.n", "revision_id": "-g.n", "expires_at": ago},
        Execution: {
            "id": "'x-' || g.n",
            "grant_id": "'g-' || g.n",
            "idempotency_key": "'k-' || g.n",
            "finished_at": ago,
        },
        LateReport: {"id": "1000 + g.n", "at": ago},
    }
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for model, changed in other.items():
            names = [field.column for field in model._meta.local_fields]
            values = ", ".join(changed.get(name, f"r.{name}") for name in names)
            table = model._meta.db_table
            cursor.execute(
                f"INSERT INTO {table} ({', '.join(names)}) SELECT {values}"
                f" FROM {table} r, generate_series(1, {HISTORY}) AS g (n)"
                " WHERE r.id = %s",
                [like[model]],
            )
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute("ANALYZE reviews_grant, reviews_execution, reviews_latereport")


# None where nothing is wrong.

POINTS = (
    "claim_uncommitted",
    "after_claim",
    "before_effect",
    "after_effect",
    "before_record",
    "record_uncommitted",
    "after_record",
)


@pytest.mark.proof
def test_a_clean_run_raises_nothing(
    gate: Gate,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """All classes, two of three broken off at one of seven points, and recovered."""
    armed = tmp_path / "armed"
    armed.mkdir()
    monkeypatch.setattr(failpoints, "ARMED", str(armed))
    n, broken = proof_n(small=14, full=600), 0
    tools = ("pay", "pay_queryable", "pay_opaque", "write")
    for number in range(n):
        tool = tools[number % 4]
        if tool == "write":
            _by_agent(gate, number)
        else:
            broken += _by_worker(gate, tool, number, armed)
    watch.sweep_alarms()
    audit_all()
    assert raised() == []
    assert not LateReport.objects.exists()
    record_proof(
        "alarms",
        f"{n:,} executions of all classes, {broken:,} broken off at 7 points:"
        f" 0 false alarms (bound {3 / n:.4f})",
    )


def _by_agent(gate: Gate, number: int) -> None:
    execution = redeemed(letter(gate, f"n-{number}"))
    if number % 3 == 0:
        factories.lapsed(execution)
        execution = redeemed(execution)
    report(execution, ("succeeded", "failed", "unknown")[number % 3])


def _by_worker(gate: Gate, tool: str, number: int, armed: Any) -> bool:
    request = propose(
        gate.agent, tool, customer=f"C-{number}", thread=f"t-{number}"
    ).request
    decide(request, gate.rita)
    execution = Execution.objects.get(proposal=request.proposal_id)
    breaks = number % 3 > 0
    if breaks:
        flag = armed / f"{POINTS[number % 7]}@{execution.pk}"
        flag.write_text("raise")
        with pytest.raises(failpoints.InjectedFault):
            run.run_execution(execution.pk)
        execution.refresh_from_db()
        if execution.status == "claimed":
            factories.lapsed(execution)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status in {"succeeded", "unknown"}
    return breaks


# Approved, and not taken up.


def waits(execution: Execution, *, since: timedelta, window: timedelta) -> Execution:
    """It has been due for so long, of a window of so long."""
    due = clock.now() - since
    Execution.objects.filter(pk=execution.pk).update(due_at=due)
    worlds.rewrite(Grant, execution.grant_id, expires_at=due + window)
    return execution


@pytest.mark.parametrize(
    ("minutes", "window", "late"),
    [(4, 10, False), (6, 10, True), (14, 600, False), (16, 600, True)],
)
def test_what_nobody_takes_up_is_an_alarm_in_time(
    gate: Gate, minutes: int, window: int, late: bool
) -> None:
    execution = waits(
        letter(gate),
        since=timedelta(minutes=minutes),
        window=timedelta(minutes=window),
    )
    watch.sweep_alarms()
    assert raised() == ([("not_taken_up", execution.pk, 1)] if late else [])


def test_it_closes_when_the_agent_takes_it_up(gate: Gate) -> None:
    execution = waits(
        letter(gate), since=timedelta(minutes=20), window=timedelta(hours=8)
    )
    watch.sweep_alarms()
    assert watch.sweep_alarms() == 0
    redeemed(execution)
    assert watch.sweep_alarms() == 1
    alarm = the_alarm()
    assert (alarm.kind, alarm.status) == ("not_taken_up", "closed")
    closed = LogRecord.objects.get(kind="alarm.closed")
    assert closed.data["because"] == "taken_up"


def test_what_a_pause_holds_back_is_no_alarm(gate: Gate) -> None:
    waits(letter(gate), since=timedelta(minutes=20), window=timedelta(hours=8))
    stops.create_stop(
        scope=Scope.TOOL, key="write", mode=StopMode.PAUSED, person=gate.sue, reason="-"
    )
    watch.sweep_alarms()
    assert raised() == []


BREAK_ALARMS_ABOUT = """
CREATE FUNCTION test_break() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.subject = '{}' THEN RAISE EXCEPTION 'no alarm about this'; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER test_break BEFORE INSERT ON reviews_alarm
FOR EACH ROW EXECUTE FUNCTION test_break();
"""


@pytest.mark.django_db(transaction=True)
def test_an_alarm_that_cannot_be_raised_keeps_no_other_back(gate: Gate) -> None:
    first, second = sorted(
        (ended(letter(gate, text)) for text in ("one", "two")), key=lambda one: one.pk
    )
    with connection.cursor() as cursor:
        cursor.execute(BREAK_ALARMS_ABOUT.format(first.pk))
    try:
        with capture_logs() as logged:
            watch.sweep_alarms()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION test_break CASCADE")
    assert {subject for _, subject, _ in raised()} == {second.pk}
    assert first.pk in {one.get("row") for one in logged}
