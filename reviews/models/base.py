"""Shared by the models: opaque ids, the checks and choices of enum columns, and files
that are stored in parts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Literal, overload

from django.conf import settings
from django.db import models
from django.db.models import Q

from journal import clock, ids
from policies.models import Person


def new_proposal_id() -> str:
    return ids.new("p")


def new_request_id() -> str:
    return ids.new("r")


def new_grant_id() -> str:
    return ids.new("g")


def new_execution_id() -> str:
    return ids.new("x")


def new_batch_id() -> str:
    return ids.new("b")


def new_export_id() -> str:
    return ids.new("e")


def new_dataset_id() -> str:
    return ids.new("d")


def new_question_id() -> str:
    return ids.new("q")


def new_repair_id() -> str:
    return ids.new("f")


def removed_after() -> models.PositiveIntegerField[int | None, int | None]:
    """After how many days the retention rule removed what the row said; null while it
    is there (reviews/text_removal.py)."""
    return models.PositiveIntegerField(null=True)


def format_removal(what: str, days: int | None) -> str:
    """What stands in place of a text that the retention rule removed; the database
    compares it with the days. Empty while the text is there."""
    return f"{what} removed after {days} days by the retention rule." if days else ""


def build_removal_index(name: str, at: str) -> models.Index:
    """An index by age of the rows that still say something."""
    return models.Index(fields=[at], name=name, condition=Q(removed_after__isnull=True))


def build_choices(enum: type[Any]) -> list[tuple[str, str]]:
    """The `choices` of a model field, from an enum."""
    return [(item.value, item.value) for item in enum]


def build_choice_check(
    name: str, field: str, enum: type[Any]
) -> models.CheckConstraint:
    """A database check that a column holds a value of the enum. It also binds writers
    that bypass Django."""
    values = [item.value for item in enum]
    return models.CheckConstraint(name=name, condition=Q(**{f"{field}__in": values}))


def build_settled_check(name: str) -> models.CheckConstraint:
    """A database check of a change that needs a second person: it is settled by nobody
    while it waits, after a withdrawal and after a lapse."""
    return models.CheckConstraint(
        name=name,
        condition=Q(status="proposed", settled_by__isnull=True, settled_at__isnull=True)
        | Q(
            status__in=["confirmed", "refused"],
            settled_by__isnull=False,
            settled_at__isnull=False,
        )
        | Q(
            status__in=["withdrawn", "lapsed"],
            settled_by__isnull=True,
            settled_at__isnull=False,
        ),
    )


@overload
def person_key(
    related_name: str = "+", *, null: Literal[True], **options: Any
) -> models.ForeignKey[Person | None, Person | None]: ...
@overload
def person_key(
    related_name: str = "+", **options: Any
) -> models.ForeignKey[Person, Person]: ...
def person_key(
    related_name: str = "+", *, on_delete: Any = models.PROTECT, **options: Any
) -> models.ForeignKey[Any, Any]:
    """A foreign key to a person, who is not deleted while the row stands."""
    return models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=on_delete,
        related_name=related_name,
        **options,
    )


class FileParts(models.QuerySet[Any]):
    """The parts of one file, which a job wrote one after the other: rows with a
    `number` and a `body`."""

    def stream_bodies(self) -> Iterator[bytes]:
        bodies = self.order_by("number").values_list("body", flat=True)
        return (bytes(body) for body in bodies.iterator(chunk_size=8))

    def compute_digest(self) -> str:
        """The SHA-256 of the whole file, in hexadecimal digits."""
        digest = hashlib.sha256()
        for body in self.stream_bodies():
            digest.update(body)
        return digest.hexdigest()


def build_years_check(name: str, *fields: str) -> models.CheckConstraint:
    """A constraint that these times, which people give, are in the years that the
    product handles; or null."""
    whole = Q()
    for field in fields:
        inside = {f"{field}__gte": clock.EARLIEST, f"{field}__lt": clock.LATEST}
        whole &= Q(**{f"{field}__isnull": True}) | Q(**inside)
    return models.CheckConstraint(name=name, condition=whole)
