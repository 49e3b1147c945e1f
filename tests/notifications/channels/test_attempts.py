"""What becomes of each attempt is recorded, and a refused message is sent again when
its receiver allows it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from journal import clock
from journal.models import OutboxMessage
from notifications import delivery
from notifications.channels import attempts
from reviews.models import ApprovalRequest, Notice
from tests.conftest import Gate
from tests.factories import propose
from tests.notifications.channels.files import added_channel
from tests.notifications.test_plan import time_comes

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with added_channel(tmp_path, monkeypatch):
        yield tmp_path


def planned(request: ApprovalRequest) -> Notice:
    now = clock.now()
    about = {"request": request, "version": request.version, "kind": "opened"}
    place = {"channel": "pager", "target": "control-room"}
    return Notice.objects.create(**about, **place, at=now, due_at=now)


def test_an_accepted_message_keeps_its_id(gate: Gate, room: Path) -> None:
    request = propose(gate.agent).request
    notice = planned(request)
    assert delivery.deliver_notice(notice)
    notice.refresh_from_db()
    assert notice.message_id == f"page-{notice.pk}"
    assert (notice.attempts, notice.error) == (1, "")
    assert (room / "paged").read_text() == f"control-room opened {request.pk}\n"


def test_a_refused_message_waits_as_long_as_its_receiver_asks(
    gate: Gate, room: Path
) -> None:
    notice = planned(propose(gate.agent).request)
    (room / "refuses").write_text("too many messages|90")
    assert not delivery.deliver_notice(notice)
    notice.refresh_from_db()
    assert (notice.sent_at, notice.error) == (None, "too many messages")
    wait = notice.due_at - clock.now()
    assert timedelta(seconds=80) < wait <= timedelta(seconds=90)
    (promised,) = OutboxMessage.objects.filter(topic="notice.due")
    assert promised.due_at == notice.due_at
    (room / "refuses").unlink()
    time_comes()
    notice.refresh_from_db()
    assert notice.sent_at is not None
    assert (notice.attempts, notice.error) == (2, "")


def test_a_final_refusal_is_not_repeated(gate: Gate, room: Path) -> None:
    notice = planned(propose(gate.agent).request)
    (room / "refuses").write_text("there is no such room")
    assert not delivery.deliver_notice(notice)
    notice.refresh_from_db()
    assert (notice.let_go, notice.error) == ("undeliverable", "there is no such room")
    assert not OutboxMessage.objects.filter(topic="notice.due").exists()


@pytest.mark.parametrize(
    ("failed", "asked", "seconds"),
    [(1, 0, 5), (2, 0, 10), (8, 0, 600), (29, 0, 600), (1, 90, 90), (1, 9000, 3600)],
)
def test_rests_double_up_to_a_limit(failed: int, asked: int, seconds: int) -> None:
    rest = attempts.compute_rest(failed, timedelta(seconds=asked))
    assert rest == timedelta(seconds=seconds)
