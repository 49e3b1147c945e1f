"""What a drill found: for each channel, how many messages went out and how soon people
opened their link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from notifications.channels import registry
from reviews.models import DrillSighting, Notice, NotificationDrill
from stats.charts import format_seconds
from stats.readings import Times


@dataclass(frozen=True, slots=True)
class ChannelResult:
    """One channel of a drill. `delivered`: the channel took the message. `held`: not
    sent, because of quiet hours, a digest or the hourly limit. Of a place such as a
    room, several people may see one message."""

    title: str
    sent: int
    delivered: int
    held: int
    seen: int
    median: str
    p90: str


@dataclass(frozen=True, slots=True)
class DrillResult:
    """A drill as its page and the on-call page show it. `unseen` counts the people who
    opened no message while it ran."""

    drill: NotificationDrill
    runs: bool
    people: int
    seen: int
    median: str
    p90: str
    channels: Sequence[ChannelResult]

    @property
    def unseen(self) -> int:
        return self.people - self.seen


def build_results(
    drills: Sequence[NotificationDrill], now: datetime
) -> list[DrillResult]:
    """Build the results of these drills, in two queries."""
    notices, sightings = defaultdict(list), defaultdict(list)
    for notice in Notice.objects.filter(drill__in=drills):
        notices[notice.drill_id].append(notice)
    for row in DrillSighting.objects.filter(drill__in=drills).select_related("person"):
        sightings[row.drill_id].append(row)
    return [
        _build_result(drill, notices[drill.pk], sightings[drill.pk], now)
        for drill in drills
    ]


def _build_result(
    drill: NotificationDrill,
    notices: Sequence[Notice],
    sightings: Sequence[DrillSighting],
    now: datetime,
) -> DrillResult:
    asked = [
        sighting for sighting in sightings if sighting.person.public_id in drill.people
    ]
    times = _measure_times(drill, asked)
    used = {notice.channel for notice in notices} | {
        sighting.channel for sighting in sightings
    }
    known = registry.load_channels()
    return DrillResult(
        drill=drill,
        runs=drill.ends_at > now,
        people=len(drill.people),
        seen=len(asked),
        median=format_seconds(times.median),
        p90=format_seconds(times.p90),
        channels=[
            _build_channel(
                drill,
                known[name].title if name in known else name or "The page itself",
                [notice for notice in notices if notice.channel == name],
                [sighting for sighting in sightings if sighting.channel == name],
            )
            for name in sorted(used, key=lambda name: (not name, name))
        ],
    )


def _build_channel(
    drill: NotificationDrill,
    title: str,
    notices: Sequence[Notice],
    sightings: Sequence[DrillSighting],
) -> ChannelResult:
    times = _measure_times(drill, sightings)
    return ChannelResult(
        title=title,
        sent=sum(bool(notice.sent_at or notice.attempts) for notice in notices),
        delivered=sum(notice.sent_at is not None for notice in notices),
        held=sum(not (notice.sent_at or notice.attempts) for notice in notices),
        seen=times.total,
        median=format_seconds(times.median),
        p90=format_seconds(times.p90),
    )


def _measure_times(
    drill: NotificationDrill, sightings: Iterable[DrillSighting]
) -> Times:
    """From the beginning of the drill until each person opened the link."""
    counts: dict[str, int] = defaultdict(int)
    for sighting in sightings:
        counts[str(round((sighting.at - drill.started_at).total_seconds()))] += 1
    return Times(counts)
