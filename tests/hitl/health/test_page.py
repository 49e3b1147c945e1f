"""The health page: problems with their repair first, within its time, and no secret."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Event

import pytest
import redis
from django.conf import settings as django_settings
from django.db import connection
from pytest_django import Settings

from hitl.doctor import Finding
from hitl.environment import Counterseal
from hitl.health import page
from hitl.health.page import Area, Check
from journal import clock
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.desk.conftest import as_ as as_


def run(*checks: Check, seconds: float = 1.0) -> list[Finding]:
    rows = page.run_areas([Area("Some", checks)], time.monotonic() + seconds)
    return [row.finding for row in rows]


def say_ok() -> list[Finding]:
    return [Finding("Fine", "ok", "runs")]


def test_what_is_not_set_up_is_no_finding_in_order(gate: Gate) -> None:
    built = page.build_health_page(gate.alma, clock.now())
    rows = [row for area in built.areas for row in area.rows]
    unused = [row for row in rows if row.finding.level == "unused"]
    assert {"Channel Slack", "Single sign-on"} <= {r.finding.subject for r in unused}
    assert {row.icon for row in unused} == {"void"}
    assert built.well == len(rows) - len(unused)


def test_it_names_what_is_wrong_and_how_to_repair_it(gate: Gate, as_: SignIn) -> None:
    text = as_("alma").get("/health/").content.decode()
    problems, rest = text.split('data-testid="area"', 1)
    assert "none runs" in problems
    assert "counterseal up" in problems
    assert "is of this release" in rest
    assert "Settings in force" in rest
    for name, field in Counterseal.model_fields.items():
        value = getattr(django_settings.COUNTERSEAL, name)
        if not field.repr and isinstance(value, str) and value:
            assert value not in text, name
    part = as_("otto", **HTMX).get("/health/").content.decode()
    assert "none runs" in part
    assert "Settings in force" not in part


def test_the_page_fits_without_a_broker(
    gate: Gate, as_: SignIn, settings: Settings
) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"redis_url": "redis://127.0.0.1:1/0"}
    )
    text = as_("alma").get("/health/").content.decode()
    assert "cannot be asked (ConnectionError)" in text
    assert "REDIS_URL: the broker does not answer" in text


def test_what_no_command_repairs_is_a_sentence(
    gate: Gate, as_: SignIn, settings: Settings
) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"redis_url": "redis://127.0.0.1:1/0?ssl_ca_certs=/none.pem"}
    )
    text = as_("alma").get("/health/").content.decode()
    assert "Put a valid certificate into /none.pem." in text
    assert '<code translate="no">Put' not in text
    assert "counterseal up</code>" in text


@pytest.mark.django_db
def test_what_hangs_is_said_and_holds_one_thread() -> None:
    answered, runs = Event(), list[int]()

    def hang() -> Iterator[Finding]:
        runs.append(1)
        answered.wait(30)
        yield Finding("Slow", "ok", "runs")

    slow = Check("Slow", hang, is_slow=True)
    try:
        for _ in range(2):
            late, fine = run(slow, Check("Fine", say_ok), seconds=0.3)
            assert (late.level, late.text) == ("warn", "did not answer within 2 s")
            assert fine.level == "ok"
    finally:
        answered.set()
    assert run(slow, seconds=10)[0].level == "ok"
    assert len(runs) == 1


@pytest.mark.django_db
def test_a_check_that_fails_is_a_finding() -> None:
    def fail() -> list[Finding]:
        raise redis.ConnectionError

    assert run(Check("Broker", fail, is_slow=True))[0].repair == "counterseal doctor"
    (late,) = run(Check("Fine", say_ok), seconds=-1)
    assert late.text == "was not asked within 2 s"


@pytest.mark.django_db(transaction=True)
def test_a_long_statement_is_ended_and_the_session_is_as_before() -> None:
    def read(sql: str) -> str:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return str(cursor.fetchone()[0])

    def sleep() -> list[Finding]:
        return [Finding("Long", "ok", read("SELECT pg_sleep(20)"))]

    before = read("SHOW statement_timeout")
    found, fine = run(Check("Long", sleep), Check("Fine", say_ok), seconds=10)
    assert "statement timeout" in found.text
    assert fine.level == "ok"
    assert read("SHOW statement_timeout") == before
