"""The file by which programs find the gate that runs on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterseal_client.settings import find_credentials, find_running_file
from hitl.local.gate_file import remove_gate_file, write_gate_file

ONE, OTHER = ("http://127.0.0.1:8000", "cs_one"), ("http://127.0.0.1:8100", "cs_two")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("COUNTERSEAL_URL", "COUNTERSEAL_KEY", "COUNTERSEAL_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_the_client_finds_what_the_gate_wrote(home: Path) -> None:
    (home / "state/counterseal").mkdir(mode=0o755, parents=True)
    path = write_gate_file(*ONE)
    assert path == find_running_file()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert find_credentials(None, None) == ONE
    remove_gate_file(*ONE)
    assert not path.exists()
    remove_gate_file(*ONE)


def test_a_gate_that_stops_leaves_the_file_of_another() -> None:
    write_gate_file(*ONE)
    path = write_gate_file(*OTHER)
    remove_gate_file(*ONE)
    assert find_credentials(None, None) == OTHER
    path.write_text("{")
    remove_gate_file(*OTHER)
    assert path.exists()
