"""Thirty days of an owner's own agents, from the rows themselves: what they asked for
and what came of it, how long people took, which rules refused, and what reviewers
changed. The statistics of the gate have no figures by agent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import (
    Case,
    Count,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    FloatField,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Cast, Extract, TruncDate
from django.utils.safestring import SafeString

from agents.models import Agent
from agents.representation import annotate_status
from policies.evaluation import AppliedRule
from policies.models import Person
from reviews.choices import DECIDED
from reviews.models import Revision
from stats.charts import Line, LinePanel, Panel, Point, Unit, format_day

from ..components import svg, visibility
from . import figures
from .figures import FAILED_WORDS, REFUSED_WORDS
from .own import BY_PERSON, GRANTED_WORDS, load_changes
from .own_refusals import (
    MAX_LINKED,
    LinkedProposal,
    RefusalGroup,
    list_refusals,
    load_linked,
)

DAYS = 30
MAX_COUNTED = 5000  # the newest proposals of the period
MAX_RULES = 12
MAX_EDITED = 200  # the newest proposals whose changed fields are read
MAX_FIELDS = 12


@dataclass(frozen=True, slots=True)
class OutcomeGroup:
    """The proposals of an agent, a day and an outcome. `waits` are the seconds that
    their decided requests were open."""

    agent: str
    day: date
    word: str
    blocked_by: str
    edited: bool
    count: int
    newest: datetime
    waits: Sequence[float]


@dataclass(slots=True)
class Tally:
    """The figures of some proposals."""

    asked: int = 0
    newest: datetime | None = None
    edited: int = 0
    words: Counter[str] = field(default_factory=Counter)
    waits: list[float] = field(default_factory=list)

    def add(self, group: OutcomeGroup) -> None:
        """Count these proposals as well."""
        self.asked += group.count
        self.newest = max(self.newest or group.newest, group.newest)
        self.edited += group.count if group.edited else 0
        self.words[group.word] += group.count
        self.waits += group.waits

    def _sum(self, words: Iterable[str]) -> int:
        return sum(self.words[word] for word in words)

    @property
    def granted(self) -> int:
        return self._sum(GRANTED_WORDS)

    @property
    def refused(self) -> int:
        return self._sum(REFUSED_WORDS)

    @property
    def failed(self) -> int:
        return self._sum(FAILED_WORDS)

    @property
    def expired(self) -> int:
        return self.words["expired"]

    @property
    def pending(self) -> int:
        return self.words["pending"]

    @property
    def median(self) -> timedelta | None:
        """How long decided requests waited at the median; None without any."""
        return self._find_wait(50)

    @property
    def p90(self) -> timedelta | None:
        """Within which nine of ten decided requests were decided."""
        return self._find_wait(90)

    def _find_wait(self, percent: int) -> timedelta | None:
        waits = sorted(self.waits)
        if not waits:
            return None
        nearest = -(-len(waits) * percent // 100) - 1
        return timedelta(seconds=waits[nearest])


@dataclass(frozen=True, slots=True)
class AgentStatistics:
    """One agent's figures, and when it last called."""

    agent: Agent
    tally: Tally
    seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class RuleCount:
    """A rule that refused so many proposals, and its sentence as of the newest."""

    rule: str
    text: str
    count: int


@dataclass(frozen=True, slots=True)
class FieldCount:
    """An argument that reviewers changed so often, and some proposals with it."""

    label: str
    count: int
    changed: Sequence[LinkedProposal]


@dataclass(frozen=True, slots=True)
class OwnStatistics:
    """The page. `rules` blocked, `refusals` came later, and together they are what was
    refused. `fields` are the arguments that reviewers changed, with how often;
    `drawings` are the plots with their titles, `days` the same numbers as rows."""

    agents: Sequence[AgentStatistics]
    whole: Tally
    rules: Sequence[RuleCount]
    refusals: Sequence[RefusalGroup]
    fields: Sequence[FieldCount]
    drawings: Sequence[tuple[str, SafeString]]
    days: Sequence[tuple[date, Tally]]
    first: date
    last: date

    @property
    def is_all(self) -> bool:
        """Whether the period has no more proposals than were counted."""
        return self.whole.asked < MAX_COUNTED


def build_own_statistics(person: Person, now: datetime) -> OwnStatistics:
    """Build the figures of this person's own agents, in a fixed number of queries and
    of at most MAX_COUNTED proposals. Days are in UTC."""
    last = now.astimezone(UTC).date()
    days = [last - timedelta(days=n) for n in reversed(range(DAYS))]
    own = Agent.objects.filter(owner=person).select_related("owner")
    rows: list[Any] = list(
        own.annotate(last_use=figures.select_last_use()).order_by("name")
    )
    proposals = _select_period(person, [row.slug for row in rows], days[0])
    outcomes = _load_outcomes(proposals)
    whole = Tally()
    by_agent: dict[str, Tally] = defaultdict(Tally)
    by_day: dict[date, Tally] = defaultdict(Tally)
    for group in outcomes:
        for tally in (whole, by_agent[group.agent], by_day[group.day]):
            tally.add(group)
    lines = [(day, by_day[day]) for day in days]
    return OwnStatistics(
        agents=[_build_line(row, by_agent[row.slug]) for row in rows],
        whole=whole,
        rules=_count_rules(proposals, outcomes),
        refusals=list_refusals(proposals) if whole.refused else [],
        fields=_count_fields(proposals) if whole.edited else [],
        drawings=_draw(lines) if whole.asked else [],
        days=[line for line in lines if line[1].asked],
        first=days[0],
        last=last,
    )


def _build_line(agent: Any, tally: Tally) -> AgentStatistics:
    """`agent` has `last_use` annotated."""
    seen = max(filter(None, (agent.last_use, tally.newest)), default=None)
    return AgentStatistics(agent, tally, seen)


def _select_period(person: Person, slugs: list[str], first: date) -> QuerySet[Any]:
    """The newest proposals since that day, with `edited` annotated."""
    since = datetime(first.year, first.month, first.day, tzinfo=UTC)
    visible = visibility.select_visible_proposals(person)
    period = visible.filter(agent__in=slugs, created_at__gte=since, canary=False)
    by_person = Revision.objects.filter(
        proposal=OuterRef("pk"), number__gt=1, author_kind=BY_PERSON
    )
    # Most proposals have one revision: nothing is looked up for them.
    edited = Case(When(revision__gt=1, then=Exists(by_person)), default=Value(False))
    newest = visibility.select_newest(period, MAX_COUNTED)
    rows: QuerySet[Any] = newest.annotate(edited=edited)
    return rows


def _load_outcomes(proposals: QuerySet[Any]) -> list[OutcomeGroup]:
    """The proposals by agent, day and outcome, grouped by the database."""
    waited = ExpressionWrapper(
        F("request__settled_at") - F("request__opened_at"), DurationField()
    )
    seconds = Cast(Extract(waited, "epoch"), FloatField())
    groups = (
        annotate_status(proposals)
        .annotate(day=TruncDate("created_at", tzinfo=UTC))
        .order_by()
        .values_list("agent", "day", "said", "blocked_by", "edited")
        .annotate(
            n=Count("pk"),
            newest=Max("created_at"),
            waits=ArrayAgg(seconds, filter=Q(request__status__in=DECIDED)),
        )
    )
    return [
        OutcomeGroup(agent, day, word or "", rule, edited, n, newest, waits or [])
        for agent, day, word, rule, edited, n, newest, waits in groups
    ]


def _count_rules(
    proposals: QuerySet[Any], outcomes: Iterable[OutcomeGroup]
) -> list[RuleCount]:
    """The rules that blocked most, each with its sentence for the newest proposal."""
    counts: Counter[str] = Counter()
    for group in outcomes:
        if group.blocked_by:
            counts[group.blocked_by] += group.count
    most = counts.most_common(MAX_RULES)
    if not most:
        return []
    newest: Any = (
        proposals.filter(blocked_by__in=[rule for rule, _ in most])
        .order_by("blocked_by", "-created_at")
        .distinct("blocked_by")
        .values("pk")
    )
    texts: dict[str, str] = {}
    revisions = Revision.objects.filter(
        proposal__in=newest, number=F("proposal__revision")
    )
    for rule, evaluation in revisions.values_list("proposal__blocked_by", "evaluation"):
        applied = (AppliedRule(**stored) for stored in evaluation.get("rules", []))
        texts[rule] = " ".join(row.text for row in applied if row.blocks)
    return [RuleCount(rule, texts.get(rule, ""), n) for rule, n in most]


def _count_fields(proposals: QuerySet[Any]) -> list[FieldCount]:
    edited = proposals.filter(edited=True).order_by("-created_at")[:MAX_EDITED]
    counts: Counter[str] = Counter()
    newest: dict[str, list[str]] = defaultdict(list)
    for pk, changes in load_changes(list(edited)).items():
        labels = [change.label for change in changes]
        counts.update(labels)
        for label in labels:
            newest[label].append(pk)
    most = counts.most_common(MAX_FIELDS)
    linked = load_linked({pk for label, _ in most for pk in newest[label][:MAX_LINKED]})
    return [
        FieldCount(label, n, [linked[pk] for pk in newest[label][:MAX_LINKED]])
        for label, n in most
    ]


def _draw(lines: Sequence[tuple[date, Tally]]) -> list[tuple[str, SafeString]]:
    places = [format_day(day) for day, _ in lines]
    tallies = [tally for _, tally in lines]
    counts = [
        Line("asked", [Point(tally.asked, tally.asked) for tally in tallies]),
        Line("granted", [Point(tally.granted, tally.asked) for tally in tallies]),
        Line("refused", [Point(tally.refused, tally.asked) for tally in tallies]),
    ]
    waits = [
        Line("median", [_build_point(t.median, len(t.waits)) for t in tallies]),
        Line("p90", [_build_point(t.p90, len(t.waits)) for t in tallies]),
    ]
    panels: list[tuple[str, str, Panel]] = [
        (
            "A day",
            "Proposals of each day, and how many of them were granted and refused.",
            LinePanel(places, counts, Unit.COUNT, steps=True),
        ),
        (
            "Waited for a decision",
            "How long decided requests of each day waited.",
            LinePanel(places, waits, Unit.SECONDS),
        ),
    ]
    return [
        (title, svg.draw_panel(panel, f"own-{number}", title, sentence))
        for number, (title, sentence, panel) in enumerate(panels)
    ]


def _build_point(wait: timedelta | None, total: int) -> Point:
    return Point(None if wait is None else wait.total_seconds(), total)
