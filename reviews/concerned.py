"""The people who stand behind what an agent proposes, and so may not decide it."""

from __future__ import annotations

from django.db.models import F, Func, QuerySet, Value

from journal import transactions
from policies.models import Person

from .choices import OPEN
from .models import ApprovalRequest, Proposal


def bar(agent: str, person: Person) -> None:
    """Keep a person from deciding what of this agent waits: they became its owner. What
    is decided stays so. Caller holds a transaction."""
    transactions.require("Barring an owner")
    me = person.public_id
    waiting = ApprovalRequest.objects.filter(agent=agent, status__in=OPEN)
    asked = waiting.values_list("proposal_id", flat=True)
    _add(Proposal.objects.filter(pk__in=list(asked)), me)
    _add(waiting, me)


def _add(rows: QuerySet[Proposal] | QuerySet[ApprovalRequest], me: str) -> None:
    added = Func(F("barred"), Value(me), function="array_append")
    rows.exclude(barred__contains=[me]).update(barred=added)
