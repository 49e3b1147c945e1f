from __future__ import annotations

import pytest

from desk.announced import page
from desk.components import badges
from journal.errors import NotFound
from journal.models import LogRecord
from reviews.evidence import reveals
from reviews.models import Execution, Sighting
from tests.conftest import Gate
from tests.desk.components.test_visibility import fresh
from tests.factories import propose


def ran(gate: Gate, *labels: str) -> list[Execution]:
    for label in labels:
        propose(gate.agent, "tag", args={"label": label}, thread=f"t-{label}")
    return list(Execution.objects.select_related("proposal").order_by("queued_at"))


def kinds() -> list[str]:
    found = LogRecord.objects.filter(kind__startswith="announced.").order_by("pk")
    return list(found.values_list("kind", flat=True))


def test_what_was_announced_names_the_queue_that_was_told(gate: Gate) -> None:
    (execution,) = ran(gate, "vip")
    assert execution.announced_in is not None
    assert execution.announced_in.name == "odd"
    propose(gate.agent, "look")
    assert Execution.objects.filter(announced_in__isnull=True).count() == 1


def test_seeing_is_each_persons_own_and_once(gate: Gate) -> None:
    rows = ran(gate, "vip", "new")
    assert reveals.record_sightings(person=gate.rita, executions=rows) == 2
    assert reveals.record_sightings(person=gate.rita, executions=rows) == 0
    assert reveals.record_sightings(person=gate.tom, executions=rows[:1]) == 1
    assert kinds() == ["announced.seen"] * 3


def test_a_near_miss_is_more_than_seen_and_stays_one(gate: Gate) -> None:
    rows = ran(gate, "vip")
    reveals.record_sightings(person=gate.rita, executions=rows)
    assert (
        reveals.record_sightings(person=gate.rita, executions=rows, near_miss=True) == 1
    )
    assert reveals.record_sightings(person=gate.rita, executions=rows) == 0
    assert Sighting.objects.get().near_miss
    assert kinds() == ["announced.seen", "announced.near_miss"]


def test_the_badge_counts_what_this_person_has_not_seen(gate: Gate) -> None:
    rows = ran(gate, "vip", "new", "old")
    assert badges.count_badges(fresh(gate.rita)).announced == 3
    reveals.record_sightings(person=gate.rita, executions=rows[:2])
    assert badges.count_badges(fresh(gate.rita)).announced == 1
    assert badges.count_badges(fresh(gate.tom)).announced == 3
    assert badges.count_badges(fresh(gate.otto)).announced == 0


def test_who_was_not_told_marks_nothing(gate: Gate) -> None:
    (execution,) = ran(gate, "vip")
    assert page.list_announced_to(fresh(gate.rita), [execution.pk]) == [execution]
    assert page.list_announced_to(fresh(gate.otto), [execution.pk]) == []
    assert page.list_announced_to(fresh(gate.owen), [execution.pk]) == []


def test_only_a_sensitive_argument_is_revealed(gate: Gate) -> None:
    request = propose(gate.agent).request
    with pytest.raises(NotFound):
        reveals.reveal_argument(
            request_id=request.pk,
            person=gate.sue,
            name="amount",
            reason_code=reveals.RevealReason.OTHER,
            reason="x",
        )
    assert not LogRecord.objects.filter(kind="value.revealed").exists()
