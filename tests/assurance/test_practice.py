"""A practice shows decided requests, half of them with a defect; it leaves no row that
anything could execute, and no trace in what is counted."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, transaction

from assurance import clones, practice
from journal import clock
from journal.errors import AlreadyDecided, Conflict, NotFound, NotPermitted
from policies.models import Person
from reviews.choices import DefectKind, Verdict
from reviews.models import Decision, Practice, PracticeEnding, PracticeItem, Proposal
from tests.assurance.planting import approve_source, plant_only, reload
from tests.assurance.practising import answer, approve_all, approve_sources, miss, start
from tests.conftest import Gate

pytestmark = pytest.mark.django_db
PRACTISED = {"Practice", "PracticeItem"}


def count_rows() -> dict[str, int]:
    """The rows of every table but those of practice."""
    return {
        model.__name__: model._base_manager.count()
        for model in apps.get_models()
        if model.__name__ not in PRACTISED
    }


def is_away(person: Person, now: datetime) -> bool:
    """What the queue asks the database."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {practice.AWAY_SQL}", {"person": person.pk, "now": now})
        return bool(cursor.fetchone()[0])


def test_a_practice_writes_nothing_but_itself(gate: Gate) -> None:
    """Half of ten items have a defect, each is of another request, and neither the
    items nor the answers add a row to any other table, the log included."""
    approve_sources(gate)
    before = count_rows()
    chosen = start(gate.rita)
    items = list(chosen.items.order_by("number"))
    assert [item.number for item in items] == list(range(1, 11))
    assert sum(bool(item.defect) for item in items) == 5
    assert len({item.version_id for item in items}) == 10
    for item in items:
        shown = practice.build_shown_item(item)
        assert shown is not None
        revision, stored = shown.version.revision, item.version.revision
        if item.defect:
            assert not {shown.version.pk, revision.pk} - {None}
            assert revision.action_hash != stored.action_hash or (
                revision.rationale != stored.rationale
            )
        else:
            assert shown.version == item.version
        answer(chosen, item, Verdict.REJECT if item.defect else Verdict.APPROVE)
    chosen.refresh_from_db()
    assert chosen.ending == PracticeEnding.FINISHED
    assert all(item.is_right for item in chosen.items.all())
    assert count_rows() == before


def test_a_planted_version_is_what_the_policy_of_its_time_would_ask(
    gate: Gate,
) -> None:
    approve_source(gate)
    source = clones.select_sources(reload(gate.rita), clock.now()).get().sealed
    original = copy.copy(source.revision)
    built = clones.build_planted_version(source, DefectKind.AMOUNT_TENFOLD)
    assert built is not None
    version, _ = built
    assert version.revision.args == {**original.args, "amount": "50.00"}
    assert version.revision.amount_minor == 5000
    assert version.revision.facts["sum"]["paid"] == 5000  # its own, not its source's
    assert source.revision.args == original.args
    assert clones.build_planted_version(source, DefectKind.MISSING_WHERE) is None
    costly = approve_source(gate, by=gate.sam, amount="60.00")
    request = clones.select_sources(reload(gate.rita), clock.now()).get(proposal=costly)
    # 600.00 needs two supervisors, so it is no item for one reviewer.
    found = clones.build_planted_version(request.sealed, DefectKind.AMOUNT_TENFOLD)
    assert found is None


def test_items_are_answered_once_in_order_and_by_their_reviewer(gate: Gate) -> None:
    approve_sources(gate)
    chosen = start(gate.rita)
    first, second, *_ = chosen.items.order_by("number")
    with pytest.raises(NotFound):
        answer(chosen, second, Verdict.APPROVE)
    for other in (gate.tom, gate.sue):
        with pytest.raises(NotFound):
            practice.load_item(other, chosen.pk, 1)
    answer(chosen, first, Verdict.APPROVE)
    with pytest.raises(AlreadyDecided):
        answer(chosen, first, Verdict.REJECT)
    assert start(gate.rita) == chosen
    practice.skip_practice(practice_id=chosen.pk, person=gate.rita)
    with pytest.raises(NotFound):
        practice.skip_practice(practice_id=chosen.pk, person=gate.rita)
    with pytest.raises(AlreadyDecided):
        answer(chosen, second, Verdict.APPROVE)
    with pytest.raises(IntegrityError), transaction.atomic():
        Practice.objects.filter(pk=chosen.pk).update(ending="")


def test_too_few_requests_and_people_who_never_decide_start_none(gate: Gate) -> None:
    approve_sources(gate, 9)
    with pytest.raises(Conflict):
        start(gate.rita)
    for name in ("adam", "otto", "owen"):
        with pytest.raises(NotPermitted):
            start(gate.people[name])
    assert not Practice.objects.exists()
    # Sam approved all of them within the week, so they are no items for Sam.
    approve_source(gate)
    assert practice.has_enough_sources(reload(gate.rita), clock.now())
    assert not practice.has_enough_sources(reload(gate.sam), clock.now())


def test_a_kind_that_is_off_is_not_planted(gate: Gate) -> None:
    approve_sources(gate)
    plant_only(gate, DefectKind.CLAIMED_APPROVAL)
    planted = start(gate.rita).items.exclude(defect="")
    assert {item.defect for item in planted} == {DefectKind.CLAIMED_APPROVAL}


def test_a_warm_up_is_offered_after_two_weeks_unless_declined(gate: Gate) -> None:
    approve_sources(gate)
    now, rita = clock.now(), reload(gate.rita)
    assert is_away(rita, now)
    practice.decline_warm_up(person=rita)
    assert not is_away(rita, clock.now())
    later = now + practice.DECLINED_FOR + timedelta(minutes=1)
    assert is_away(rita, later)
    assert not is_away(reload(gate.sam), later)  # decides
    chosen = start(rita)
    approve_all(chosen)
    assert not is_away(rita, later)
    assert Decision.objects.filter(reviewer=gate.rita).count() == 0


def test_three_misses_of_a_kind_offer_a_practice_of_it(gate: Gate) -> None:
    kind = DefectKind.AMOUNT_TENFOLD
    miss(gate, DefectKind.CLAIMED_APPROVAL, 1)
    plant_only(gate, kind)
    miss(gate, kind, 2)
    assert not practice.is_practice_due(gate.rita, kind, clock.now())
    miss(gate, kind, 1)
    assert practice.is_practice_due(gate.rita, kind, clock.now())
    assert not practice.is_practice_due(gate.tom, kind, clock.now())
    approve_sources(gate, 6)
    chosen = start(gate.rita, kind)
    defects = [item.defect for item in chosen.items.all()]
    assert sorted(defects) == ["", "", "", kind, kind, kind]
    approve_all(chosen)
    assert not practice.is_practice_due(gate.rita, kind, clock.now())


def test_what_somebody_practised_on_is_no_canary_for_a_week(gate: Gate) -> None:
    approve_sources(gate)
    start(gate.rita)
    rita, now = reload(gate.rita), clock.now()
    assert not clones.select_sources(rita, now).exists()
    later = now + clones.REMEMBERED
    assert clones.select_sources(rita, later).count() == 10
    assert PracticeItem.objects.count() == 10


def test_who_is_kept_out_of_a_request_gets_no_copy_of_it(gate: Gate) -> None:
    proposal = approve_source(gate)
    rita, now = reload(gate.rita), clock.now()
    assert clones.select_sources(rita, now).count() == 1
    Proposal.objects.filter(pk=proposal).update(kept_out=[rita.public_id])
    assert not clones.select_sources(rita, now).exists()
