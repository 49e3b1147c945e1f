"""The on-call page: who sees and changes it, what stays typed, and a drill from its
start to the click."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail
from django.utils.html import escape

from journal import canonical, clock
from notifications.on_call import shifts
from reviews.models import DrillSighting, NotificationDrill, OnCallShift
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import propose
from tests.hitl.tasks.draining import drain
from tests.markup import read_shown, read_text

pytestmark = pytest.mark.django_db
PAGE = "/on-call/"


def fill_shift(gate: Gate, **typed: str) -> dict[str, str]:
    now = clock.now()
    return {
        "queue": propose(gate.agent).request.queue.name,
        "person": gate.tom.public_id,
        "begins_at": f"{now - timedelta(hours=1):%Y-%m-%dT%H:%M}",
        "ends_at": f"{now + timedelta(hours=8):%Y-%m-%dT%H:%M}",
        **typed,
    }


def test_a_shift_is_planned_seen_and_ended(gate: Gate, as_: SignIn) -> None:
    answer = as_("sue").post(PAGE, fill_shift(gate), follow=True)
    tom = str(gate.tom)
    assert f"{tom} is on call during this shift." in read_text(answer)
    shift = OnCallShift.objects.get()
    for name in ("rita", "adam", "otto"):
        text = read_text(as_(name).get(PAGE))
        assert f"{tom} the rota" in text
        assert "Plan a shift" not in text
    assert as_("owen").get(PAGE).status_code == 403
    assert as_("rita").post(PAGE, fill_shift(gate)).status_code == 403
    answer = as_("sue").post(f"/on-call/{shift.pk}/end/", follow=True)
    assert "No shift is planned." in read_text(answer)
    assert "the rota" not in read_text(answer)


def test_who_did_not_read_the_newest_rota_plans_and_ends_nothing(
    gate: Gate, as_: SignIn
) -> None:
    client, fields = as_("sue"), fill_shift(gate)
    name = f"shown-{fields['queue']}"
    fields[name] = read_shown(client.get(PAGE), name)
    other = fill_shift(gate, person=gate.rita.public_id)
    assert as_("sam").post(PAGE, other).status_code == 302
    answer = client.post(PAGE, fields)
    assert answer.status_code == 409
    assert "the shifts of Money changed. Nothing was" in read_text(answer, "problem")
    assert f'value="{fields["begins_at"]}"' in answer.content.decode()
    fields[name] = read_shown(answer, name)
    assert client.post(PAGE, fields).status_code == 302
    shift = OnCallShift.objects.latest("pk")
    later = timedelta(hours=2)
    OnCallShift.objects.filter(pk=shift.pk).update(begins_at=shift.begins_at + later)
    shown = shifts.build_shown_shift(OnCallShift.objects.get(pk=shift.pk), clock.now())
    OnCallShift.objects.filter(pk=shift.pk).update(begins_at=shift.begins_at)
    sent = {"shown": canonical.format_shown(shown)}
    answer = client.post(f"/on-call/{shift.pk}/end/", sent)
    assert answer.status_code == 409
    assert "its times and whether it has begun changed" in read_text(answer)
    assert OnCallShift.objects.filter(ends_at__gt=clock.now()).count() == 2


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"ends_at": "soon"}, "Enter a day and a time, such as 2026-11-25 18:00."),
        ({"ends_at": "2020-01-01T08:00"}, "Choose an end after the beginning."),
        ({"queue": "odd<b>"}, "Choose one of your queues."),
        ({"person": "nobody"}, "Choose one of these people."),
        ({"begins_at": "0001-01-01T00:00"}, "The year must be from 2000 to 2100."),
        ({"ends_at": "9999-12-31T23:59"}, "The year must be from 2000 to 2100."),
        ({"begins_at": ""}, "Enter a day and a time, such as 2026-11-25 18:00."),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_the_rest_stays(
    gate: Gate, as_: SignIn, typed: dict[str, str], said: str
) -> None:
    fields = fill_shift(gate, **typed)
    answer = as_("sue").post(PAGE, fields)
    assert answer.status_code == 422
    assert said in read_text(answer)
    kept = fields["begins_at"]
    assert f'value="{escape(kept)}"' in answer.content.decode()
    assert not OnCallShift.objects.exists()


def test_a_drill_is_started_followed_and_shown(gate: Gate, as_: SignIn) -> None:
    queue = propose(gate.agent).request.queue.name
    fields = {"queue": queue, "risk": "high"}
    assert as_("rita").post("/drills/", fields).status_code == 403
    answer = as_("sue").post("/drills/", fields, follow=True)
    drill = NotificationDrill.objects.get()
    assert "This is a drill: no request waits." in read_text(answer)
    assert as_("sue").post("/drills/", fields).status_code == 422
    drain("drill.started")
    (link,) = {
        line.partition("/drills/")[2]
        for one in mail.outbox
        for line in one.body.splitlines()
        if "/drills/" in line
    }
    client = as_("rita")
    page = client.get(f"/drills/{link}")
    assert f'hx-post="/drills/{link}"' in page.content.decode()
    assert not DrillSighting.objects.exists(), "reading a page changes nothing"
    answer = client.post(f"/drills/{link}", follow=True)
    assert "You saw the message at" in read_text(answer)
    people = len(drill.people)
    text = read_text(as_("otto").get(PAGE))
    assert f"1 of {people} people who decide (nobody was on call) saw it" in text
    assert f"{people - 1} did not so far" in text
    rows = read_text(as_("otto").get(PAGE), "drill-channels")
    assert f"Mail {people} {people} 0 1 " in " ".join(rows.split())
