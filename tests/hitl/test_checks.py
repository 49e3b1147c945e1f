from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from hitl import checks
from tests.guards import ROOT
from tests.hitl.test_environment import WHOLE


def test_the_shipped_ladder_holds() -> None:
    assert checks.check_timeout_order() == []
    assert [seconds for _, seconds in checks.list_timeouts()] == [10, 20, 30, 60, 120]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"http_timeout": 20}, ("HTTP_TIMEOUT", "SOFT_TIME_LIMIT")),
        ({"lease_seconds": 30}, ("TIME_LIMIT", "LEASE_SECONDS")),
        ({"lease_seconds": 120}, ("LEASE_SECONDS", "VISIBILITY_TIMEOUT")),
    ],
)
def test_two_rungs_of_the_wrong_order_are_an_error(
    settings: Settings, changes: dict[str, int], names: tuple[str, str]
) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changes)
    (error,) = checks.check_timeout_order()
    assert error.is_serious()
    assert all(name in error.msg for name in names)
    with pytest.raises(ImproperlyConfigured, match=names[0]):
        checks.run_startup_checks()


def test_what_celery_really_has_is_what_counts(settings: Settings) -> None:
    settings.CELERY_TASK_TIME_LIMIT = 61
    (error,) = checks.check_timeout_order()
    assert "TIME_LIMIT (61 s) must be less than LEASE_SECONDS (60 s)" in error.msg


def test_plain_http_elsewhere_is_a_warning(settings: Settings) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"base_url": "http://192.168.1.5:8000"}
    )
    (warning,) = checks.run_startup_checks()
    assert "can be read in transit" in warning.msg


def test_an_update_that_closes_a_network_to_letters_is_said(
    settings: Settings,
) -> None:
    tools = {"deployment": "production", "webhook_networks": ["10.0.0.0/8"]}
    before = settings.COUNTERSEAL.model_copy(update=tools)
    settings.COUNTERSEAL = before
    (warning,) = checks.check_callback_networks()
    assert "CALLBACK_NETWORKS is not set" in warning.msg
    settings.COUNTERSEAL = before.model_copy(update={"callback_networks": []})
    assert checks.check_callback_networks() == []


def manage(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """manage.py under production settings, as an operator runs it."""
    keep = {name: os.environ[name] for name in ("PATH", "STATE")}
    return subprocess.run(
        [sys.executable, "-W", "error", "manage.py", *args],
        cwd=ROOT,
        env={**keep, **WHOLE, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_check_deploy_is_clean_under_production_settings(tmp_path: Any) -> None:
    done = manage("check", "--deploy", "--fail-level", "WARNING", STATE=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


def test_a_wrong_environment_is_one_line_without_a_traceback() -> None:
    done = manage("check", DATA_KEY="x")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("counterseal: DATA_KEY: must be 32 random bytes")
