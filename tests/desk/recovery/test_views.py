"""The page of a restored database, and what every page and an inherited request say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from journal import clock, failover, high_water_mark, restore_epochs
from journal.models import Epoch, Promotion
from reviews import recovery
from reviews.models import Alarm
from tests.conftest import Gate
from tests.factories import propose
from tests.markup import read_page, read_text
from tests.security.world import BACKEND

pytestmark = pytest.mark.django_db
URL = "/restored/"


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    restore_epochs.last_status = restore_epochs.EpochStatus()


def as_(gate: Gate, name: str) -> Client:
    client = Client()
    client.force_login(gate.people[name], BACKEND)
    return client


def test_all_is_well_without_one(gate: Gate) -> None:
    page = as_(gate, "rita").get(URL)
    assert page.status_code == 200
    assert 'data-testid="no-restore"' in read_page(page)
    assert b"<textarea" not in page.content


def test_its_alarm_leads_there(gate: Gate) -> None:
    recovery.announce_restore(why=restore_epochs.BEHIND)
    alarm = Alarm.objects.get()
    for address in ("/alarms/", f"/alarms/{alarm.pk}/"):
        page = read_page(as_(gate, "sue").get(address))
        assert f'<a href="{URL}">' in page


def test_a_standby_that_took_over_is_listed_and_its_alarm_leads_there(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Promotion(
        system="7", database=1, before="00000001", timeline="00000002", record=12
    )
    row.at, row.hosts = clock.now(), ["web-1", "web-2"]
    row.save()
    monkeypatch.setattr(failover, "accept_promotion", lambda at: row)
    recovery.record_promotion()
    sue = as_(gate, "sue")
    page = read_page(sue.get(URL))
    assert "00000001 to 00000002" in page
    assert "web-1, web-2" in page
    assert f'<a href="{URL}">' in read_page(
        sue.get(f"/alarms/{Alarm.objects.get().pk}/")
    )


def test_two_people_look_and_a_new_epoch_begins(gate: Gate) -> None:
    propose(gate.agent)
    recovery.announce_restore(why=restore_epochs.BEHIND)
    sue, sam = as_(gate, "sue"), as_(gate, "sam")
    assert 'data-testid="first"' in read_page(sue.get(URL))
    assert sue.post(URL, {"reason": "the disk was lost"}).status_code == 302
    assert 'data-testid="confirmed"' in read_page(sue.get(URL))
    assert 'data-testid="second"' in read_page(sam.get(URL))
    assert sam.post(URL, {"reason": "books compared"}).status_code == 302
    assert Epoch.objects.get().by == gate.sam.public_id
    assert 'data-testid="no-restore"' in read_page(sam.get(URL))


def test_who_read_that_nobody_confirmed_is_not_the_second(gate: Gate) -> None:
    recovery.announce_restore(why=restore_epochs.BEHIND)
    sue, sam = as_(gate, "sue"), as_(gate, "sam")
    assert 'name="asked" value="0"' in read_page(sam.get(URL))
    sue.post(URL, {"reason": "the disk was lost", "asked": "0"})
    answer = sam.post(URL, {"reason": "books compared", "asked": "0"})
    assert answer.status_code == 409
    page = read_page(answer)
    assert "Another person has confirmed since" in page
    assert "books compared" in page
    assert 'name="asked" value="1"' in page
    assert Epoch.objects.get().began_at is None
    assert sam.post(URL, {"reason": "read", "asked": "1"}).status_code == 302


def test_a_reason_is_needed_and_the_refusal_is_on_the_page(gate: Gate) -> None:
    recovery.announce_restore(why=restore_epochs.ANOTHER)
    page = as_(gate, "sue").post(URL, {"reason": " "})
    assert page.status_code == 422
    assert read_text(page, "look").count("Describe what happened.") == 1


def test_whoever_comes_too_late_keeps_their_words(gate: Gate) -> None:
    recovery.announce_restore(why=restore_epochs.BEHIND)
    sue, sam = as_(gate, "sue"), as_(gate, "sam")
    sue.post(URL, {"reason": "the disk was lost"})
    twice = sue.post(URL, {"reason": "and the books compared"})
    sam.post(URL, {"reason": "books compared"})
    third = as_(gate, "alma").post(URL, {"reason": "the ledger compared"})
    for page, words in ((twice, b"the books compared"), (third, b"the ledger")):
        assert page.status_code == 409
        assert words in page.content


@pytest.mark.parametrize("name", ["rita", "otto", "owen"])
def test_others_see_it_and_cannot_say_so(gate: Gate, name: str) -> None:
    recovery.announce_restore(why=restore_epochs.BEHIND)
    client = as_(gate, name)
    assert 'data-testid="two-needed"' in read_page(client.get(URL))
    assert client.post(URL, {"reason": "let me"}).status_code == 403
    assert not Epoch.objects.exclude(asked_by="").exists()


def test_only_get_and_post(gate: Gate) -> None:
    assert as_(gate, "sue").put(URL).status_code == 405


def test_every_page_says_so_until_it_is_over(gate: Gate) -> None:
    client = as_(gate, "rita")
    assert b'data-testid="restored"' not in client.get("/queue/").content
    restore_epochs.last_status.why = restore_epochs.BEHIND
    assert b'data-testid="restored"' in client.get("/queue/").content


def test_an_open_request_that_came_back_says_so(gate: Gate) -> None:
    request = propose(gate.agent).request
    client = as_(gate, "rita")
    inherited = b'data-testid="inherited"'
    assert inherited not in client.get(f"/requests/{request.pk}/").content
    restore_epochs.last_status.restores = ((clock.now(), clock.now()),)
    assert inherited in client.get(f"/requests/{request.pk}/").content


def test_a_disk_that_does_not_give_the_note_asks_nobody_to_look(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(high_water_mark, "read_mark", broken)
    restore_epochs.update_status()
    sue = as_(gate, "sue")
    page = sue.get(URL)
    assert page.status_code == 200
    assert 'data-testid="disk"' in read_page(page)
    assert 'data-testid="restored-rows"' not in read_page(page)
    assert b"<textarea" not in page.content
    assert b'data-testid="restored"' not in sue.get("/queue/").content
    assert b'data-testid="unread"' in sue.get("/queue/").content
    refused = sue.post(URL, {"reason": "the books compared"})
    assert refused.status_code == 409
    assert b"the books compared" in refused.content
