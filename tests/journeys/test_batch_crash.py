"""A process dies in the middle of a batch: nothing or all of it is decided, and every
item happens once, in order (T4, I26)."""

from __future__ import annotations

from functools import partial

import httpx2
import pytest

from journal.models import LogRecord
from reviews.batches import decide as batches
from reviews.choices import BatchStatus, RequestStatus
from reviews.models import ApprovalRequest, Batch, Decision, Execution, Grant
from tests import worlds
from tests.conftest import Gate
from tests.journeys.test_crash import Web, finished, short
from tests.reviews.batches.batching import formed, said
from tests.stack import Stack, wait_until

__all__ = ["short"]  # a fixture

pytestmark = [
    pytest.mark.servers,
    pytest.mark.django_db(transaction=True),
]


def decide(web: Web, batch: Batch, gate: Gate) -> httpx2.Response:
    meant = said(batch, gate.rita)
    body = {"digest": meant.digest, "items": meant.items, "verdict": "approve"}
    return web.post(f"/batches/{batch.pk}/decide", web.person, body)


def test_a_web_process_killed_in_between_decides_nothing(
    gate: Gate, live: Stack
) -> None:
    batch, web = formed(gate, *["7.00"] * 4), Web(gate, live)
    web.dies("batch_uncommitted", batch.pk, partial(decide, web, batch, gate))
    assert not Decision.objects.exists()
    assert not Grant.objects.exists()
    assert not LogRecord.objects.filter(kind="batch.decided").exists()
    asked = ApprovalRequest.objects.values_list("status", flat=True)
    assert set(asked) == {RequestStatus.PENDING}
    assert decide(web, batch, gate).status_code == 200
    batch.refresh_from_db()
    assert batch.status == BatchStatus.DECIDED
    assert Decision.objects.count() == 4


def test_a_worker_killed_at_one_item_goes_on_in_order(gate: Gate, short: Stack) -> None:
    batch = formed(gate, *["7.00"] * 4)
    batches.decide_batch(said(batch, gate.rita))
    third = Execution.objects.get(batch=batch, batch_position=3)
    flag = short.arm("after_effect", third.pk)
    short.start_worker(processes=3)
    wait_until(
        lambda: finished() and not flag.exists(), 120, lambda: short.log("worker")
    )
    happened = [args["customer"] for _, _, args in worlds.effects()]
    assert happened == ["C-0", "C-1", "C-2", "C-3"]
    rows = Execution.objects.filter(batch=batch).values_list("status", flat=True)
    assert set(rows) == {"succeeded"}
