"""Who leaves a batch, and what becomes of what is left."""

from __future__ import annotations

import pytest

from journal import errors
from reviews.batches import decide, formation
from reviews.choices import BatchStatus
from tests import factories
from tests.conftest import Gate
from tests.reviews import states
from tests.reviews.batches.batching import formed, members, said


def test_who_leaves_is_seen_from_the_members(gate: Gate) -> None:
    batch = formed(gate, *["7.00"] * 5)
    one, two, three = members(batch)[:3]
    factories.decide(one.request, gate.rita)
    factories.overdue(two.request)
    states.withdraw(gate.agent, three.request.proposal)
    assert len(members(batch)) == 2
    assert formation.tidy_batch(batch_id=batch.pk)
    assert batch.items.filter(left_at__isnull=False).count() == 3


def test_a_batch_of_one_is_dissolved(gate: Gate) -> None:
    batch = formed(gate, "7.00", "8.00")
    factories.decide(members(batch)[0].request, gate.rita)
    formation.tidy_open_batches()
    batch.refresh_from_db()
    assert batch.status == BatchStatus.DISSOLVED
    with pytest.raises(errors.BatchChanged):
        decide.decide_batch(said(batch, gate.rita, items=["r-1"], digest="none"))


def test_a_replacement_that_is_still_alike_stays_and_changes_the_digest(
    gate: Gate,
) -> None:
    batch = formed(gate)
    before = said(batch, gate.rita)
    member = members(batch)[1]
    args = {**member.version.revision.args, "amount": "70.00"}
    factories.revised(gate.agent, member.request.proposal, args)
    after = said(batch, gate.rita)
    assert after.items == before.items
    assert after.digest != before.digest


def test_a_replacement_above_the_ceiling_leaves(gate: Gate) -> None:
    batch = formed(gate)
    member = members(batch)[1]
    args = {**member.version.revision.args, "amount": "270.00"}
    factories.revised(gate.agent, member.request.proposal, args)
    assert member.id not in [one.id for one in members(batch)]
