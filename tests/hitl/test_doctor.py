"""The server's part of `counterseal doctor`, before there are settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl import doctor


def test_a_machine_without_a_gate_has_no_findings_and_gets_no_keys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("DATABASE_URL", "REDIS_URL", "BASE_URL", "DEPLOYMENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STATE", str(tmp_path / "state"))
    assert doctor.diagnose() == []
    monkeypatch.setenv("DATABASE_URL", "postgresql://db.example/gate")
    (finding,) = doctor.diagnose()
    assert finding["text"].startswith("DEPLOYMENT: must be set where DATABASE_URL is")
    assert list(tmp_path.iterdir()) == []
