"""What a person was shown last, per gate, person and request."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterseal_client.calls import Connection
from counterseal_client.command_line.shown_requests import (
    MOST_REMEMBERED,
    find_shown_request,
    remember_request,
)
from counterseal_client.people import PeopleOperations
from counterseal_client.settings import find_state_file
from counterseal_client.terminal.decisions import ShownRequest

PEOPLE = PeopleOperations(Connection("https://gate.example.com", "csp_secret"))


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def build_shown(number: int, version: int = 1) -> ShownRequest:
    return ShownRequest(f"r-{number}", version, "sha256:00", "sha256:01")


def test_the_newest_version_that_was_shown_is_known() -> None:
    assert find_shown_request(PEOPLE, "r-1") is None
    remember_request(PEOPLE, build_shown(1))
    remember_request(PEOPLE, build_shown(1, version=2))
    assert find_shown_request(PEOPLE, "r-1") == build_shown(1, version=2)


@pytest.mark.parametrize(
    "connection",
    [
        Connection("https://gate.example.com", "csp_other"),
        Connection("https://other.example.com", "csp_secret"),
    ],
)
def test_it_is_known_of_this_person_at_this_gate_only(connection: Connection) -> None:
    remember_request(PEOPLE, build_shown(1))
    assert find_shown_request(PeopleOperations(connection), "r-1") is None


def test_the_file_is_this_users_and_has_no_secret() -> None:
    remember_request(PEOPLE, build_shown(1))
    path = find_state_file("shown.json")
    assert path.stat().st_mode & 0o777 == 0o600
    assert "secret" not in path.read_text()


def test_old_ones_are_forgotten() -> None:
    for number in range(MOST_REMEMBERED + 1):
        remember_request(PEOPLE, build_shown(number))
    assert find_shown_request(PEOPLE, "r-0") is None
    assert find_shown_request(PEOPLE, "r-1") == build_shown(1)


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_damaged_file_is_as_none(text: str) -> None:
    remember_request(PEOPLE, build_shown(1))
    find_state_file("shown.json").write_text(text)
    assert find_shown_request(PEOPLE, "r-1") is None
