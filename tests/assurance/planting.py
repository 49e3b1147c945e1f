"""Canaries planted by the product's own operation."""

from __future__ import annotations

import itertools
import random
from datetime import timedelta
from typing import Any

from assurance import insertion, library
from assurance.insertion import PreparedClone
from journal import clock
from policies.models import Person
from reviews.choices import DefectKind, RequestStatus
from reviews.models import ApprovalRequest
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose

_customers = itertools.count(1042)


def approve_source(gate: Gate, by: Person | None = None, **fields: Any) -> str:
    """A payment that somebody approved a while ago; return its proposal."""
    customer = f"C-{next(_customers)}"
    given: dict[str, Any] = {
        "customer": customer,
        "amount": "5.00",
        "rationale": f"{customer} asked for 5.00 back.",
        **fields,
    }
    request = propose(gate.agent, thread=factories.new_thread(), **given).request
    if decide(request, by or gate.sam).status == RequestStatus.RECALLABLE:
        factories.window_over(request)
    age_source(request)
    return str(request.proposal_id)


def age_source(request: ApprovalRequest) -> None:
    """As if it had been settled an hour ago."""
    past = clock.now() - timedelta(hours=1)
    ApprovalRequest.objects.filter(pk=request.pk).update(settled_at=past)


def plant(
    gate: Gate, person: Person | None = None, kind: DefectKind | None = None
) -> ApprovalRequest:
    """An open canary for this person, by default Rita; with a defect of this kind."""
    approve_source(gate)
    return plant_clone(person or gate.rita, kind)


def plant_clone(person: Person, kind: DefectKind | None = None) -> ApprovalRequest:
    """An open canary for this person, cloned from what others approved."""
    who = Person.objects.get(pk=person.pk)
    planted = insertion.plant_canary(
        person=who, clone=prepare_clone(who, kind), next_after=45
    )
    assert planted is not None
    return ApprovalRequest.with_canaries.select_related("proposal").get(pk=planted.pk)


def prepare_clone(person: Person, kind: DefectKind | None) -> PreparedClone:
    """A clone for this person, with a defect of this kind if one is named."""
    for seed in range(200):
        clone = insertion.prepare_clone(person, clock.now(), random.Random(seed))
        assert clone is not None
        if kind in {None, clone.planted.defect.kind}:
            return clone
    raise AssertionError(kind)


def plant_only(gate: Gate, kind: DefectKind) -> None:
    """Two administrators switch every other kind of the library off."""
    for other in set(DefectKind) - {kind}:
        change = library.propose_change(
            person=reload(gate.adam), kind=other, weight=0, reason="x"
        )
        library.confirm_change(change_id=change.pk, person=reload(gate.alma))


def reload(person: Person) -> Person:
    """Without the roles and queues that an earlier check kept."""
    return Person.objects.get(pk=person.pk)
