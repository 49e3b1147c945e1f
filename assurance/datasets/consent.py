"""Datasets of decided requests for evaluation: asking, consent and refusal.

One administrator asks and says what for. Another one, who is not the owner, consents;
before that nothing is written, and the one who asked can withdraw it. Each step is a
log record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.timezone import localdate

from journal import canonical, clock, encryption
from journal.errors import (
    FieldError,
    InvalidArgs,
    NotFound,
    build_field_error,
)
from journal.operations import operation
from policies.choices import Role
from policies.models import Person, Tool
from policies.people import build_actor
from reviews import locks, permissions, transitions
from reviews.administration import second_person
from reviews.administration.second_person import LONGEST_TEXT
from reviews.choices import DatasetStatus
from reviews.models import Dataset, Decision
from reviews.roles import Permission

from . import selection
from .selection import MOST_DECISIONS

KEPT_FOR = timedelta(days=7)  # the file, from when it is finished


@dataclass(frozen=True, slots=True)
class DatasetTerms:
    """What is asked for. `until` is the last day; days are of UTC, and the shares are
    in percent."""

    purpose: str
    owner: Person
    tools: Sequence[str]
    since: date
    until: date
    train: int = 70
    validation: int = 15
    test: int = 15
    with_canaries: bool = False


@operation(writes="Dataset", logs="dataset.asked")
def ask_dataset(*, person: Person, terms: DatasetTerms) -> Dataset:
    """Ask for a dataset; nothing is written before the consent. Raises NotPermitted, or
    InvalidArgs with the fields that are wrong."""
    permissions.check_permission(person, Permission.MANAGE_DATASETS)
    dataset = _build_dataset(person, terms)
    problems = list(_list_term_problems(terms)) or list(_list_row_problems(dataset))
    if problems:
        raise InvalidArgs("No dataset was requested.", errors=problems)
    return transitions.dataset.create(
        dataset,
        "ask",
        actor=build_actor(person),
        now=dataset.asked_at,
        data={
            "dataset": dataset.pk,
            "owner": terms.owner.public_id,
            "tools": sorted(terms.tools),
            "since": dataset.since.isoformat(),
            "until": dataset.until.isoformat(),
            "canaries": terms.with_canaries,
        },
        private={"purpose": dataset.purpose},
    )


def _build_dataset(person: Person, terms: DatasetTerms) -> Dataset:
    return Dataset(
        purpose=terms.purpose.strip(),
        asked_by=person,
        owner=terms.owner,
        tools=sorted(set(terms.tools)),
        since=_start_day(terms.since),
        until=_start_day(terms.until) + timedelta(days=1),
        with_canaries=terms.with_canaries,
        train=terms.train,
        validation=terms.validation,
        test=terms.test,
        asked_at=clock.now(),
    )


def _start_day(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


def _list_term_problems(terms: DatasetTerms) -> Iterator[FieldError]:
    purpose = terms.purpose.strip()
    if not purpose:
        yield build_field_error("purpose", "Say what the dataset is for.")
    if len(purpose) > LONGEST_TEXT:
        yield build_field_error(
            "purpose", f"Use at most {LONGEST_TEXT:,} characters for the purpose."
        )
    if not terms.owner.is_active:
        yield build_field_error("owner", "Choose an owner who can sign in.")
    if not terms.tools:
        yield build_field_error("tools", "Choose at least one tool.")
    if terms.since > terms.until:
        yield build_field_error(
            "since", "The first day is after the last day. Choose an earlier one."
        )
    if terms.until > localdate(clock.now(), UTC):
        yield build_field_error("until", "The last day may not be in the future.")
    shares = (terms.train, terms.validation, terms.test)
    if problem := describe_share_problem(shares):
        yield build_field_error("train", problem)


def describe_share_problem(shares: Sequence[int]) -> str:
    """What is wrong with the shares of the split, in percent; "" if nothing is."""
    if min(shares) >= 0 and sum(shares) == 100:
        return ""
    return f"The three shares must add up to 100 %; they are {sum(shares)} %."


def _list_row_problems(dataset: Dataset) -> Iterator[FieldError]:
    known = Tool.objects.filter(name__in=dataset.tools).values_list("name", flat=True)
    if missing := sorted(set(dataset.tools) - set(known)):
        yield build_field_error("tools", f"There is no tool named {missing[0]}.")
    if not _select_consenters(dataset).exists():
        yield build_field_error(
            "owner", "No other administrator could consent. Choose another owner."
        )
    count = selection.select_decisions(dataset)[: MOST_DECISIONS + 1].count()
    if not count and not selection.select_canaries(dataset).exists():
        yield build_field_error(
            "until", "Nobody decided a request of these tools in this period."
        )
    if count > MOST_DECISIONS:
        yield build_field_error(
            "until",
            f"At most {MOST_DECISIONS:,} decisions fit; choose a shorter period.",
        )


def _select_consenters(dataset: Dataset) -> QuerySet[Person]:
    """The administrators who may answer."""
    administrators = Person.objects.filter(
        is_active=True, groups__name=Role.ADMINISTRATOR
    )
    return administrators.exclude(pk__in=[dataset.asked_by_id, dataset.owner_id])


@operation(
    locks="dataset",
    writes="Dataset",
    logs="dataset.consented",
    after="a task that writes the file",
)
def consent_dataset(*, dataset_id: str, person: Person, shown: str = "") -> Dataset:
    """Consent, so that a job writes the file. `shown` is the `canonical.format_shown`
    of the terms that the person read; empty without a page. Raises NotFound,
    NotPermitted, StaleVersion, Conflict when it is answered already."""
    dataset, now = _lock_answerable(dataset_id, person), clock.now()
    lost = "Nothing was written."
    canonical.check_shown(shown, build_shown_terms(dataset), lost)  # guard: file-shown
    newest = Decision.objects.order_by("-pk").values_list("pk", flat=True).first()
    return transitions.dataset.apply(
        dataset,
        "consent",
        actor=build_actor(person),
        now=now,
        changes={
            "settled_by": person,
            "settled_at": now,
            "until_decision": newest or 0,
            "key": encryption.wrap_key(encryption.create_key(), dataset.pk),
        },
        data={"dataset": dataset.pk},
    )


def build_shown_terms(dataset: Dataset) -> dict[str, object]:
    """The parts of the terms that a consent is bound to."""
    return {
        "its purpose": dataset.purpose,
        "its owner": dataset.owner_id,
        "its tools": dataset.tools,
        "its period": [dataset.since, dataset.until],
        "its split": [dataset.train, dataset.validation, dataset.test],
        "whether it includes canaries": dataset.with_canaries,
    }


@operation(locks="dataset", writes="Dataset", logs="dataset.refused")
def refuse_dataset(*, dataset_id: str, person: Person, reason: str) -> Dataset:
    """Refuse; nothing is written. Raises NotFound, NotPermitted, Conflict when it is
    answered already, TextMissing."""
    dataset = _lock_answerable(dataset_id, person)
    return second_person.settle_row(
        transitions.dataset,
        dataset,
        "refuse",
        person=person,
        refusal=second_person.read_reason(reason),
        log_data=_build_log_data(dataset),
    )


def _lock_answerable(dataset_id: str, person: Person) -> Dataset:
    permissions.check_permission(person, Permission.MANAGE_DATASETS)
    dataset = locks.lock_dataset(dataset_id)
    why_not = describe_why_no_answer(dataset, person)
    second_person.check_may_answer(dataset, why_not, DatasetStatus.ASKED)
    return dataset


@operation(locks="dataset", writes="Dataset", logs="dataset.withdrawn")
def withdraw_dataset(*, dataset_id: str, person: Person) -> Dataset:
    """Withdraw a dataset that this person asked for, before anybody answers. Raises
    NotFound, NotPermitted, Conflict when it is answered already."""
    permissions.check_permission(person, Permission.MANAGE_DATASETS)
    dataset = locks.lock_dataset(dataset_id)
    return second_person.withdraw_row(
        transitions.dataset,
        dataset,
        person=person,
        open_status=DatasetStatus.ASKED,
        log_data=_build_log_data(dataset),
    )


@operation(locks="datasets (skip locked)", writes="Dataset", logs="dataset.lapsed")
def lapse_datasets() -> int:
    """End the datasets that nobody answered within a week. Returns how many."""
    waiting = Dataset.objects.filter(status=DatasetStatus.ASKED)
    return second_person.lapse_unanswered(transitions.dataset, waiting, _build_log_data)


def _build_log_data(dataset: Dataset) -> dict[str, Any]:
    return {"data": {"dataset": dataset.pk}}


def describe_why_no_answer(dataset: Dataset, person: Person) -> str:
    """Why this administrator may not consent or refuse; empty when they may."""
    if person.pk == dataset.asked_by_id:
        return "You requested it. Another administrator must answer."
    if person.pk == dataset.owner_id:  # guard: dataset-owner
        return "You are its owner. Another administrator must answer."
    return ""


def select_visible_datasets(person: Person) -> QuerySet[Dataset]:
    """The datasets whose terms this person may read: all of them for administrators,
    for others those that they own."""
    datasets = Dataset.objects.select_related("asked_by", "owner", "settled_by")
    if permissions.has_permission(person, Permission.MANAGE_DATASETS):
        return datasets
    return datasets.filter(owner=person)


def may_see_datasets(person: Person) -> bool:
    """Whether the person may open the page: administrators, and owners of a dataset."""
    manages = permissions.has_permission(person, Permission.MANAGE_DATASETS)
    return manages or Dataset.objects.filter(owner=person).exists()


def load_downloadable(person: Person, dataset_id: str) -> Dataset:
    """Load a finished dataset that this person may download: its owner, and the two
    administrators. Raises NotFound."""
    permitted = Q(owner=person)
    if permissions.has_permission(person, Permission.MANAGE_DATASETS):
        permitted |= Q(asked_by=person) | Q(settled_by=person)
    finished = Dataset.objects.filter(
        permitted, status=DatasetStatus.DONE, finished_at__gt=clock.now() - KEPT_FOR
    )
    dataset = finished.filter(pk=dataset_id, parts__number=0).first()
    if dataset is None:
        raise NotFound
    return dataset
