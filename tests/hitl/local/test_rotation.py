"""A change of the key that signs grants, in files."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from hitl import environment
from hitl.local import key_rotation
from hitl.local import keys as local_keys
from hitl.local.layout import InstallationError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (key_rotation.SIGNS, key_rotation.NEXT, key_rotation.RETIRED):
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("STATE", str(tmp_path))
    local_keys.ensure_keys(tmp_path / "keys")
    # With it, the keys would be those of a private gate.
    (tmp_path / "keys" / "database_password").unlink()
    return tmp_path / "keys"


def loaded(folder: Path) -> list[list[bytes]]:
    """What a process that starts now signs with, publishes, and still accepts."""
    here = environment.read_environment({"STATE": str(folder.parent)})
    return [[here.grant_key], here.grant_keys_next, here.grant_keys_retired]


def test_a_key_is_published_before_it_signs_and_accepted_after_it(folder: Path) -> None:
    (first,), *others = loaded(folder)
    assert others == [[], []]
    key_rotation.publish(folder)
    (signs,), (second,), retired = loaded(folder)
    assert (signs, retired) == (first, [])
    assert second != first
    key_rotation.sign(folder)
    assert loaded(folder) == [[second], [], [first]]
    key_rotation.forget(folder)
    assert loaded(folder) == [[second], [], []]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_step_may_be_done_again(folder: Path) -> None:
    key_rotation.publish(folder)
    once = loaded(folder)
    key_rotation.publish(folder)
    assert loaded(folder) == once
    key_rotation.sign(folder)
    with pytest.raises(InstallationError, match="no new key is published"):
        key_rotation.sign(folder)
    key_rotation.forget(folder)
    key_rotation.forget(folder)


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_step_that_is_cut_short_is_finished_by_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    key_rotation.publish(folder)
    (first,), (second,), _ = loaded(folder)
    replace, left = local_keys.replace_key, iter(range(writes))

    def dying(path: Path, text: str) -> None:
        next(left)
        replace(path, text)

    monkeypatch.setattr(local_keys, "replace_key", dying)
    with pytest.raises(StopIteration):
        key_rotation.sign(folder)
    known = {key for keys in loaded(folder) for key in keys}
    assert known == {first, second}, "no token that was ever signed is refused"
    monkeypatch.setattr(local_keys, "replace_key", replace)
    key_rotation.sign(folder)
    assert loaded(folder) == [[second], [], [first]]


def test_what_the_environment_says_is_not_for_a_file_to_change(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRANT_KEY", base64.b64encode(bytes(32)).decode())
    with pytest.raises(InstallationError, match="GRANT_KEY is set in"):
        key_rotation.sign(folder)


def test_the_command_says_what_comes_next(
    folder: Path, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    update = {"state": folder.parent}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=update)
    with pytest.raises(CommandError, match="publish"):
        call_command("rotate_grant_key", "sign")
    for step in ("publish", "sign", "forget"):
        call_command("rotate_grant_key", step)
        assert "Restart every process" in capsys.readouterr().out
