"""What the benchmark waits for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from bench.execution import UNDONE
from journal.clock import now
from journal.models import OutboxMessage

pytestmark = pytest.mark.django_db


def undone() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(UNDONE)
        return {topic for (topic,) in cursor.fetchall()}


def promise(topic: str, **fields: object) -> None:
    OutboxMessage.objects.create(topic=topic, task="t", subject="s", **fields)


def test_it_waits_for_all_that_the_worker_will_deal_with_now() -> None:
    later, before = now() + timedelta(hours=1), now() - timedelta(hours=1)
    promise("new")
    promise("done", done_at=now())
    promise("in work", attempts=1, held_until=later)
    promise("due again", attempts=1, held_until=before)
    assert undone() == {"new", "in work", "due again"}


def test_it_waits_for_no_mail_that_is_gathered_until_later() -> None:
    promise("digest", held_until=now() + timedelta(hours=1))
    assert undone() == set()
