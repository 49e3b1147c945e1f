"""Deletion of files that no proposal names, and of old files' contents."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet

from journal import clock, log
from journal.operations import operation
from reviews import locks
from reviews.models import EvidenceFile, EvidencePicture

from .files import UNUSED_FOR

CHUNK = 100
RETENTION_ACTOR = log.Actor("system", "retention")


@operation(locks="files (skip locked)", writes="EvidenceFile, EvidencePicture")
def delete_unused_files() -> int:
    """Delete files that no proposal has named for a day; return how many."""
    unused = EvidenceFile.objects.filter(
        used_at__isnull=True, uploaded_at__lt=clock.now() - UNUSED_FOR
    )
    pks = [file.pk for file in _lock_oldest(unused.order_by("uploaded_at"))]
    EvidencePicture.objects.filter(file__in=pks).delete()
    EvidenceFile.objects.filter(pk__in=pks).delete()
    return len(pks)


def _lock_oldest(files: QuerySet[EvidenceFile]) -> list[EvidenceFile]:
    return list(locks.lock_due_rows(files.only("pk", "agent", "sha256"))[:CHUNK])


@operation(
    locks="files (skip locked)",
    writes="EvidenceFile, EvidencePicture",
    logs="evidence.erased",
)
def erase_files() -> int:
    """Erase the bytes and the pictures of files that proposals named long ago, longer
    than a request can wait; return how many. The hashes stay in the revisions."""
    days = settings.COUNTERSEAL.keep_files_days
    if not days:
        return 0
    now = clock.now()
    over = now - timedelta(days=days)
    old = EvidenceFile.objects.filter(used_at__lt=over, erased_at__isnull=True)
    files = _lock_oldest(old.order_by("used_at"))
    pks = [file.pk for file in files]
    EvidencePicture.objects.filter(file__in=pks).delete()
    erased = EvidenceFile.objects.filter(pk__in=pks)
    erased.update(body=None, shown=None, erased_at=now)
    log.append_many(
        log.Entry(
            "evidence.erased",
            actor=RETENTION_ACTOR,
            at=now,
            agent=file.agent,
            data={"sha256": file.sha256},
        )
        for file in files
    )
    return len(files)
