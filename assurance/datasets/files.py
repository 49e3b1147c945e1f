"""The file of a dataset: a job writes it in parts, so that a crash loses at most one.

Each part is compressed by itself, and parts of gzip one after the other are one file.
The header is written last, because it counts the lines; it is the first line of the
file.
"""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journal import clock, encryption, log, outbox
from journal.operations import operation
from policies.models import Person
from policies.people import build_actor
from reviews import locks, permissions, redaction, transitions
from reviews.choices import DatasetStatus
from reviews.models import Dataset, DatasetPart
from reviews.roles import Permission

from . import selection
from .consent import KEPT_FOR, load_downloadable
from .lines import build_lines
from .redaction import HiddenNames, build_hidden_names
from .selection import DatasetPlan

PART_SIZE = 50  # lines
PART_S = 2.0  # seconds of one part, which ends early: evidence can be long
BUDGET_S = 8.0  # seconds of one outbox delivery; the rest is enqueued again
FORMAT = "counterseal-dataset/1"
USE = "This data may be used for evaluation only, not for training on people."
NOT_PERMITTED = (
    "The person who requested it or consented is no longer an administrator."
)


@dataclass(frozen=True, slots=True)
class _Writing:
    """What one delivery of the job needs for every part."""

    key: bytes
    plan: DatasetPlan
    others: HiddenNames


def write_dataset(dataset_id: str) -> bool:
    """Write parts for a few seconds; returns whether the dataset is finished."""
    writing = _prepare_writing(dataset_id)
    end = time.monotonic() + BUDGET_S
    while writing is not None and _write_part(dataset_id, writing):
        if time.monotonic() > end:
            return False
    return True


def _prepare_writing(dataset_id: str) -> _Writing | None:
    dataset = Dataset.objects.filter(pk=dataset_id).first()
    if dataset is None or dataset.key is None:
        return None
    key = encryption.unwrap_key(bytes(dataset.key), dataset.pk)
    plan = selection.build_plan(dataset, key)
    customers = frozenset().union(*plan.customers.values())
    people = Person.objects.all()
    others = build_hidden_names(people, customers, plan.named, plan.schema_words)
    return _Writing(key, plan, others)


@operation(
    entry="write_dataset",
    locks="dataset",
    writes="DatasetPart, Dataset",
    logs="dataset.finished or dataset.failed",
)
def _write_part(dataset_id: str, writing: _Writing) -> bool:
    """Write the next part or finish the file; returns whether more remains."""
    dataset = locks.lock_dataset(dataset_id)
    if dataset.status != DatasetStatus.RUNNING:
        return False
    if not _is_still_permitted(dataset):
        _fail_dataset(dataset, NOT_PERMITTED)
        return False
    wanted = writing.plan.lines[dataset.rows : dataset.rows + PART_SIZE]
    if not wanted:
        _finish_dataset(dataset, writing)
        return False
    built = build_lines(writing.key, writing.plan, wanted, writing.others)
    lines = list(_take_in_time(built, time.monotonic() + PART_S))
    _store_lines(dataset, lines, in_all=len(writing.plan.lines))
    return True


def _take_in_time(
    lines: Iterable[dict[str, Any]], end: float
) -> Iterator[dict[str, Any]]:
    """Take lines until the time is over, at least one."""
    for line in lines:
        yield line
        if time.monotonic() > end:
            return


def _is_still_permitted(dataset: Dataset) -> bool:
    both = (dataset.asked_by, dataset.settled_by)
    return all(
        person is not None
        and permissions.has_permission(person, Permission.MANAGE_DATASETS)
        for person in both
    )


def _store_lines(
    dataset: Dataset, lines: Sequence[Mapping[str, Any]], *, in_all: int
) -> None:
    body = compress_lines(lines)
    number = dataset.parts.count() + 1
    DatasetPart.objects.create(dataset=dataset, number=number, body=body)
    dataset.rows += len(lines)
    dataset.rows_in_all = in_all
    dataset.size += len(body)
    dataset.counts = add_counts(dataset.counts, lines)
    dataset.save(update_fields=["rows", "rows_in_all", "size", "counts"])


def compress_lines(lines: Sequence[Mapping[str, Any]]) -> bytes:
    """Compress JSON lines, without a time or a name in the gzip header."""
    text = "".join(f"{json.dumps(line, ensure_ascii=True)}\n" for line in lines)
    return gzip.compress(text.encode(), mtime=0)


def add_counts(
    counts: Mapping[str, Mapping[str, int]], lines: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, int]]:
    """Add these lines to the number of lines by label, quality and part."""
    sums = {
        name: Counter(counts.get(name, {})) for name in ("label", "quality", "part")
    }
    for line in lines:
        planted = "canary: " if line["canary"] else ""
        sums["label"][f"{planted}{line['label']}"] += 1
        sums["quality"].update(line["label_quality"])
        sums["part"][line["part"]] += 1
    return {name: dict(sorted(counter.items())) for name, counter in sums.items()}


def _build_header(dataset: Dataset, writing: _Writing) -> dict[str, Any]:
    roles = sorted(permissions.roles_of(dataset.owner))
    purpose = redaction.redact_or_withhold(dataset.purpose, key=writing.key).text
    return {
        "format": FORMAT,
        "use": USE,
        "purpose": writing.others.hide_people(purpose),
        "owner_role": ", ".join(roles),
        "since": dataset.since.isoformat(),
        "until": dataset.until.isoformat(),
        "tools": sorted(dataset.tools),
        "canaries": dataset.with_canaries,
        "shares": {
            "train": dataset.train,
            "validation": dataset.validation,
            "test": dataset.test,
        },
        "lines": dataset.rows,
        "counts": dataset.counts,
    }


def _finish_dataset(dataset: Dataset, writing: _Writing) -> None:
    if not dataset.counts:
        dataset.counts = add_counts({}, [])
    body = compress_lines([_build_header(dataset, writing)])
    DatasetPart.objects.create(dataset=dataset, number=0, body=body)
    digest = dataset.parts.compute_digest()
    now = clock.now()
    transitions.dataset.apply(
        dataset,
        "finish",
        actor=log.SYSTEM,
        now=now,
        changes={
            "finished_at": now,
            "key": None,
            "size": dataset.size + len(body),
            "counts": dataset.counts,
        },
        data={
            "dataset": dataset.pk,
            "lines": dataset.rows,
            "digest": f"sha256:{digest}",
        },
    )


def _fail_dataset(dataset: Dataset, problem: str) -> None:
    now = clock.now()
    dataset.parts.all().delete()
    transitions.dataset.apply(
        dataset,
        "fail",
        actor=log.SYSTEM,
        now=now,
        changes={"finished_at": now, "key": None, "problem": problem},
        data={"dataset": dataset.pk, "problem": problem},
    )


@operation(after="a task that writes the next part")
def enqueue_rest(dataset_id: str) -> None:
    """Enqueue the rest in the outbox: one delivery never exceeds its time budget."""
    outbox.publish("dataset.consented", subject=dataset_id)


@operation(logs="dataset.downloaded", after="the file's first byte")
def open_file(*, dataset_id: str, person: Person) -> Dataset:
    """Record a download and return the dataset to stream. The record is committed
    before the first byte. Raises NotFound, also for a file that was deleted."""
    dataset = load_downloadable(person, dataset_id)
    log.append(
        "dataset.downloaded",
        actor=build_actor(person),
        at=clock.now(),
        data={"dataset": dataset.pk},
    )
    return dataset


def delete_old_datasets() -> int:
    """Delete the files older than a week. The log keeps the record that they were made.
    Returns the number of deleted parts."""
    old = Dataset.objects.filter(
        status=DatasetStatus.DONE, finished_at__lt=clock.now() - KEPT_FOR
    )
    count, _ = DatasetPart.objects.filter(dataset__in=old).delete()
    return count
