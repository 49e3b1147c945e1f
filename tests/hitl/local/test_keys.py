from __future__ import annotations

import os
from pathlib import Path

import pytest

from hitl.local import defaults, keys
from hitl.local.layout import InstallationError


def test_keys_are_made_once_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    keys.ensure_keys(folder)
    first = {path.name: path.read_text() for path in folder.iterdir()}
    keys.ensure_keys(folder)
    assert {path.name: path.read_text() for path in folder.iterdir()} == first
    assert set(first) == set(keys.MAKERS)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(set(first.values())) == len(first)


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InstallationError, match=r"^STATE: keys cannot be written"):
        keys.ensure_keys(tmp_path / "file" / "keys")


def test_what_is_set_stays(tmp_path: Path) -> None:
    environ = {
        "STATE": str(tmp_path),
        "PORT": "9000",
        "DATABASE_URL": "postgresql:///x",
    }
    defaults.fill_environment(environ)
    assert environ["DATABASE_URL"] == "postgresql:///x"
    assert environ["BASE_URL"] == "http://127.0.0.1:9000"
    assert environ["REDIS_URL"].startswith("unix:///")
    assert "SECRET_KEY" not in environ, os.environ


@pytest.mark.parametrize("port", ["0", "web", "65530", "-1"])
def test_a_port_that_is_none_is_said(tmp_path: Path, port: str) -> None:
    with pytest.raises(InstallationError, match=r"^PORT: .* is not a number"):
        defaults.fill_environment({"STATE": str(tmp_path), "PORT": port})
