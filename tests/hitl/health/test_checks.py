"""The checks that the doctor and the health page share: each finds its fault."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError
from pytest_django import Settings

from hitl.celery import SWEEPS
from hitl.doctor import Finding
from hitl.health import checks
from journal import heartbeats
from policies.models import PolicyVersion
from reviews import standstills
from tests.conftest import Gate

Check = Any


def find(check: Check) -> Finding:
    (finding,) = check()
    assert isinstance(finding, Finding)
    assert (finding.level == "ok") == (not finding.repair)
    return finding


def change(settings: Settings, **values: Any) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=values)


def test_a_gate_that_works_is_ok(gate: Gate) -> None:
    for name in (*SWEEPS, standstills.PULSE_TASK, *standstills.EFFECT_TASKS):
        heartbeats.record_heartbeat(name)
    assert [find(check).level for check in checks.DATABASE_CHECKS] == ["ok"] * 6
    assert find(checks.check_policy).text.startswith(f"version {gate.policy.number} ")
    for check in (checks.check_state, checks.check_free_space, checks.check_broker):
        assert find(check).level == "ok"


def test_a_gate_without_policy_and_workers(db: None) -> None:
    assert not PolicyVersion.objects.exists()
    assert find(checks.check_policy).repair == "counterseal setup-link"
    finding = find(checks.check_workers)
    assert (finding.level, finding.text) == ("wrong", "none runs")


def test_a_late_sweep_is_named_unless_it_is_seldom_due(db: None) -> None:
    quickest, *others = sorted(SWEEPS, key=lambda name: SWEEPS[name])
    often = [name for name in others if 3 * SWEEPS[name] <= 40]
    for name in (*often, standstills.PULSE_TASK, *standstills.EFFECT_TASKS):
        heartbeats.record_heartbeat(name)
    assert find(checks.check_workers).text == f"late: {quickest}"
    heartbeats.record_heartbeat(quickest)
    assert find(checks.check_workers).level == "ok"


def test_a_broker_that_is_away(settings: Settings) -> None:
    change(settings, redis_url="redis://127.0.0.1:9/0", deployment="production")
    finding = find(checks.check_broker)
    assert (finding.level, finding.repair) == (
        "wrong",
        'redis-cli -u "$REDIS_URL" ping',
    )


def test_a_state_that_cannot_be_written(settings: Settings, tmp_path: Path) -> None:
    change(settings, state=tmp_path / "it's gone")
    finding = find(checks.check_state)
    assert finding.text.startswith("STATE cannot be written")
    assert finding.repair.endswith("""'"'"'s gone'""")


@pytest.fixture
def mail_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_mail_answers_or_not(settings: Settings, mail_port: int) -> None:
    change(settings, mail_url="", deployment="production")
    assert find(checks.check_mail).repair.startswith("export MAIL_URL=")
    change(settings, mail_url="smtp://127.0.0.1")
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", mail_port
    assert find(checks.check_mail).level == "ok"
    settings.EMAIL_PORT = 9
    assert find(checks.check_mail).repair == "nc -vz 127.0.0.1 9"


def test_a_database_that_is_away_is_one_line(settings: Settings) -> None:
    change(settings, deployment="production")
    finding = checks.describe_lost_database(DatabaseError("could not connect\nmore"))
    assert (finding.level, "more" in finding.text) == ("wrong", False)
    assert finding.repair == 'psql "$DATABASE_URL" -c "SELECT 1"'


def test_sign_in_says_whether_a_provider_is_set_up_and_answers(
    settings: Settings,
) -> None:
    change(settings, base_url="http://localhost:8000")
    unused, page = checks.check_sign_in()
    assert (unused.level, unused.text.startswith("not set up")) == ("unused", True)
    assert page.text == "offers a password and a passkey"
    change(settings, oidc_issuer="http://127.0.0.1:1", oidc_name="Example ID")
    change(settings, base_url="http://127.0.0.1:8000")
    fault, page = checks.check_sign_in()
    assert fault.level == "wrong"
    assert fault.text.startswith("Example ID: http://127.0.0.1:1 does not answer")
    assert fault.repair.startswith("curl ")
    assert page.text == "offers “Sign in with Example ID” and a password"
