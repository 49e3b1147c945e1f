"""The files for hosts with systemd are read by the programs that they are for."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from hitl.environment import read_environment
from tests.deploy.programs import DEPLOY, KEY, run
from tests.guards import ROOT

COMMAND = "/opt/counterseal/bin/counterseal"


def test_systemd_reads_the_units(tmp_path: Path) -> None:
    files = []
    for unit in (DEPLOY / "systemd").iterdir():
        files.append(tmp_path / unit.name)
        files[-1].write_text(unit.read_text().replace(COMMAND, "/bin/true"))
    assert run("systemd-analyze", "verify", "--man=no", *map(str, files)) == ""


def test_a_unit_is_given_the_time_that_its_process_needs_to_stop() -> None:
    for unit in (DEPLOY / "systemd").glob("*.service"):
        assert "TimeoutStopSec=20" in unit.read_text(), unit.name


def test_nginx_reads_its_sample(tmp_path: Path) -> None:
    key, certificate = tmp_path / "gate.key", tmp_path / "gate.pem"
    run(
        *[
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ed25519",
            "-nodes",
            "-subj",
            "/CN=gate.example.com",
        ],
        *("-keyout", str(key), "-out", str(certificate)),
    )
    sample = (DEPLOY / "nginx" / "counterseal.conf").read_text()
    sample = re.sub(r"(?<=certificate )\S+(?=;)", str(certificate), sample)
    sample = re.sub(r"(?<=certificate_key )\S+(?=;)", str(key), sample)
    file = tmp_path / "nginx.conf"
    file.write_text(f"pid {tmp_path}/pid; events {{}} http {{ {sample} }}")
    run("nginx", "-t", "-e", str(tmp_path / "log"), "-c", str(file))


def test_caddy_reads_its_sample() -> None:
    file = str(DEPLOY / "caddy" / "Caddyfile")
    run("caddy", "validate", "--adapter", "caddyfile", "--config", file)
    assert run("caddy", "fmt", file) == Path(file).read_text()


def read_with_shell(file: str) -> dict[str, str]:
    """The variables of the file, read as docs/first-run.md says."""
    read = ["sh", "-ec", 'set -a; . "$1"; exec env -0', "sh", file]
    done = subprocess.run(read, capture_output=True, text=True, env={}, check=True)
    pairs = (line.partition("=") for line in done.stdout.split("\0") if line)
    # The shell's own: dash exports these.
    return {name: value for name, _, value in pairs if name not in {"PWD", "_"}}


def test_the_example_environment_is_one_that_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = read_with_shell(str(DEPLOY / "counterseal.env.example"))
    assert given["MAIL_FROM"] == "Counterseal <counterseal@example.com>"
    keys = dict.fromkeys(("DATA_KEY", "TAG_KEY", "GRANT_KEY"), KEY)
    given |= {**keys, "SECRET_KEY": KEY + KEY, "WEBHOOK_SECRET": f"whsec_{KEY}"}
    for name, value in {**given, "STATE": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    assert not read_environment(given).local


def test_every_variable_of_the_example_is_described() -> None:
    text = (DEPLOY / "counterseal.env.example").read_text()
    manual = (ROOT / "docs" / "operations.md").read_text()
    for name in re.findall(r"^#?([A-Z_]+)=", text, re.M):
        assert f"`{name}`" in manual, name
