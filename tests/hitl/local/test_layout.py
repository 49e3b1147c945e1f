from __future__ import annotations

import os
from pathlib import Path

import pytest

from hitl.local.layout import (
    MAX_SOCKET_LENGTH,
    InstallationError,
    build_layout,
    create_run_folder,
)


@pytest.fixture
def _not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.mark.usefixtures("_not_root")
def test_sockets_live_in_the_state_folder() -> None:
    assert build_layout(Path("/srv/gate")).run == Path("/srv/gate/run")


@pytest.mark.usefixtures("_not_root")
@pytest.mark.parametrize("state", ["/srv/" + "x" * 100, "/srv/a b", "/srv/a,b"])
def test_a_folder_unfit_for_sockets_gets_a_short_one(state: str) -> None:
    found = build_layout(Path(state))
    assert found.run.parent == Path("/tmp")
    assert len(str(found.postgres_socket / ".s.PGSQL.5432")) <= MAX_SOCKET_LENGTH
    assert build_layout(Path(state)).run == found.run
    assert build_layout(Path(state + "2")).run != found.run


def test_root_keeps_its_sockets_where_others_can_enter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert build_layout(Path("/root/gate")).run.parent == Path("/tmp")


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    (tmp_path / "theirs").chmod(0o777)
    with pytest.raises(InstallationError, match=r"belongs to another user"):
        create_run_folder(tmp_path / "theirs")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(InstallationError, match=r"belongs to another user"):
        create_run_folder(tmp_path / "link")


def test_our_own_folder_is_made_once_and_kept(tmp_path: Path) -> None:
    create_run_folder(tmp_path / "run")
    create_run_folder(tmp_path / "run")
    assert os.stat(tmp_path / "run").st_mode & 0o022 == 0
