"""What was granted does not wait until everybody has been written to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.db.models import Max, QuerySet

from journal.models import OutboxMessage
from reviews.models import Execution
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.stack import Stack, wait_until

pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.django_db]


def test_an_effect_overtakes_the_letters_that_wait(
    gate: Gate,
    live: Stack,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """Letters to everybody are in the broker when a payment is approved."""
    count = proof_n(small=60, full=300)
    for number in range(count):
        propose(gate.agent, thread=f"t-{number}", customer=f"C-{number}")
    request = propose(gate.agent, customer="C-last").request
    decide(request, gate.rita)
    execution = Execution.objects.get()
    live.start_worker(beat=False, processes=1)
    wait_until(lambda: claimed(execution), 60, lambda: live.log("worker"))
    written = letters(done_at__lt=execution.claimed_at).count()
    assert written <= 2
    wait_until(lambda: not letters(done_at=None).exists(), 120)
    assert execution.claimed_at is not None
    took = last_letter() - execution.claimed_at
    record_proof(
        "queues",
        f"an effect behind {letters().count()} letters: claimed after {written} of"
        f" them, {took.total_seconds():.1f} s before the last",
    )


def claimed(execution: Execution) -> bool:
    execution.refresh_from_db()
    return execution.claimed_at is not None


def letters(**fields: Any) -> QuerySet[OutboxMessage]:
    return OutboxMessage.objects.filter(topic="request.opened", **fields)


def last_letter() -> datetime:
    found = letters().aggregate(last=Max("done_at"))["last"]
    assert isinstance(found, datetime)
    return found
