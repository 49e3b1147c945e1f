"""Thirty days of the store, in an empty database: complete, true and over."""

from __future__ import annotations

import sqlite3
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import Max, Min

from agents.models import Agent, Thread
from demo.history.writer import write_history
from demo.seed import seed
from desk.agents.figures import select_last_use
from journal import clock, verification
from journal.models import LogPosition, LogRecord, OutboxMessage
from policies.models import Person, PolicyVersion
from reviews import deadlines
from reviews.alarms import watch
from reviews.choices import (
    AlarmStatus,
    ExecutionStatus,
    GrantStatus,
    RequestStatus,
    Verdict,
)
from reviews.models import (
    Alarm,
    ApprovalRequest,
    Canary,
    Decision,
    Execution,
    Grant,
    MetricDay,
    Notice,
    Proposal,
)
from tests.policies import store

pytestmark = pytest.mark.django_db(transaction=True)
STORE = "http://127.0.0.1:8010"


@pytest.fixture
def state(tmp_path: Path, settings: Any) -> Path:
    """The folder of an installation that never ran."""
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update={"state": tmp_path})
    return tmp_path


def test_a_month_is_written_once_and_is_over(state: Path, settings: Any) -> None:
    before, began = settings.COUNTERSEAL, clock.now()
    assert write_history(store_url=STORE)
    assert settings.COUNTERSEAL is before
    _check_people_and_agents()
    _check_requests()
    _check_effects(state)
    _check_policies()
    _check_log()
    _check_times(began)
    _check_nothing_waits()
    count = LogRecord.objects.count()
    assert not write_history(store_url=STORE)
    assert LogRecord.objects.count() == count
    _check_the_demo_begins(state, count)


def _check_people_and_agents() -> None:
    votes = Counter(Decision.objects.values_list("reviewer__username", flat=True))
    assert {name for name, n in votes.items() if n > 1} == {"rita", "tom", "sue", "sam"}
    assert set(Agent.objects.values_list("slug", flat=True)) == {"riley", "harper"}
    assert None not in Agent.objects.values_list(select_last_use(), flat=True)
    assert not Thread.objects.filter(finished_at=None).exists()
    assert dict(Canary.objects.values_list("reviewer__username", "caught")) == {
        "rita": False,
        "tom": True,
    }
    alarm = Alarm.objects.get()
    assert (alarm.status, alarm.kind) == (AlarmStatus.CLOSED, "never_executed")


def _check_requests() -> None:
    ends = Counter(ApprovalRequest.objects.values_list("status", flat=True))
    assert sum(ends.values()) >= 60
    assert ends[RequestStatus.AUTHORIZED] >= 40
    assert ends[RequestStatus.REJECTED] >= 10
    assert ends[RequestStatus.EXPIRED] >= 2
    verdicts = Counter(Decision.objects.values_list("verdict", flat=True))
    assert verdicts[Verdict.MODIFY] == 2
    assert verdicts[Verdict.ESCALATE] == 1
    reasons = Decision.objects.filter(verdict=Verdict.REJECT)
    assert len(set(reasons.values_list("reason_code", flat=True))) >= 6
    of_harper = Proposal.objects.filter(agent="harper")
    rejected = of_harper.filter(request__status=RequestStatus.REJECTED).count()
    assert rejected > of_harper.count() / 3


def _check_effects(state: Path) -> None:
    """Each refund that succeeded is in the store's ledger, once and at its time."""
    done = Execution.objects.filter(
        status=ExecutionStatus.SUCCEEDED, proposal__tool_name="process_refund"
    )
    with sqlite3.connect(state / "store.sqlite3") as db:
        ledger = dict(db.execute("SELECT key, at FROM refund").fetchall())
    assert ledger == {
        row.idempotency_key: f"{row.began_at:%Y-%m-%dT%H:%M:%SZ}" for row in done
    }
    unknown = Execution.objects.get(status=ExecutionStatus.UNKNOWN)
    assert unknown.proposal.agent == "harper"
    settled = Execution.objects.get(code="settled_by_person")
    assert settled.status == ExecutionStatus.SUCCEEDED


def _check_policies() -> None:
    versions = PolicyVersion.objects.order_by("number")
    assert [row.status for row in versions] == ["retired", "retired", "active"]
    assert all(row.author_id != row.activated_by_id for row in versions)
    assert "issue_store_credit" not in store.load_active_policy().document["tools"]
    assert "demo.history" not in str(store.load_active_policy().document)


def _check_log() -> None:
    result = verification.verify_log()
    assert not result.faults
    assert LogPosition.objects.count() == LogRecord.objects.count() > 700
    ats = list(LogRecord.objects.order_by("position__seq").values_list("at", flat=True))
    assert ats == sorted(ats), "the clock of the history never goes back"


def _check_times(began: Any) -> None:
    """Nothing of the history has the time of its writing, and nothing of the shift is
    left."""
    first = began - timedelta(days=30)
    for model, column in (
        (LogRecord, "at"),
        (OutboxMessage, "created_at"),
        (PolicyVersion, "created_at"),
        (Agent, "created_at"),
        (Person, "date_joined"),
        (Decision, "at"),
        (Grant, "issued_at"),
        (Notice, "at"),
    ):
        span = model._default_manager.aggregate(low=Min(column), high=Max(column))
        assert first <= span["low"] <= span["high"] < began, model
    assert MetricDay.objects.filter(computed_at__gt=began).count() == 31
    assert clock.now() - began < timedelta(hours=1)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'history'")
        assert cursor.fetchone() == (0,)
        cursor.execute(
            "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'history%%'"
            " UNION ALL SELECT strpos(current_setting('search_path'), 'history')"
        )
        assert cursor.fetchall() == [(0,), (0,)]


def _check_nothing_waits() -> None:
    """No worker finds anything of the history to do."""
    assert not OutboxMessage.objects.filter(done_at=None).exists()
    assert not Notice.objects.filter(sent_at=None, let_go="").exists()
    assert not ApprovalRequest.with_canaries.filter(
        status__in=[RequestStatus.PENDING, RequestStatus.RECALLABLE]
    ).exists()
    assert not Grant.objects.filter(status=GrantStatus.LIVE).exists()
    assert not deadlines.list_lapsed_executions()
    assert not deadlines.list_overdue_executions(quiet=timedelta(0))
    assert deadlines.enqueue_reminders() == watch.sweep_alarms() == 0


def _check_the_demo_begins(state: Path, count: int) -> None:
    """The demo finds its people, its policy and Riley, and adds what it hands out."""
    seed(state=state, base_url="http://127.0.0.1:8000", store_url=STORE)
    assert PolicyVersion.objects.count() == 3
    assert Person.objects.count() == 8
    added = LogRecord.objects.order_by("pk")[count:].values_list("kind", flat=True)
    assert "policy.activated" not in added
    assert "agent.registered" not in added


def test_a_database_with_people_is_left_alone(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed(state=state, base_url="http://127.0.0.1:8000", store_url=STORE)
    count = LogRecord.objects.count()
    call_command("write_demo_history")
    assert "nothing is done" in capsys.readouterr().out
    assert LogRecord.objects.count() == count
    assert not Proposal.objects.exists()
