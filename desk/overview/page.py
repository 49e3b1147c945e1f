"""The overview: the home of supervisors, administrators and auditors. Each of its parts
answers a question at a glance and leads to the page that answers it in full."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone

from journal.models import LogPosition
from notifications.on_call import duty
from policies.choices import Role
from policies.models import Person, Queue
from reviews import permissions
from reviews.choices import RequestStatus
from reviews.effects.wording import format_duration
from reviews.roles import Permission

from ..agents.visibility import AgentLine, list_agents
from ..components import visibility
from ..components.formatting import round_took
from ..queue.rows import QueueRow, list_queue_rows
from ..queue.search import FoundRequest
from ..workload.page import list_present_people
from . import figures
from .figures import DeciderCount, QueueCount
from .first_steps import AdministratorPart, build_administrator_part
from .open_changes import TwoPersonChange, list_open_changes
from .plot import HourPlot, build_plot

MAX_EXPIRING = 6
MAX_AGENTS = 8
PLOTTED_HOURS = 12
MAX_PEOPLE = 200
PRESETS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("Decided quickly", "Faster than a person can read the page", {"flag": "fast"}),
    ("Changed before approval", "Arguments that a person edited", {"flag": "modify"}),
    (
        "Claims of others ended",
        "A supervisor took a request from its holder",
        {"flag": "broken"},
    ),
    ("Values revealed", "Sensitive values that somebody read", {"flag": "revealed"}),
    (
        "Attention checks failed",
        "Wrong answers before a decision",
        {"flag": "check_missed"},
    ),
    ("Policy", "Drafts, activations, reverts", {"kind": "policy"}),
    (
        "People",
        "Accounts, roles, queues, second factors, ended sessions; not each sign-in",
        {"kind": "person"},
    ),
    ("Stops and pauses", "Who halted and resumed what", {"kind": "stop"}),
)


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One queue with the people behind it, and what its pace comes to."""

    count: QueueCount
    on_duty: Sequence[str]
    on_call: Sequence[str]
    outlook: str
    age: timedelta | None  # of the oldest request that waits

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing happened lately."""
        count = self.count
        return not (count.waiting or count.arrived or count.decided or count.expired)

    @property
    def is_unattended(self) -> bool:
        """Whether requests wait where nobody is on duty."""
        return bool(self.count.waiting) and not self.on_duty


@dataclass(frozen=True, slots=True)
class DeciderLine:
    person: Person
    count: DeciderCount
    here: bool

    @property
    def median(self) -> str:
        """How long a decision took from opening the request, in the middle."""
        if self.count.median_ms is None:
            return ""
        return format_duration(round_took(self.count.median_ms))

    @property
    def verdicts(self) -> list[str]:
        """What the decisions were, in words."""
        count = self.count
        answered = count.approved + count.modified + count.rejected
        lines = [
            (count.approved, "approved unchanged"),
            (count.modified, "changed"),
            (count.rejected, "rejected"),
            (count.decided - answered, "escalated"),
        ]
        return [f"{n} {words}" for n, words in lines if n]


@dataclass(frozen=True, slots=True)
class Preset:
    """A search of the audit log that auditors repeat."""

    label: str
    hint: str
    url: str


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """The whole page; a part that its reader may not see is empty."""

    lines: Sequence[QueueLine]
    expiring: Sequence[QueueRow]
    agents: Sequence[AgentLine]
    deciders: Sequence[DeciderLine]
    plot: HourPlot
    open_changes: Sequence[TwoPersonChange]
    presets: Sequence[Preset]
    head: int | None  # number of the log's newest record
    day_ago: datetime
    week_ago: datetime
    supervises: bool  # whether the workload page is theirs
    audits: bool  # whether the reader exports and decides nothing
    administration: AdministratorPart | None

    @property
    def waiting(self) -> int:
        return sum(line.count.waiting for line in self.lines)

    @property
    def soon(self) -> int:
        return sum(line.count.soon for line in self.lines)

    @property
    def decided(self) -> int:
        return sum(line.count.decided for line in self.deciders)

    @property
    def modified(self) -> int:
        return sum(line.count.modified for line in self.deciders)

    @property
    def rejected(self) -> int:
        return sum(line.count.rejected for line in self.deciders)

    @property
    def expired(self) -> int:
        return sum(line.count.expired for line in self.lines)

    @property
    def oldest(self) -> QueueLine | None:
        """The queue with the request that waits longest."""
        ages = [(line.age, line) for line in self.lines if line.age is not None]
        return max(ages, key=lambda entry: entry[0])[1] if ages else None

    @property
    def unattended(self) -> list[str]:
        return [line.count.title for line in self.lines if line.is_unattended]


def build_overview(person: Person, now: datetime) -> OverviewPage:
    """Build the page. Raises NotPermitted for those who may not see statistics."""
    permissions.check_permission(person, Permission.SEE_STATISTICS)
    queues = _list_queues(person)
    people = _load_deciding_people()
    here = list_present_people(now)
    ids = [queue.pk for queue in queues]
    full_hour = timezone.localtime(now).replace(minute=0, second=0, microsecond=0)
    since = full_hour - (PLOTTED_HOURS - 1) * figures.HOUR
    counts = figures.count_hours(person, ids, since, now)
    exports = permissions.has_permission(person, Permission.EXPORT)
    role = permissions.find_deciding_role(person)
    return OverviewPage(
        day_ago=now - figures.DAY,
        week_ago=now - figures.WEEK,
        lines=[
            _build_line(count, people, here, now)
            for count in figures.count_queues(person, ids, now)
        ],
        expiring=_list_expiring(person, ids, now),
        agents=list_agents(person, now)[:MAX_AGENTS],
        deciders=_list_deciders(person, ids, now, here),
        plot=build_plot(counts, since.hour, PLOTTED_HOURS),
        open_changes=list_open_changes(person, now),
        presets=_list_presets() if exports else [],
        head=_find_newest_number() if exports else None,
        supervises=role is Role.SUPERVISOR,
        audits=exports and role is None,
        administration=build_administrator_part(
            person, sum(bool(permissions.queues_of(one)) for one in people)
        ),
    )


def _list_queues(person: Person) -> list[Queue]:
    """A supervisor's own queues; all of them for those who decide nothing."""
    queues = Queue.objects.order_by("title")
    if permissions.find_deciding_role(person) is None:
        return list(queues)
    return list(queues.filter(pk__in=permissions.queues_of(person)))


def _load_deciding_people() -> list[Person]:
    people = Person.objects.filter(is_active=True, groups__isnull=False)
    ids = list(people.values_list("pk", flat=True).distinct()[:MAX_PEOPLE])
    return [
        person
        for person in permissions.list_people_with_roles(ids)
        if permissions.find_deciding_role(person) is not None
    ]


def _build_line(
    count: QueueCount, people: Sequence[Person], here: Collection[int], now: datetime
) -> QueueLine:
    admitted = [p for p in people if count.pk in permissions.queues_of(p)]
    on_call = duty.select_planned(count.pk, admitted, now)
    return QueueLine(
        count=count,
        on_duty=sorted(str(person) for person in admitted if person.pk in here),
        on_call=sorted(str(person) for person in admitted if person.pk in on_call),
        outlook=_describe_outlook(count),
        age=now - count.oldest if count.oldest else None,
    )


def _describe_outlook(count: QueueCount) -> str:
    """What the last hour's pace comes to."""
    gain = count.decided - count.arrived
    if not count.waiting:
        return "Nothing waits"
    if gain > 0:
        left = timedelta(hours=count.waiting / gain)
        return f"Clear in {format_duration(left)}"
    if gain < 0:
        return f"Grows by {-gain} an hour"
    return "Stays as it is" if count.decided else "Nobody decided in the last hour"


def _list_expiring(
    person: Person, queues: Collection[int], now: datetime
) -> list[QueueRow]:
    waiting = visibility.select_visible_requests(person).filter(
        status=RequestStatus.PENDING, expires_at__gt=now, queue__in=queues
    )
    ids = waiting.order_by("expires_at").values_list("pk", flat=True)[:MAX_EXPIRING]
    return list_queue_rows([FoundRequest(pk) for pk in ids], person, now)


def _list_deciders(
    person: Person,
    queues: Collection[int],
    now: datetime,
    here: Collection[int],
) -> list[DeciderLine]:
    counts = figures.count_deciders(person, queues, now)
    people: Mapping[int, Person] = Person.objects.in_bulk([one.pk for one in counts])
    return [DeciderLine(people[count.pk], count, count.pk in here) for count in counts]


def _list_presets() -> list[Preset]:
    log = reverse("reviews:log")
    return [
        Preset(label, hint, f"{log}?{urlencode(filters)}")
        for label, hint, filters in PRESETS
    ]


def _find_newest_number() -> int | None:
    numbers = LogPosition.objects.order_by("-record").values_list("seq", flat=True)
    return numbers.first()
