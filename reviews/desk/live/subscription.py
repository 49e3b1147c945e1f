"""What an open page hears: its person's numbers, what is new since it was made, and
which of the requests on it changed.

Many pages are answered by one query, so that a change costs the same however many of
them are open.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from django.db import connection
from django.utils.dateparse import parse_datetime

from policies.models import Person
from reviews import permissions
from reviews.desk.components import badges, visibility
from reviews.desk.components.badges import News
from reviews.stops import stops

MOST_ABOUT = 60  # requests of one page
# In Django's own server a stream is one event: the browser comes again after this.
RETRY_MS = 15_000


@dataclass(frozen=True, slots=True)
class Viewer:
    """One page: whose it is, when it was made and which requests are on it.

    `standing` is what the person may do, as a digest: when it differs, everything on
    the page may, and the stream ends.
    """

    person: int
    standing: str
    since: datetime | None = None
    about: Mapping[str, str] = field(default_factory=dict)  # subject -> request id

    def dump(self) -> str:
        """As a header from the view to whoever holds the stream."""
        since = self.since.isoformat() if self.since else ""
        return json.dumps({**asdict(self), "since": since})

    @classmethod
    def load(cls, dumped: str) -> Viewer:
        said = json.loads(dumped)
        return cls(**{**said, "since": moment(said["since"])})

    def like(self, other: Viewer) -> bool:
        """Whether it is the same person with the same standing."""
        return (self.person, self.standing) == (other.person, other.standing)

    def concerned(self, subjects: Collection[str] | None) -> set[str]:
        """Which requests on the page are among what changed; None is everything."""
        if subjects is None or stops.ANY in subjects:
            return set(self.about.values())
        return {self.about[one] for one in subjects if one in self.about}


def viewer(person: Person, query: Mapping[str, str], about: Iterable[str]) -> Viewer:
    """Who looks, at what. A request that this person may not see is left out."""
    wanted = list(about)[:MOST_ABOUT]
    seen: dict[str, str] = {}
    if wanted:
        # guard: stream-visible
        found = visibility.requests(person).filter(pk__in=wanted)
        for pk, proposal in found.values_list("pk", "proposal_id"):
            seen |= {pk: pk, proposal: pk}
    return Viewer(person.pk, standing(person), moment(query.get("since", "")), seen)


def standing(person: Person) -> str:
    """A digest of the person's roles and queues."""
    roles = sorted(permissions.roles_of(person))
    said = f"{roles}{sorted(permissions.queues_of(person))}{person.is_active}"
    return sha256(said.encode()).hexdigest()[:16]


def moment(said: str) -> datetime | None:
    """None for what is no moment: a thirteenth month, no zone, before the year 1."""
    try:
        found = parse_datetime(said.replace(" ", "+"))
        return found.astimezone(UTC) if found and found.tzinfo else None
    except (ValueError, OverflowError):
        return None


def states(viewers: Collection[Viewer]) -> dict[int, News]:
    """The numbers of each person who looks, in two queries for all of them."""
    since: dict[int, datetime] = {}
    for one in viewers:
        earliest = since.get(one.person)
        if one.since and (earliest is None or one.since < earliest):
            since[one.person] = one.since
    return badges.of_people({one.person for one in viewers}, since)


def said(viewer: Viewer, news: News, changed: Collection[str] = ()) -> dict[str, Any]:
    """What one page is told: for each badge its number, how many came after the page
    was made, and what changed on it."""
    told: dict[str, Any] = {"badges": asdict(news.badges)}
    if viewer.since is not None:
        told["new"] = len(news.opened) - bisect_right(news.opened, viewer.since)
    if changed:
        told["changed"] = sorted(changed)
    return told


def event(told: Mapping[str, Any], number: str) -> str:
    """One event of the stream. Its number is the time of the database: whoever comes
    back with it is told the state as it is now, so nothing is missed."""
    return f"id: {number}\ndata: {json.dumps(told, separators=(',', ':'))}\n\n"


def first(viewer: Viewer) -> str:
    """The whole answer of a server that holds no streams: the state, and when to ask
    again."""
    news = states([viewer])[viewer.person]
    return f"retry: {RETRY_MS}\n{event(said(viewer, news), number())}"


def number() -> str:
    """The database's clock in microseconds: later states have higher numbers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1e6)::bigint")
        return str(cursor.fetchone()[0])
