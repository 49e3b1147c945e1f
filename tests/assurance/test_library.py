"""The library of defects is changed by two administrators, and each change counts."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from assurance import clones, library
from assurance.examples import build_example
from hitl import tasks
from journal import clock
from journal.errors import Conflict, InvalidArgs, NotFound, NotPermitted, TextMissing
from journal.models import LogRecord
from policies.models import Person
from reviews.administration import second_person
from reviews.choices import ChangeStatus, DefectKind
from reviews.models import DefectChange
from tests.assurance.planting import approve_source, reload
from tests.conftest import Gate

pytestmark = pytest.mark.django_db
KIND = DefectKind.AMOUNT_TENFOLD
MINUTE = timedelta(minutes=1)


def propose(
    gate: Gate, weight: int = 0, by: Person | None = None, kind: DefectKind = KIND
) -> DefectChange:
    return library.propose_change(
        person=reload(by or gate.adam), kind=kind, weight=weight, reason="Too obvious."
    )


def confirm(gate: Gate, change: DefectChange, by: Person | None = None) -> DefectChange:
    return library.confirm_change(change_id=change.pk, person=reload(by or gate.alma))


def test_a_second_administrator_puts_a_change_in_force(gate: Gate) -> None:
    change = propose(gate)
    assert library.load_weights()[KIND] == 1
    for name in ("adam", "sue", "otto", "rita"):
        with pytest.raises(NotPermitted):
            confirm(gate, change, gate.people[name])
        with pytest.raises(NotPermitted):
            library.refuse_change(
                change_id=change.pk, person=reload(gate.people[name]), reason="x"
            )
    confirm(gate, change)
    assert library.load_weights()[KIND] == 0
    with pytest.raises(Conflict):
        confirm(gate, change)
    confirm(gate, propose(gate, 3, gate.alma), gate.adam)
    assert library.load_weights()[KIND] == 3
    records = LogRecord.objects.filter(kind__startswith="defect.").order_by("pk")
    assert [(row.kind, row.actor_id, row.data["weight"]) for row in records] == [
        ("defect.proposed", gate.adam.public_id, 0),
        ("defect.changed", gate.alma.public_id, 0),
        ("defect.proposed", gate.alma.public_id, 3),
        ("defect.changed", gate.adam.public_id, 3),
    ]


def test_the_database_refuses_one_person_for_both(gate: Gate) -> None:
    rows = DefectChange.objects.filter(pk=propose(gate).pk)
    alone = {"settled_by": gate.adam, "settled_at": clock.now()}
    with pytest.raises(IntegrityError, match="second_person"), transaction.atomic():
        rows.update(status="confirmed", **alone)
    with pytest.raises(IntegrityError, match="settled_paired"), transaction.atomic():
        rows.update(status="confirmed")
    change = propose(gate, kind=DefectKind.EXTRA_BCC)
    library.withdraw_change(change_id=change.pk, person=reload(gate.adam))
    with pytest.raises(IntegrityError, match="no step"), transaction.atomic():
        DefectChange.objects.filter(pk=change.pk).update(
            status="proposed", settled_at=None
        )


def test_a_change_is_refused_withdrawn_or_lapses(gate: Gate) -> None:
    refused = propose(gate)
    with pytest.raises(Conflict):  # one of a kind waits
        propose(gate, 2)
    with pytest.raises(TextMissing):
        library.refuse_change(
            change_id=refused.pk, person=reload(gate.alma), reason=" "
        )
    library.refuse_change(change_id=refused.pk, person=reload(gate.alma), reason="No.")
    withdrawn = propose(gate)
    with pytest.raises(NotPermitted):
        library.withdraw_change(change_id=withdrawn.pk, person=reload(gate.alma))
    library.withdraw_change(change_id=withdrawn.pk, person=reload(gate.adam))
    lapsed = propose(gate)
    rows = DefectChange.objects.filter(pk=lapsed.pk)
    rows.update(asked_at=clock.now() - second_person.ANSWERED_WITHIN + MINUTE)
    assert tasks.lapse_unanswered() == 0
    past = clock.now() - second_person.ANSWERED_WITHIN
    rows.update(asked_at=past)
    with pytest.raises(Conflict):  # before the sweep comes
        confirm(gate, lapsed)
    assert tasks.lapse_unanswered() == 1
    assert library.load_weights() == dict.fromkeys(DefectKind, 1)
    ends = [DefectChange.objects.get(pk=one.pk) for one in (refused, withdrawn, lapsed)]
    assert [one.status for one in ends] == [
        ChangeStatus.REFUSED,
        ChangeStatus.WITHDRAWN,
        ChangeStatus.LAPSED,
    ]
    with pytest.raises(NotFound):
        library.withdraw_change(change_id=0, person=reload(gate.adam))


def test_a_wrong_frequency_names_its_field(gate: Gate) -> None:
    for weight in (1, 6, -1):
        with pytest.raises(InvalidArgs) as refused:
            propose(gate, weight)
        assert [one["path"] for one in refused.value.errors] == ["weight"]
    with pytest.raises(NotPermitted):
        propose(gate, 2, gate.sue)


def test_a_kind_of_twice_the_weight_is_chosen_twice_as_often(gate: Gate) -> None:
    approve_source(gate)
    source = clones.select_sources(reload(gate.rita), clock.now()).get()
    weights = library.load_weights() | {KIND: 2, DefectKind.CLAIMED_APPROVAL: 0}
    uses: Counter[str] = Counter()
    for seed in range(200):
        found = clones.list_fitting_defects(
            source.sealed.revision,
            uses=uses,
            weights=weights,
            chance=random.Random(seed),
        )
        uses[found[0].defect.kind] += 1
    others = [count for kind, count in uses.items() if kind != KIND]
    assert len(others) >= 2
    assert DefectKind.CLAIMED_APPROVAL not in uses
    assert max(others) - min(others) <= 1
    assert abs(uses[KIND] - 2 * max(others)) <= 2


@pytest.mark.parametrize("kind", DefectKind)
def test_every_kind_has_an_example_that_shows_the_difference(kind: DefectKind) -> None:
    example = build_example(kind)
    assert example.label
    assert example.before != example.after
