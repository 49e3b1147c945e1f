"""What an operator gets in production: everything on, and a loud stop for what is
missing. Each test is a process of its own, with nothing of ours in its environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.guards import ROOT
from tests.hitl.test_environment import WHOLE

PRINTED = [
    "DEBUG",
    "ALLOWED_HOSTS",
    "SECURE_SSL_REDIRECT",
    "SECURE_HSTS_SECONDS",
    "SESSION_COOKIE_NAME",
    "SESSION_COOKIE_SECURE",
    "SESSION_COOKIE_HTTPONLY",
    "CSRF_COOKIE_NAME",
    "CSRF_COOKIE_SECURE",
    "CSRF_TRUSTED_ORIGINS",
    "ATOMIC_REQUESTS",
    "INSTALLED_APPS",
    "AUTH_PASSWORD_VALIDATORS",
    "EMAIL_BACKEND",
]
SETTINGS = (
    "import json, os; os.environ['DJANGO_SETTINGS_MODULE'] = 'hitl.settings';"
    "from django.conf import settings as s;"
    f"print(json.dumps({{n: getattr(s, n, None) for n in {PRINTED}}}, default=str))"
)


def run(*argv: str, state: Path, **environ: str | None) -> Any:
    given = {"PATH": os.environ["PATH"], "STATE": str(state), **WHOLE, **environ}
    return subprocess.run(
        [sys.executable, *argv],
        cwd=ROOT,
        env={name: text for name, text in given.items() if text is not None},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def settings(state: Path, **environ: str | None) -> dict[str, Any]:
    done = run("-c", SETTINGS, state=state, **environ)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_deployment_check_finds_nothing(tmp_path: Path) -> None:
    check = ("manage.py", "check", "--deploy", "--fail-level", "WARNING")
    done = run("-W", "error", *check, state=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


def test_production_has_everything_on(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert found["DEBUG"] is False
    assert found["ALLOWED_HOSTS"] == ["gate.example.com"]
    assert found["CSRF_TRUSTED_ORIGINS"] == ["https://gate.example.com"]
    assert found["SECURE_SSL_REDIRECT"] is True
    assert found["SECURE_HSTS_SECONDS"] >= 365 * 24 * 60 * 60
    assert found["SESSION_COOKIE_NAME"] == "__Host-session"
    assert found["CSRF_COOKIE_NAME"] == "__Host-csrf"
    assert found["SESSION_COOKIE_SECURE"]
    assert found["CSRF_COOKIE_SECURE"]
    assert found["SESSION_COOKIE_HTTPONLY"]
    assert not any(name.startswith("demo") for name in found["INSTALLED_APPS"])
    lengths = [v.get("OPTIONS", {}) for v in found["AUTH_PASSWORD_VALIDATORS"]]
    assert {"min_length": 12} in lengths


def test_nothing_said_is_production(tmp_path: Path) -> None:
    assert settings(tmp_path, DEPLOYMENT=None)["ALLOWED_HOSTS"] == ["gate.example.com"]


@pytest.mark.parametrize("name", ["DEBUG", "DJANGO_DEBUG", "LOG_LEVEL"])
def test_no_variable_turns_debugging_on(tmp_path: Path, name: str) -> None:
    said = "DEBUG" if name == "LOG_LEVEL" else "1"
    assert settings(tmp_path, **{name: said})["DEBUG"] is False


def test_an_empty_environment_names_every_variable(tmp_path: Path) -> None:
    """The web server and the worker are started without manage.py."""
    done = run("-c", SETTINGS, state=tmp_path, **dict.fromkeys(WHOLE))
    assert done.returncode == 1
    named, _, rule = done.stderr.strip().splitlines()[-1].partition(": required in ")
    assert rule.startswith("production")
    for name in set(WHOLE) - {"DEPLOYMENT"}:
        assert re.search(rf"\b{name}\b", named), name


def test_one_missing_variable_is_one_line(tmp_path: Path) -> None:
    done = run("manage.py", "check", state=tmp_path, GRANT_KEY=None)
    assert done.returncode == 1
    assert done.stderr.startswith("counterseal: GRANT_KEY: required in production")
    assert len(done.stderr.splitlines()) == 1


def test_plain_http_elsewhere_has_plain_names_and_a_warning(tmp_path: Path) -> None:
    plain = "http://192.168.1.5:8000"
    found = settings(tmp_path, BASE_URL=plain)
    assert (found["SESSION_COOKIE_NAME"], found["CSRF_COOKIE_NAME"]) == (
        "session",
        "csrf",
    )
    done = run("manage.py", "check", state=tmp_path, BASE_URL=plain)
    assert "hitl.W1" in done.stderr
    assert "can be read in transit" in done.stderr


def test_no_error_output_shows_a_secret(tmp_path: Path) -> None:
    """Wrong in every way: the lines name the variables and never their values."""
    wrong = {name: f"{text}-secret" for name, text in WHOLE.items()}
    done = run("manage.py", "check", state=tmp_path, **wrong)
    assert done.returncode == 1
    shown = done.stdout + done.stderr
    for name, text in WHOLE.items():
        if name not in {"DEPLOYMENT", "BASE_URL"}:
            assert text not in shown, name


def test_keys_of_an_installation_are_the_owners_alone(tmp_path: Path) -> None:
    make = (
        "from pathlib import Path; from hitl.local import keys;"
        f"keys.ensure_keys(Path({str(tmp_path / 'keys')!r}))"
    )
    done = run("-c", make, state=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    for file in (tmp_path / "keys").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file.name
