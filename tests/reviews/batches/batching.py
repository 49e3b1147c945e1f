"""Batches for tests, formed and decided by the product's own operations."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from journal import clock
from policies.models import Person
from reviews import deadlines
from reviews.batches import decide as batches
from reviews.batches import formation, membership, similarity
from reviews.batches.decide import BatchSubmission
from reviews.batches.membership import BatchMember
from reviews.choices import Verdict
from reviews.executions import run
from reviews.models import ApprovalRequest, Batch, Execution
from tests import factories
from tests.conftest import Gate

AMOUNTS = ("7.00", "8.00", "26.90")


def proposed(gate: Gate, *amounts: str, **fields: Any) -> list[ApprovalRequest]:
    """Alike repayments, each to another customer and in a run of its own."""
    start = ApprovalRequest.objects.count()
    return [
        factories.propose(
            gate.agent,
            "repay",
            amount=amount,
            **{"customer": f"C-{start + n}", "thread": f"b-{start + n}", **fields},
        ).request
        for n, amount in enumerate(amounts)
    ]


def formed(gate: Gate, *amounts: str, **fields: Any) -> Batch:
    """A batch of alike repayments, which still takes members."""
    proposed(gate, *(amounts or AMOUNTS), **fields)
    formation.form_missed_batches()
    return Batch.objects.get()


def members(batch: Batch) -> list[BatchMember]:
    found = membership.load_members(batch, now=clock.now())
    return [member for member in found if not member.gone]


def said(
    batch: Batch, person: Person, verdict: str = "approve", **fields: Any
) -> BatchSubmission:
    """A verdict on all that the batch is now; `without` leaves some out."""
    without = fields.pop("without", ())
    seen = members(batch)
    chosen = [member for member in seen if member.id not in without]
    return BatchSubmission(
        **{
            "batch_id": batch.pk,
            "person": Person.objects.get(pk=person.pk),
            "verdict": Verdict(verdict),
            "digest": similarity.compute_list_digest(member.entry for member in chosen),
            "items": [member.id for member in chosen],
            "left_out": list(without),
            "marks": {member.id: member.mark for member in seen},
            "reason_code": factories.reason_for(verdict),
            **fields,
        }
    )


def decide(
    batch: Batch, person: Person, verdict: str = "approve", **fields: Any
) -> Batch:
    return batches.decide_batch(said(batch, person, verdict, **fields))


def ran(batch: Batch) -> list[str]:
    """What the sweep hands over until there is nothing more; all the statuses."""
    while due := deadlines.list_overdue_executions(quiet=timedelta(0)):
        for pk in due:
            run.run_execution(pk)
    rows = Execution.objects.filter(batch=batch).order_by("batch_position")
    return list(rows.values_list("status", flat=True))


def statuses() -> list[str]:
    """Where every request stands, in order."""
    return list(ApprovalRequest.objects.order_by("pk").values_list("status", flat=True))
