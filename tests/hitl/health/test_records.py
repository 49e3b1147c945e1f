"""What the database knows: connections, open transactions, channels, webhooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from pytest_django import Settings

from agents.models import Delivery, Endpoint
from hitl.doctor import Finding
from hitl.health import probes, records
from journal import clock
from journal.statements import Statement
from reviews.models import Notice
from tests import factories
from tests.conftest import Gate


def find(check: Callable[[], Iterable[Finding]], subject: str = "") -> Finding:
    (finding,) = (f for f in check() if subject in f.subject)
    assert (finding.level in {"ok", "unused"}) == (
        not (finding.repair or finding.advice)
    )
    return finding


def change(settings: Settings, **values: Any) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=values)


@pytest.mark.django_db
def test_what_readyz_finds_is_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "known", probes.HealthState())
    assert find(records.check_readiness).text == "answers ok"
    probes.known.disk = "the disk of STATE is full"
    found = find(records.check_readiness)
    assert found.text == "answers degraded; disk the disk of STATE is full"
    assert find(records.check_known_disks).level == "wrong"


@pytest.mark.django_db
@pytest.mark.parametrize(("used", "level"), [(79, "ok"), (80, "warn"), (95, "wrong")])
def test_few_connections_are_left(
    monkeypatch: pytest.MonkeyPatch, used: int, level: str
) -> None:
    monkeypatch.setattr(records, "_CONNECTIONS", Statement(f"SELECT {used}, 100"))
    found = find(records.check_connections)
    assert (found.level, found.text) == (level, f"{used} of 100 are in use")


@pytest.mark.django_db
def test_an_open_transaction_is_named_with_its_process(settings: Settings) -> None:
    parameters = connection.get_connection_params()
    names = ("host", "port", "dbname", "user", "password")
    given = {name: parameters[name] for name in names if parameters.get(name)}
    with psycopg.connect(**given, application_name="report<b>") as other:
        other.execute("SELECT pg_current_xact_id()")
        change(settings, standstill_seconds=0)
        found = find(records.check_transactions)
        pid = other.info.backend_pid
    assert found.text.endswith("(report?b?); it holds the log back")
    assert f"pg_terminate_backend({pid})" in found.repair


def test_a_channel_says_its_last_success_and_failure(gate: Gate) -> None:
    now = clock.now()
    request = factories.propose(gate.agent).request

    def add(kind: str, **more: Any) -> None:
        about = {"person": gate.rita, "request": request, "kind": kind}
        Notice.objects.create(**about, due_at=now, **{"at": now, **more})

    assert "message" in find(records.check_channels, "Mail").text
    hour = timedelta(hours=1)
    add("opened", at=now - 2 * hour, error="the server refused it", attempts=1)
    found = find(records.check_channels, "Mail")
    assert found.level == "warn"
    assert found.text == (
        "no success; last failure 2 h ago: the server refused it"
        " (1 tried again, 0 given up)"
    )
    Notice.objects.filter(error__gt="").update(let_go="undeliverable")
    add("freed", sent_at=now)
    found = find(records.check_channels, "Mail")
    assert found.level == "ok"
    assert "1 given up" in found.text
    slack = find(records.check_channels, "Slack")
    assert (slack.level, slack.text) == ("unused", "not set up")


def test_webhooks_that_fail_or_are_late_are_a_problem(gate: Gate) -> None:
    now = clock.now()
    endpoint = Endpoint.objects.create(
        agent=gate.agent, url="https://agent.example/", secret=b"-", created_at=now
    )

    def add(event: str, status: str, **more: Any) -> None:
        Delivery.objects.create(
            event=event,
            kind="proposal.settled",
            proposal="p-1",
            thread="t-1",
            endpoint=endpoint,
            url=endpoint.url,
            payload={},
            status="waiting",
            next_at=now,
            give_up_at=now,
            created_at=now,
        )
        if status != "waiting":
            Delivery.objects.filter(event=event).update(status=status, **more)

    assert find(records.check_webhooks).level == "ok"
    add("e-1", "dead", ended_at=now - timedelta(days=3))
    add("e-2", "waiting")
    assert find(records.check_webhooks).level == "ok"
    add("e-3", "held", ended_at=now)
    found = find(records.check_webhooks)
    assert found.text.endswith("1 dead and 1 held, 1 of them within 24 h")
    Delivery.objects.filter(event="e-3").delete()
    Delivery.objects.filter(event="e-2").update(created_at=now - timedelta(hours=1))
    assert "60 min" in find(records.check_webhooks).text


@pytest.mark.django_db
def test_the_versions_of_all_that_runs() -> None:
    rows = {finding.subject: finding.text for finding in records.check_versions()}
    assert rows.keys() >= {"Counterseal", "Python", "Django", "PostgreSQL"}
    assert "journal 0" in rows["Migrations"]
