"""The policy says on which channels people hear, and a channel is one file."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core import mail

from reviews.models import Notice
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.hitl.tasks.draining import drain
from tests.notifications.channels.apis import activate_routes
from tests.notifications.channels.files import added_channel

pytestmark = pytest.mark.django_db


def test_a_channel_is_added_by_adding_a_file(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    activate_routes(gate, {"to": ["pager:control-room"], "risks": ["high"]})
    with added_channel(tmp_path, monkeypatch):
        request = propose(gate.agent).request
        drain("request.opened")
        drain("request.opened")
        decide(request, gate.rita, "reject")
        drain("request.settled")
    said = (tmp_path / "paged").read_text().splitlines()
    assert said == [
        f"control-room {kind} {request.pk}" for kind in ("opened", "settled")
    ]
    assert not mail.outbox


def test_a_message_without_a_row_goes_by_mail(gate: Gate) -> None:
    activate_routes(gate, {"to": ["pager:control-room"], "risks": ["critical"]})
    propose(gate.agent)
    drain("request.opened")
    assert len(mail.outbox) == 4


def test_a_channel_that_does_not_exist_is_recorded_as_a_failure(gate: Gate) -> None:
    activate_routes(gate, {"to": ["pager:control-room"]})
    propose(gate.agent)
    drain("request.opened")
    (notice,) = Notice.objects.all()
    assert (notice.error, notice.attempts) == ("there is no channel pager", 1)
