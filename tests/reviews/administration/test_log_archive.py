"""Two people move an old period of the log into a file; the log stays verifiable."""

from __future__ import annotations

import gzip
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client

from desk.log import pages
from journal import archives, clock, log, periods, sequencer, verification
from journal.errors import Conflict, NotFound, NotPermitted
from journal.models import LogPayload, LogPeriod, LogRecord
from policies.choices import Role
from reviews import text_removal
from reviews.administration import log_archive
from reviews.models import ApprovalRequest
from tests import factories, worlds
from tests.factories import decide, propose

pytestmark = pytest.mark.django_db(transaction=True)


def keep_months(settings, months):
    changed = {"log_keep_months": months}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)


@pytest.fixture
def old(monkeypatch, settings):
    """A period with some records, which ended two years ago by the clock."""
    keep_months(settings, 12)
    begun = clock.now()
    first = LogPeriod.objects.latest("number")
    with transaction.atomic():
        for number in range(5):
            log.append(
                "a.b", actor=log.SYSTEM, at=begun, private={"text": f"word {number}"}
            )
        periods.begin_period(why="month", patience_ms=2000)
    with transaction.atomic():
        log.append_many([log.Entry("c.d", actor=log.SYSTEM, at=begun)] * 3)
    sequencer.sequence_records()
    monkeypatch.setattr(clock, "now", lambda: begun + timedelta(days=400))
    first.refresh_from_db()
    return first


@pytest.fixture
def two(old):
    return [
        factories.person(name, role=Role.ADMINISTRATOR) for name in ("alma", "adam")
    ]


def archive(period, folder, person, texts=True):
    return log_archive.archive_period(
        LogPeriod.objects.get(pk=period.pk),
        folder,
        person=person,
        reason="old",
        texts=texts,
    )


def place():
    sequencer.sequence_records()
    return verification.verify_log()


def test_two_people_archive_a_period_and_the_log_still_proves_itself(
    old, two, tmp_path
):
    before = place()
    at = {n: verification.verify_log(at=n).roots[n] for n in (2, 5, 7)}
    alma, adam = two
    assert archive(old, tmp_path, alma).archived_at is None
    with pytest.raises(Conflict, match="second person"):
        archive(old, tmp_path, alma)
    done = archive(old, tmp_path, adam)
    assert (done.records, done.archived_at is not None) == (5, True)
    assert not LogRecord.objects.filter(kind="a.b").exists()
    assert not LogPayload.objects.filter(values__text="word 1").exists()
    kinds = LogRecord.objects.order_by("-pk").values_list("kind", flat=True)
    assert list(kinds[:2]) == ["log.archived", "log.archive_asked"]
    after = place()
    assert (after.faults, after.archived) == ([], 5)
    assert verification.verify_log(at=before.records).roots[before.records] == (
        before.root
    )
    for count, root in at.items():  # the files and the rest of the log, together
        found = verification.verify_log(at=count, folder=tmp_path)
        assert (found.faults, found.roots[count]) == ([], root)
    assert b"word 1" in gzip.decompress((tmp_path / done.archive_file).read_bytes())
    with pytest.raises(Conflict, match="was archived in"):
        archive(old, tmp_path, alma)


def test_a_changed_or_missing_file_is_named(old, two, tmp_path):
    alma, adam = two
    asked = archive(old, tmp_path, alma)
    path = tmp_path / asked.archive_file
    kept = path.read_bytes()
    path.write_bytes(gzip.compress(gzip.decompress(kept).replace(b"word 1", b"word 9")))
    with pytest.raises(archives.BrokenArchive, match="digest"):
        archive(old, tmp_path, adam)
    assert LogRecord.objects.filter(kind="a.b").count() == 5
    path.write_bytes(kept)
    archive(old, tmp_path, adam)
    path.unlink()
    place()
    assert "No such file" in verification.verify_log(folder=tmp_path).faults[0]
    assert "give the folder" in verification.verify_log(at=2).faults[0]


def test_what_must_stay_stays(old, two, tmp_path, settings, monkeypatch):
    alma = two[0]
    newest = LogPeriod.objects.latest("number")
    with pytest.raises(Conflict, match="not over"):
        archive(newest, tmp_path, alma)
    with pytest.raises(NotPermitted):
        archive(old, tmp_path, factories.person("rita", role=Role.REVIEWER))
    keep_months(settings, 14)
    with pytest.raises(Conflict, match="LOG_KEEP_MONTHS keeps"):
        archive(old, tmp_path, alma)
    keep_months(settings, 0)
    with pytest.raises(CommandError, match="LOG_KEEP_MONTHS is not set"):
        call_command(
            "archive_log", str(old.number), to=tmp_path, by="alma", reason="old"
        )
    with pytest.raises(CommandError, match="a month such as"):
        call_command("archive_log", "March", to=tmp_path, by="alma", reason="old")
    assert not list(tmp_path.iterdir())


def test_a_reader_who_never_pauses_is_not_waited_for(old, two, tmp_path, monkeypatch):
    alma, adam = two
    monkeypatch.setattr(archives, "PATIENCE_MS", 50)
    archive(old, tmp_path, alma)
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT count(*) FROM journal_logrecord")
        with pytest.raises(Conflict, match="reads or writes"):
            archive(old, tmp_path, adam)
        cursor.execute("ROLLBACK")
    other.close()
    assert archive(old, tmp_path, adam).archived_at is not None
    auditor = factories.person("audrey", role=Role.AUDITOR)
    with pytest.raises(NotFound, match=r"Record .* was archived on .* log-period-"):
        pages.load_record_by_number(auditor, old.first_seq + 2)


@pytest.mark.parametrize("texts", [True, False])
def test_texts_that_the_retention_rule_removed_are_missing_in_the_file(
    old, two, tmp_path, settings, texts
):
    place()
    changed = {"keep_log_texts_days": 120}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
    assert text_removal.remove_old_texts() == 5
    for person in two:
        done = archive(old, tmp_path, person, texts)
    lines = gzip.decompress((tmp_path / done.archive_file).read_bytes())
    assert b"word" not in lines
    place()
    assert verification.verify_log(folder=tmp_path).faults == []


def test_the_pages_of_an_archived_request_say_where_its_records_are(
    gate, tmp_path, settings, monkeypatch
):
    keep_months(settings, 12)
    first = LogPeriod.objects.latest("number")
    request = propose(gate.agent).request
    decide(request, gate.tom, "reject")
    with transaction.atomic():
        periods.begin_period(why="month", patience_ms=2000)
    sequencer.sequence_records()
    later = clock.now() + timedelta(days=400)
    monkeypatch.setattr(clock, "now", lambda: later)
    for person in (gate.people["alma"], gate.people["adam"]):
        done = archive(first, tmp_path, person)
    earlier = request.opened_at - timedelta(days=400)  # pages ask the database's clock
    worlds.rewrite(ApprovalRequest, request.pk, opened_at=earlier)
    client = Client()
    client.force_login(gate.otto, "django.contrib.auth.backends.ModelBackend")
    for url in (f"/requests/{request.pk}/", "/log/", "/log/exports/"):
        source = client.get(url).content.decode()
        assert 'data-testid="archived"' in source, url
        assert done.archive_file in source
    for part in archives.list_archived_parts():
        assert (part.file, part.digest) == (done.archive_file, done.archive_digest)
    assert archives.list_archived_parts(since=later) == []
