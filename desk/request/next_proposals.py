"""What an agent proposed after a request was finished: its reaction to the decision."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.urls import reverse

from reviews.choices import RequestStatus
from reviews.effects import describe
from reviews.models import Proposal
from reviews.presenters.shapes import SentencePart

from ..components import visibility
from .load import LoadedRequest

WATCH_TIME = timedelta(minutes=2)  # how long after the end an open page polls
_MOST_SEARCHED = 20  # proposals that are searched


@dataclass(frozen=True, slots=True)
class NextProposal:
    """The next proposal; `url` is its request if there is one, else its run. `repeats`:
    it got the rejection of an earlier proposal."""

    agent: str
    effect: tuple[SentencePart, ...]
    url: str
    asks: bool
    repeats: bool


def find_end_time(loaded: LoadedRequest) -> datetime | None:
    """When the request or its execution finished; None while either can change, and for
    a canary, which has no agent."""
    if not loaded.finished or loaded.request.canary:
        return None
    if loaded.request.status == RequestStatus.AUTHORIZED and loaded.execution:
        return loaded.execution.finished_at
    return loaded.request.settled_at


def is_watched(loaded: LoadedRequest) -> bool:
    """Whether an open page still polls for the agent's next proposal."""
    ended = find_end_time(loaded)
    return ended is not None and loaded.now < ended + WATCH_TIME


def find_next_proposal(loaded: LoadedRequest) -> NextProposal | None:
    """The agent's next proposal after the end, or None.

    Preferred in this order: one that supersedes this; one of this run, or of a run it
    started, that people are asked about; any other of these.
    """
    ended = find_end_time(loaded)
    if ended is None:
        return None
    own = loaded.request.proposal
    near = Q(agent=own.agent, thread=own.thread, created_at__gt=own.created_at)
    near |= Q(parent=own.pk)
    if loaded.request.status == RequestStatus.SUPERSEDED:
        # By a proposal of this moment, perhaps of another run; found by this index.
        near |= Q(agent=own.agent, created_at=ended, supersedes=own.pk)
    later = Q(created_at__gt=ended) | Q(supersedes=own.pk)
    found = visibility.select_visible_proposals(loaded.person).filter(later, near)
    rows = found.order_by("created_at", "pk").select_related("request")[:_MOST_SEARCHED]
    asked = {one.pk for one in rows if hasattr(one, "request")}
    first = min(
        rows,
        key=lambda one: (one.supersedes != own.pk, one.pk not in asked, one.created_at),
        default=None,
    )
    return _build_next_proposal(loaded, first, first.pk in asked) if first else None


def _build_next_proposal(
    loaded: LoadedRequest, row: Proposal, asks: bool
) -> NextProposal:
    if (
        asks
        and visibility.select_visible_requests(loaded.person)
        .filter(proposal=row)
        .exists()
    ):
        url = reverse("reviews:request_detail", args=[row.request.pk])
    else:
        url = reverse("agents:thread", args=[row.agent, row.thread])
    return NextProposal(
        agent=row.agent,
        effect=describe.build_effect_sentence(row.current),
        url=url,
        asks=asks,
        repeats=bool(row.repeats),
    )
