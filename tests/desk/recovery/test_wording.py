"""The words of the page of a restored database, and of the notice on every page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from journal import high_water_mark, restore_epochs
from reviews import recovery
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.markup import read_text

URL = "/restored/"
# What was confirmed by Sue before, the status, who reads which page.
ROWS = [
    (
        False,
        "",
        "sue",
        URL,
        "no-restore",
        "No restore to confirm. The database matches the records that this host has"
        " seen.",
    ),
    (
        False,
        restore_epochs.BEHIND,
        "sue",
        URL,
        "first",
        "You are the first person. Nothing runs until a second person confirms as"
        " well.",
    ),
    (
        True,
        restore_epochs.BEHIND,
        "sue",
        URL,
        "confirmed",
        "You have confirmed. A second supervisor or administrator must confirm as"
        " well.",
    ),
    (
        True,
        restore_epochs.BEHIND,
        "sam",
        URL,
        "second",
        "You are the second person. Confirming resumes work: the result of every"
        " running action becomes unknown. Counterseal looks it up at the tool's service"
        " where it can, and otherwise asks people.",
    ),
    (
        False,
        restore_epochs.BEHIND,
        "rita",
        URL,
        "two-needed",
        "Two supervisors or administrators must confirm.",
    ),
    (
        False,
        restore_epochs.BEHIND,
        "rita",
        "/queue/",
        "restored",
        "The database was restored. Nothing runs until two people confirm. Decisions"
        " and proposals are blocked as well. Details",
    ),
    (
        False,
        restore_epochs.DISK_ERROR,
        "rita",
        "/queue/",
        "unread",
        "Nothing runs: Counterseal cannot read its epoch file from disk. Everything"
        " resumes automatically once it can. Details",
    ),
]


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    restore_epochs.last_status = restore_epochs.EpochStatus()


@pytest.mark.parametrize(("confirmed", "why", "name", "path", "testid", "text"), ROWS)
def test_the_pages_say(
    gate: Gate,
    as_: SignIn,
    confirmed: bool,
    why: str,
    name: str,
    path: str,
    testid: str,
    text: str,
) -> None:
    if why == restore_epochs.BEHIND:
        recovery.announce_restore(why=why)
    if confirmed:
        recovery.confirm_restore(person=gate.sue, reason="the disk was lost")
    restore_epochs.last_status.why = why
    assert read_text(as_(name).get(path), testid) == text


def test_a_disk_that_cannot_be_read_is_a_matter_of_the_operator(
    gate: Gate, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(high_water_mark, "read_mark", broken)
    restore_epochs.update_status()
    text = read_text(as_("sue").get(URL), "disk")
    assert text == "Nobody needs to check the database. Fix the disk."
