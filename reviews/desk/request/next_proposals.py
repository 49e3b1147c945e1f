"""What an agent proposed after a request came to its end: the answer to a decision."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.urls import reverse

from reviews.choices import RequestStatus
from reviews.desk.components import visibility
from reviews.effects import describe
from reviews.models import Proposal
from reviews.presenters.shapes import Part

from .load import Loaded

WATCHED = timedelta(minutes=2)  # after the end, an open page asks for it
_MOST = 20  # of a run are looked through


@dataclass(frozen=True, slots=True)
class Following:
    """The next proposal; `url` is its request where one was made, else its run."""

    agent: str
    effect: tuple[Part, ...]
    url: str
    asks: bool


def ended_at(loaded: Loaded) -> datetime | None:
    """When nothing could change any more."""
    if not loaded.finished:
        return None
    if loaded.request.status == RequestStatus.AUTHORIZED and loaded.execution:
        return loaded.execution.finished_at
    return loaded.request.settled_at


def is_watched(loaded: Loaded) -> bool:
    """Whether the answer may be on its way."""
    ended = ended_at(loaded)
    return ended is not None and loaded.now < ended + WATCHED


def after(loaded: Loaded) -> Following | None:
    """What took its place, else the next of its run, or of the runs that it started,
    that people are asked about; else the next that they are not."""
    ended = ended_at(loaded)
    if ended is None:
        return None
    own = loaded.request.proposal
    run = Q(agent=own.agent, thread=own.thread, created_at__gt=own.created_at)
    later = Q(created_at__gt=ended) | Q(supersedes=own.pk)
    found = visibility.proposals(loaded.person).filter(later, run | Q(parent=own.pk))
    rows = found.order_by("created_at", "pk").select_related("request")[:_MOST]
    asked = {one.pk for one in rows if hasattr(one, "request")}
    first = min(
        rows,
        key=lambda one: (one.supersedes != own.pk, one.pk not in asked, one.created_at),
        default=None,
    )
    return _following(loaded, first, first.pk in asked) if first else None


def _following(loaded: Loaded, row: Proposal, asks: bool) -> Following:
    if asks and visibility.requests(loaded.person).filter(proposal=row).exists():
        url = reverse("reviews:request_detail", args=[row.request.pk])
    else:
        url = reverse("agents:thread", args=[row.agent, row.thread])
    return Following(row.agent, describe.effect(row.current), url, asks)
