"""What an open page receives: the person's numbers, what is new, and which of its
requests changed.

One query answers many pages, so that a change costs the same however many are open.
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

from journal import clock, notify
from policies.models import Person
from reviews import permissions
from reviews.stops import stops

from ..components import badges, visibility
from ..components.badges import BadgeUpdate

MAX_REQUESTS = 60  # requests of one page
# Under Django's own server a stream is one event; the browser reconnects after this.
RETRY_MS = 15_000


@dataclass(frozen=True, slots=True)
class Viewer:
    """One open page: its person, when it was rendered, and the requests on it.

    `standing` is a digest of what the person may do. When it changes, everything on the
    page may change, so the stream ends.
    """

    person: int
    caller: str  # as the subject of changes to what the person may do
    standing: str
    since: datetime | None = None
    about: Mapping[str, str] = field(default_factory=dict)  # subject -> request id

    def dump(self) -> str:
        """Serialise it as a header, from the view to the event loop that holds the
        stream."""
        since = self.since.isoformat() if self.since else ""
        return json.dumps({**asdict(self), "since": since})

    @classmethod
    def load(cls, dumped: str) -> Viewer:
        """Parse such a header."""
        fields = json.loads(dumped)
        return cls(**{**fields, "since": parse_moment(fields["since"])})

    def like(self, other: Viewer) -> bool:
        """Whether it is the same person with the same standing."""
        return (self.person, self.standing) == (other.person, other.standing)

    def concerned(self, subjects: Collection[str] | None) -> set[str]:
        """The requests on the page among the changed subjects. None means that
        everything changed."""
        if subjects is None or stops.STOPS_CHANNEL in subjects:
            return set(self.about.values())
        return {self.about[subject] for subject in subjects if subject in self.about}


def build_viewer(
    person: Person, query: Mapping[str, str], about: Iterable[str]
) -> Viewer:
    """Build the viewer of a page. Requests that this person may not see are left
    out."""
    wanted = list(about)[:MAX_REQUESTS]
    seen: dict[str, str] = {}
    if wanted:
        # guard: stream-visible
        visible = visibility.select_visible_requests(person).filter(pk__in=wanted)
        for pk, proposal in visible.values_list("pk", "proposal_id"):
            seen |= {pk: pk, proposal: pk}
    return Viewer(
        person.pk,
        notify.name_caller("person", person.public_id),
        compute_standing(person),
        parse_moment(query.get("since", "")),
        seen,
    )


def compute_standing(person: Person) -> str:
    """Compute a digest of the person's roles, queues and active flag."""
    roles = sorted(permissions.roles_of(person))
    authority = f"{roles}{sorted(permissions.queues_of(person))}{person.is_active}"
    return sha256(authority.encode()).hexdigest()[:16]


def parse_moment(text: str) -> datetime | None:
    """Parse a time with a zone; None for an invalid one, such as a thirteenth month or
    a year before 2000."""
    try:
        moment = parse_datetime(text.replace(" ", "+"))
        at = moment.astimezone(UTC) if moment and moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
    return at if at and clock.is_usable(at) else None


def load_states(viewers: Collection[Viewer]) -> dict[int, BadgeUpdate]:
    """Load the numbers of each person, in two queries for all of them."""
    since: dict[int, datetime] = {}
    for viewer in viewers:
        earliest = since.get(viewer.person)
        if viewer.since and (earliest is None or viewer.since < earliest):
            since[viewer.person] = viewer.since
    return badges.collect_badge_updates({viewer.person for viewer in viewers}, since)


def build_message(
    viewer: Viewer, news: BadgeUpdate, changed: Collection[str] = ()
) -> dict[str, Any]:
    """Build what one page receives: the number of each badge, how many requests arrived
    since it was rendered, and what changed on it."""
    message: dict[str, Any] = {"badges": asdict(news.badges)}
    if viewer.since is not None:
        message["new"] = len(news.opened) - bisect_right(news.opened, viewer.since)
    if changed:
        message["changed"] = sorted(changed)
    return message


def format_event(message: Mapping[str, Any], number: str) -> str:
    """Format one server-sent event.

    Its id is the database's time. A browser that reconnects with it receives the
    current state, so it misses nothing.
    """
    return f"id: {number}\ndata: {json.dumps(message, separators=(',', ':'))}\n\n"


def build_first_answer(viewer: Viewer) -> str:
    """Build the whole response of a server that holds no streams: the state, and when
    to ask again."""
    news = load_states([viewer])[viewer.person]
    event = format_event(build_message(viewer, news), load_event_number())
    return f"retry: {RETRY_MS}\n{event}"


def load_event_number() -> str:
    """Load the database's clock in microseconds: later states have higher numbers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1e6)::bigint")
        return str(cursor.fetchone()[0])
