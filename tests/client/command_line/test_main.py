"""What holds for every command: errors are one line, and no secret is repeated."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from counterseal_client.command_line.main import build_parser, main
from tests.client.command_line.shell import COMMAND, Shell
from tests.client.gate import Fault, LoopbackGate
from tests.guards import ROOT


@pytest.fixture
def home_shell(home: Path) -> Shell:
    return Shell(home)


@pytest.mark.parametrize("command", ["init", "propose", "review", "wait"])
def test_each_command_explains_itself(command: str) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args([command, "--help"])
    assert ended.value.code == 0


def test_the_entry_point_is_the_module(home_shell: Shell) -> None:
    text = (ROOT / "client" / "pyproject.toml").read_text()
    assert 'counterseal = "counterseal_client.command_line.main:main"' in text
    home_shell.command = COMMAND
    assert "review" in home_shell.run("--help").stdout


def test_a_command_of_the_server_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["up", "--solo"]) == 2
    assert "Run `pip install counterseal`." in capsys.readouterr().err
    assert "Commands of the server" not in build_parser().format_help()


def test_a_secret_in_the_wrong_place_is_not_repeated(home_shell: Shell) -> None:
    secret = "cs_k7xw2m9q_secretsecret"
    for words in (["init", "--key", secret, secret], [secret], ["init", secret]):
        done = home_shell.run(*words)
        assert done.returncode in (1, 2)
        assert secret not in done.stdout + done.stderr


def test_without_settings_it_says_what_to_do(home_shell: Shell) -> None:
    done = home_shell.run("wait", "p-1")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert "counterseal init" in line
    assert "/me/tokens/" in home_shell.run("review").stderr


def test_a_gate_that_is_gone_is_one_line(home_shell: Shell) -> None:
    home_shell.variables |= {
        "COUNTERSEAL_URL": "http://127.0.0.1:9",
        "COUNTERSEAL_TOKEN": "csp_secretsecret",
    }
    done = home_shell.run("review")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert "Check that the gate runs" in line
    assert "secret" not in line


def test_text_of_the_gate_is_inert_in_errors(
    gate: LoopbackGate, loopback_shell: Shell
) -> None:
    page = b'{"code": "x", "detail": "\\u001b[2J\\u202e cs_k7xw2m9q_secret"}'
    gate.faults.append(Fault(418, raw=page))
    done = loopback_shell.run("wait", "p-1")
    (line,) = done.stderr.splitlines()
    assert "\\x1b[2J\\u202e cs_***" in line


def test_input_of_another_encoding_is_an_error(home_shell: Shell) -> None:
    home_shell.variables |= {"COUNTERSEAL_URL": "http://127.0.0.1:9"}
    home_shell.variables |= {"COUNTERSEAL_KEY": "cs_secretsecret"}
    words = ["propose", "pay", "--args", "{}", "--thread", os.fsdecode(b"\xff")]
    done = subprocess.run(
        [*COMMAND, *words],
        env=home_shell.environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_a_reader_that_has_enough_is_no_error(
    gate: LoopbackGate, loopback_shell: Shell
) -> None:
    loopback_shell.run("propose", "pay", "--args", "{}", "--thread", "t-1")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, "wait", "p-1", "--timeout", "0", "--json"],
        env=loopback_shell.environment,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert done.stderr == b""


def test_the_product_does_not_import_the_command_line() -> None:
    code = "import counterseal_client, sys; print('argparse' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "client",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"
