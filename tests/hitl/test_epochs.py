"""Looking after the database goes on, whatever a look comes to."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from hitl import epochs
from journal.errors import Restored
from reviews import restores


@pytest.mark.parametrize("error", [OSError("disk"), Restored()], ids=["disk", "race"])
def test_no_error_ends_the_watch(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def watch() -> str:
        raise error

    monkeypatch.setattr(restores, "watch", watch)
    monkeypatch.setattr(epochs, "close_old_connections", lambda: None)
    with capture_logs() as said:
        epochs.look()
    assert [one["event"] for one in said] == ["epoch.not_looked"]
