"""Where the gate is and who calls: from the environment and from the file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from counterseal_client.settings import (
    InvalidSettings,
    Settings,
    check_key,
    check_token,
    check_url,
    find_credentials,
    find_running_file,
    find_settings_file,
    is_encrypted,
    load_settings,
    mask_secrets,
    save_file,
    save_settings,
    write_file,
)

STORED = Settings("https://gate.example.com", "cs_stored", "csp_stored")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_what_is_saved_is_loaded(environment: dict[str, str]) -> None:
    path = save_settings(STORED, environment)
    assert path == Path(environment["XDG_CONFIG_HOME"]) / "counterseal/settings.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_settings(environment) == STORED


def test_a_relative_folder_counts_as_none() -> None:
    found = find_settings_file({"XDG_CONFIG_HOME": "config"})
    assert found == Path.home() / ".config/counterseal/settings.json"


def test_the_environment_wins(environment: dict[str, str]) -> None:
    save_settings(STORED, environment)
    environment |= {"COUNTERSEAL_KEY": " cs_given\n", "COUNTERSEAL_TOKEN": "csp_given"}
    assert load_settings(environment) == Settings(STORED.url, "cs_given", "csp_given")


def test_the_gate_of_this_machine_is_used_where_nothing_else_is_said(
    environment: dict[str, str], tmp_path: Path
) -> None:
    environment["XDG_STATE_HOME"] = str(tmp_path / "state")
    with pytest.raises(InvalidSettings, match="counterseal up"):
        find_credentials(None, None, environment)
    running = Settings("http://127.0.0.1:8000", "cs_running")
    file = find_running_file(environment)
    file.parent.mkdir(parents=True)
    save_file(file, running)
    assert find_credentials(None, None, environment) == (running.url, running.key)
    assert find_credentials(None, "cs_other", environment) == (running.url, "cs_other")
    save_settings(STORED, environment)
    assert find_credentials(None, None, environment) == (STORED.url, STORED.key)
    assert find_credentials(running.url, None, environment)[1] == running.key


def test_a_stored_key_is_never_sent_to_another_gate(
    environment: dict[str, str],
) -> None:
    save_settings(STORED, environment)
    other = "https://other.example.com"
    assert load_settings({**environment, "COUNTERSEAL_URL": other}) == Settings(other)
    assert load_settings(environment, url=other) == Settings(other)
    with pytest.raises(InvalidSettings, match="agent's key"):
        find_credentials(None, None, {**environment, "COUNTERSEAL_URL": other})


def test_a_file_that_others_can_read_is_refused(environment: dict[str, str]) -> None:
    save_settings(STORED, environment).chmod(0o640)
    with pytest.raises(InvalidSettings, match="chmod 600"):
        load_settings(environment)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"key": 7}'])
def test_a_file_that_is_none_is_refused(environment: dict[str, str], text: str) -> None:
    save_settings(STORED, environment).write_text(text)
    with pytest.raises(InvalidSettings, match="counterseal init"):
        load_settings(environment)


def test_a_secret_is_in_no_message_and_no_repr(environment: dict[str, str]) -> None:
    with pytest.raises(InvalidSettings) as refused:
        check_key("cs_secret\u20ac")
    assert "secret" not in str(refused.value)
    assert "stored" not in repr(STORED)
    assert mask_secrets("with cs_k7xw2m9q_abc and csp_abcdefgh") == (
        "with cs_*** and csp_***"
    )


def test_a_key_and_a_token_are_told_apart() -> None:
    with pytest.raises(InvalidSettings, match="a person's token, not"):
        check_key("csp_abcdefgh")
    with pytest.raises(InvalidSettings, match="an agent's key, not"):
        check_token("cs_abcdefgh")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "gate.example.com",
        "ftp://gate.example.com",
        "https://",
        "https://gate.example.com:port",
        "https://gate.example.com?x",
        "https://gate\x1b.example.com",
        "https://rita:secret@gate.example.com",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidSettings):
        check_url(url)


def test_an_address_loses_its_last_slash() -> None:
    assert check_url(" https://gate.example.com/ ") == "https://gate.example.com"


def test_plain_http_is_for_this_machine() -> None:
    assert is_encrypted("https://gate.example.com")
    assert is_encrypted("http://127.0.0.1:8000")
    assert not is_encrypted("http://gate.example.com")


def test_a_write_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "settings.json"
    write_file(path, "before", mode=0o600)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(path, "after", mode=0o600)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_exists_is_not_replaced_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "agent.py"
    write_file(path, "mine", mode=0o644)
    with pytest.raises(FileExistsError):
        write_file(path, "theirs", mode=0o644, replace=False)
    assert path.read_text() == "mine"
    assert json.dumps([one.name for one in tmp_path.iterdir()]) == '["agent.py"]'
