"""Looking after the database goes on, whatever a look comes to."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from hitl import restore_watch
from journal.errors import DatabaseRestored
from reviews import recovery


@pytest.mark.parametrize(
    "error", [OSError("disk"), DatabaseRestored()], ids=["disk", "race"]
)
def test_no_error_ends_the_watch(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def watch() -> str:
        raise error

    monkeypatch.setattr(recovery, "watch_for_restore", watch)
    monkeypatch.setattr(restore_watch, "close_old_connections", lambda: None)
    with capture_logs() as said:
        restore_watch.check_epoch()
    assert [one["event"] for one in said] == ["epoch.not_looked"]
