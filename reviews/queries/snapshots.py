"""The copy of the page that is kept with a decision: its own, or of a batch the one
that is kept for all, with the first."""

from __future__ import annotations

from reviews.models import Decision, Snapshot


def of(decision: Decision) -> Snapshot | None:
    """None where a program decided."""
    if batch := decision.authority.get("batch"):
        return of_batch(batch)
    return Snapshot.objects.filter(decision=decision).first()


def of_batch(batch: str) -> Snapshot | None:
    """A batch is decided once, so there is one."""
    found = Snapshot.objects.filter(
        decision__request__batch_items__batch=batch, decision__authority__batch=batch
    )
    return found.select_related("decision__reviewer").first()
