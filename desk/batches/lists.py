"""Batches as lines of a list: those that wait, and those decided in the last week."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import (
    Count,
    Exists,
    F,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Sum,
    TextField,
)
from django.db.models.functions import Cast
from django.urls import reverse

from journal import cursors
from journal.cursors import CursorPosition
from policies import tools
from policies.models import Person
from policies.money import Money, format_money
from reviews.choices import BatchStatus, RequestStatus
from reviews.effects import describe
from reviews.effects.wording import format_required_people
from reviews.governance import readings
from reviews.models import Batch, RequestVersion
from reviews.presenters.shapes import SentencePart

from ..components import formatting
from ..components.formatting import DeadlineClock
from . import links
from .links import build_batch_title
from .load import OPEN_STATUSES, select_visible_batches

DECIDED_FOR = timedelta(days=7)
MAX_LISTED = 50
WAITING, DECIDED = "waiting", "decided"  # the two parts of the list, in order


@dataclass(frozen=True, slots=True)
class BatchListItem:
    id: str
    url: str
    warnings: tuple[str, ...]  # what the page of any of its requests warns of on top
    title: tuple[SentencePart, ...]
    amount: str
    risk: str
    required: str  # the people whom each request needs: `1 reviewer`
    tool: str
    agent: str
    forming: bool
    decided: bool
    clock: DeadlineClock | None
    at: datetime | None
    ending: str


@dataclass(frozen=True, slots=True)
class BatchListPage:
    waiting: list[BatchListItem]
    decided: list[BatchListItem]
    more_waiting: int = 0  # not listed
    more_decided: int = 0


def build_batch_list(person: Person, *, now: datetime) -> BatchListPage:
    """List waiting batches by deadline, then those decided in the last week. Five
    queries, plus those of `costs`."""
    open_ = _select_waiting(person)
    over = _select_decided(person, now)
    waiting = list(open_.order_by("formed_at")[:MAX_LISTED])
    decided = list(over.order_by("-settled_at")[:MAX_LISTED])
    facts = _load_totals([*waiting, *decided], now)
    lines = [
        _build_item(batch, facts[batch.pk], now)
        for batch in waiting
        if batch.pk in facts
    ]
    lines.sort(key=lambda line: line.at or now)
    return BatchListPage(
        [line for line in lines if line.clock is not None],
        [
            _build_item(batch, facts[batch.pk], now)
            for batch in decided
            if batch.pk in facts
        ],
        cursors.count_rest(open_, waiting, MAX_LISTED),
        cursors.count_rest(over, decided, MAX_LISTED),
    )


def load_batch_items(ids: Collection[str], now: datetime) -> dict[str, BatchListItem]:
    """Load these batches as lines by id. Three queries, plus those of `costs`."""
    batches = list(Batch.objects.filter(pk__in=ids).select_related("tool"))
    facts = _load_totals(batches, now)
    return {
        batch.pk: _build_item(batch, facts[batch.pk], now)
        for batch in batches
        if batch.pk in facts
    }


def list_batches_after(
    person: Person, place: CursorPosition | None, *, size: int, now: datetime
) -> tuple[list[BatchListItem], str | None]:
    """List one page of batches for the API, with the cursor of the next page.

    Waiting batches come in the order in which they formed, then decided ones, newest
    first. `place` is where the previous page ended. A batch with too few members left
    is on no page, so a page may be short.
    """
    rows: list[Batch] = []
    if place is None or place.part == WAITING:
        waiting = cursors.select_after(_select_waiting(person), place, "formed_at")
        rows += waiting[: size + 1]
    if len(rows) <= size:
        since = place if place and place.part == DECIDED else None
        decided = cursors.select_after(
            _select_decided(person, now), since, "settled_at", newest_first=True
        )
        rows += decided[: size + 1 - len(rows)]
    shown = rows[:size]
    facts = _load_totals(shown, now)
    lines = [
        _build_item(batch, facts[batch.pk], now) for batch in shown if batch.pk in facts
    ]
    more = cursors.encode_cursor(_build_place(shown[-1])) if len(rows) > size else None
    return [item for item in lines if item.decided or item.clock is not None], more


def _select_waiting(person: Person) -> QuerySet[Batch]:
    return select_visible_batches(person).filter(status__in=OPEN_STATUSES)


def _select_decided(person: Person, now: datetime) -> QuerySet[Batch]:
    return select_visible_batches(person).filter(
        status=BatchStatus.DECIDED, settled_at__gt=now - DECIDED_FOR
    )


def _build_place(batch: Batch) -> CursorPosition:
    if batch.settled_at is None:
        return CursorPosition(batch.formed_at, batch.pk, WAITING)
    return CursorPosition(batch.settled_at, batch.pk, DECIDED)


def _load_totals(
    batches: Sequence[Batch], now: datetime
) -> dict[str, Mapping[str, Any]]:
    """Load the count, sum, cost, risk, earliest deadline and warnings of each batch.

    Two queries, plus those of `costs` and of effects that this process has not
    described before.
    """
    place = "request__batch_items"
    waiting = Q(request__status=RequestStatus.PENDING, request__expires_at__gt=now)
    decided = Q(**{f"{place}__batch__status": BatchStatus.DECIDED})
    recalled = Q(**{f"{place}__left_at__gt": F(f"{place}__batch__settled_at")})
    later = RequestVersion.objects.filter(
        request=OuterRef("request"),
        cause="recalled",
        created_at__gte=OuterRef(f"{place}__batch__settled_at"),
    )
    rows = (
        RequestVersion.objects.filter(
            waiting | decided,
            Q(**{f"{place}__left_at": None}) | recalled,
            number=F("request__version"),
            **{f"{place}__batch__in": batches},
        )
        # After the filter, so that it means the same member's row: a request that came
        # back has two.
        .annotate(taken_back=Exists(later))
        .values(batch=F(f"{place}__batch"))
        .annotate(
            count=Count("pk"),
            revisions=ArrayAgg("revision", order_by="revision"),
            hashes=ArrayAgg("revision__action_hash", order_by="revision"),
            sum=Sum("revision__amount_minor"),
            currency=Min("revision__currency"),
            undone=Count(
                "pk", filter=Q(taken_back=True) | waiting & Q(cause="recalled")
            ),
            expires=Min("request__expires_at"),
            since=Min("request__opened_at"),
            frozen=Min(F("request__expires_at") - F("request__frozen_through")),
            risk=Min("risk"),
            steps=Min(Cast("steps", TextField())),  # the same in all members
        )
        .order_by()
    )
    totals = {row["batch"]: row for row in rows}
    inside = {pk: row["revisions"] for pk, row in totals.items()}
    cost = links.load_costs_by_batch(batches, inside)
    warned = _load_warnings(totals.values())
    return {
        pk: {**row, "costs": cost.get(pk, []), "warnings": warned[pk]}
        for pk, row in totals.items()
    }


def _load_warnings(rows: Collection[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """What the requests of each batch warn of, each warning once."""
    hashes = {
        revision: digest
        for row in rows
        for revision, digest in zip(row["revisions"], row["hashes"], strict=True)
    }
    newest = readings.list_newest_by_id(hashes) if hashes else {}
    briefs = describe.load_briefs_by_id(
        hashes, {pk: reading.pk for pk, reading in newest.items()}
    )
    return {
        row["batch"]: tuple(
            dict.fromkeys(
                text for pk in row["revisions"] for text in briefs[pk].warnings
            )
        )
        for row in rows
    }


def _build_item(batch: Batch, facts: Mapping[str, Any], now: datetime) -> BatchListItem:
    total = None if facts["sum"] is None else Money(facts["sum"], facts["currency"])
    waits = batch.status in OPEN_STATUSES and facts["count"] > 1
    return BatchListItem(
        id=batch.pk,
        url=reverse("reviews:batch", args=[batch.pk]),
        warnings=facts["warnings"],
        amount=format_money(total) if total is not None else "",
        title=build_batch_title(
            tools.load_definition(batch.tool),
            facts["count"],
            total,
            None,
            facts["costs"],
        ),
        risk=facts["risk"],
        required=format_required_people(json.loads(facts["steps"])),
        tool=batch.tool.name,
        agent=batch.agent,
        forming=batch.status == BatchStatus.FORMING,
        decided=batch.status == BatchStatus.DECIDED,
        clock=_build_clock(facts, now) if waits else None,
        at=batch.settled_at or facts["expires"],
        ending=_describe_end(batch, facts),
    )


def _describe_end(batch: Batch, facts: Mapping[str, Any]) -> str:
    """What came after the decision; empty while it stands."""
    if facts["undone"]:
        every = facts["undone"] == facts["count"]
        return "Undone" if every else f"{facts['undone']} of {facts['count']} undone"
    return "Stopped after a failure" if batch.halted_at else ""


def _build_clock(facts: Mapping[str, Any], now: datetime) -> DeadlineClock:
    """The earliest deadline. During an incident it shows the time that was left, which
    does not run."""
    clock = formatting.build_clock(facts["expires"], since=facts["since"], now=now)
    if facts["frozen"] is None:
        return clock
    return replace(clock, left=facts["frozen"], urgent=False, frozen=True)
