"""A wrong or missing setting is one line that names the setting and what to do, in
every command of the table, before the command begins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from hitl import command_line, environment
from hitl.local import defaults
from tests.guards import ROOT
from tests.hitl.test_command_line import ENTRIES
from tests.hitl.test_environment import WHOLE

LOCAL = {"DEPLOYMENT": "local"}
# What is set, and how the line begins.
WRONG = [
    *[
        ({name: "x"}, f"DEPLOYMENT: must be set where {name} is")
        for name in defaults.SETTINGS_OF_PRODUCTION
    ],
    (
        {name: value for name, value in WHOLE.items() if name != "DEPLOYMENT"},
        "DEPLOYMENT: must be set where DATABASE_URL is",
    ),
    ({"DEPLOYMENT": "prod"}, "DEPLOYMENT: must be 'local' or"),
    ({"DEPLOYMENT": ""}, "DEPLOYMENT: must be 'local' or"),
    ({"DEPLOYMENT": "production"}, "BASE_URL, DATABASE_URL, REDIS_URL, SECRET_KEY"),
    ({**LOCAL, "STATE": "{file}"}, "STATE: keys cannot be written to {file}/keys"),
    ({**LOCAL, "STATE": "/proc/none"}, "STATE: keys cannot be written to /proc/none"),
    *[
        ({**settings, "PORT": port}, f"PORT: {said}")
        for port in ("eighty", "70000", "-1", "0", "8000.5", "¹")
        for settings, said in ((LOCAL, f"{port!r} is not a number"), (WHOLE, ""))
    ],
    *[
        ({**LOCAL, "STORE_PORT": port}, f"STORE_PORT: {port!r} is not a number")
        for port in ("x", "65536")
    ],
    *[
        ({**settings, name: value}, f"{name}: must ")
        for settings in (LOCAL, WHOLE)
        for name, values in {
            "BASE_URL": ("", "gate", "ftp://gate", "http://gate:99999", "http://g:x"),
            "DATABASE_URL": (
                "",
                "gate",
                "mysql://u:p@gate/name",
                "postgresql://u:secret@gate",
                "postgresql://u:secret@gate:x/name",
                "postgresql://u:secret@gate:99999/name",
            ),
            "REDIS_URL": ("", "gate:6379", "amqp://gate", "redis://:secret@gate:x/0"),
        }.items()
        for value in values
    ],
    ({**WHOLE, "DATABASE_URL": "postgresql://u:secr%et@g/n"}, "DATABASE_URL: is not"),
]


def isolate(patch: pytest.MonkeyPatch, settings: dict[str, str], tmp: Path) -> None:
    """An environment of these settings alone, and no file of keys but new ones."""
    file = tmp / "file"
    file.touch()
    given = {"STATE": str(tmp / "state"), **settings}
    for name in os.environ:
        if name not in {"PATH", "HOME", "DJANGO_SETTINGS_MODULE"}:
            patch.delenv(name)
    for name, value in given.items():
        patch.setenv(name, value.format(file=file))


@pytest.mark.parametrize(("words", "entry"), ENTRIES, ids=[w for w, _ in ENTRIES])
def test_every_command_says_it_in_one_line(
    words: str, entry: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The settings are read where Django starts; that a process begins there is shown
    below."""
    for settings, begins in WRONG:
        with pytest.MonkeyPatch.context() as patch:
            isolate(patch, settings, tmp_path)
            patch.setattr("django.setup", environment.read_environment)
            patch.setattr(command_line, "run_command", pytest.fail)
            with pytest.raises(SystemExit) as ended:
                command_line.main(words.split())
        assert ended.value.code == 1
        lines = capsys.readouterr().err.splitlines()
        if settings.get("DEPLOYMENT") == "local" and "wrote new keys" in lines[0]:
            lines.pop(0)  # settings are read afterwards
        (line,) = lines
        begins = begins.format(file=tmp_path / "file")
        assert line.startswith(f"counterseal: {begins}"), (settings, line)
        assert len(line) > len(f"counterseal: {begins}") + 10
        assert "secret" not in line


CLIENT = ("-m", "counterseal_client")
MISSING = "BASE_URL, DATABASE_URL, REDIS_URL, SECRET_KEY, DATA_KEY"
NO_GATE = "no gate runs in {state}: start it there with `counterseal up`"


@pytest.mark.parametrize(
    ("program", "settings", "begins"),
    [
        ((*CLIENT, "up"), {"PORT": "x"}, "PORT: 'x' is not a number"),
        ((*CLIENT, "serve"), {"DEPLOYMENT": "prod"}, "DEPLOYMENT: must be 'local'"),
        (("manage.py", "check"), {**WHOLE, "BASE_URL": "x"}, "BASE_URL: must be the"),
        (("manage.py", "check"), {"TAG_KEY": "x"}, "DEPLOYMENT: must be set where TAG"),
        ((*CLIENT, "up"), {"BASE_URL": "x"}, "DEPLOYMENT: must be set where BASE_URL"),
        ((*CLIENT, "serve"), {}, NO_GATE),
        ((*CLIENT, "worker"), {}, NO_GATE),
        ((*CLIENT, "beat"), {}, NO_GATE),
        (
            (*CLIENT, "keys", "rotate-grant", "publish"),
            {},
            "STATE: {state}/keys has no",
        ),
        (("-m", "hitl.web"), {}, MISSING),
        (("-m", "uvicorn", "hitl.asgi:application"), {}, MISSING),
        (("-m", "celery", "--app", "hitl.celery", "worker"), {}, MISSING),
        (
            (*CLIENT, "policy", "load", "--by", "adam", "--activate", "1"),
            {**WHOLE, "DATABASE_URL": "postgresql://u:secret@127.0.0.1:1/name"},
            "DATABASE_URL: the database does not answer (",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_process_says_it_in_one_line(
    program: tuple[str, ...], settings: dict[str, str], begins: str, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "STATE": str(state)}
    done = subprocess.run(
        [sys.executable, *program],
        cwd=ROOT,
        env={**environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'client'}", **settings},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"counterseal: {begins.format(state=state)}")
    assert "secret" not in line
    assert program[-1] == "up" or not (state / "keys").exists()


def test_only_a_gate_of_this_machine_writes_keys_and_says_where(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        isolate(patch, {}, tmp_path)
        command_line.prepare_environment(["check"])
        assert not (tmp_path / "state").exists()
        assert capsys.readouterr().err == ""
        for name in list(defaults.SETTINGS_OF_PRODUCTION):
            patch.delenv(name, raising=False)
        for said in (f"counterseal: wrote new keys to {tmp_path}/state/keys;", ""):
            patch.setenv("DEPLOYMENT", "local")
            command_line.prepare_environment(["check"])
            assert capsys.readouterr().err.startswith(said)
        assert capsys.readouterr().err == ""


def test_production_reads_no_keys_of_a_private_gate(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        isolate(patch, {"DEPLOYMENT": "local"}, tmp_path)
        defaults.fill_environment({"STATE": str(tmp_path / "state")})
        keys = tmp_path / "state" / "keys"
        whole = {name: text for name, text in WHOLE.items() if "_KEY" not in name}
        isolate(patch, whole, tmp_path)
        with pytest.raises(ImproperlyConfigured, match=r"SECRET_KEY.*private gate"):
            environment.read_environment(os.environ)
        (keys / environment.PRIVATE_MARK).unlink()
        assert not environment.read_environment(os.environ).local
