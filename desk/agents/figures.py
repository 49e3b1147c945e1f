"""What the agents' list counts for each agent: the proposals of 24 hours by how they
ended, the median time to a decision, unknown results, and when it last called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Aggregate,
    Count,
    DurationField,
    F,
    Max,
    OuterRef,
    QuerySet,
    Subquery,
)

from agents.models import AgentKey
from agents.representation import annotate_status
from policies.models import Person
from reviews.choices import DECIDED, ExecutionStatus, StopMode
from reviews.models import ApprovalRequest, Execution, Proposal

from ..components import visibility

DAY = timedelta(hours=24)
# The newest of a day that are counted, so that the page's cost is bounded.
MAX_COUNTED = 10_000
REFUSED_WORDS = ("blocked", "rejected", "refused")
FAILED_WORDS = ("failed", "unknown")
# From so many proposals on, and if at least half are refused, the agent has a problem.
FEWEST_REFUSED = 5


class Median(Aggregate):
    """The median of a duration; rows without one do not count."""

    function = "percentile_cont"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DurationField()


@dataclass(frozen=True, slots=True)
class AgentFigures:
    """An agent's last 24 hours. `counts` are the visible proposals by the status word
    that the agent sees; `median` is how long decided requests waited. `unknown` counts
    every result that is still unknown, however old. `mode` is None unless the agent is
    paused or stopped; `seen_at` is its last call."""

    counts: Mapping[str, int]
    median: timedelta | None
    unknown: int
    mode: StopMode | None
    seen_at: datetime | None

    @property
    def proposed(self) -> int:
        return sum(self.counts.values())

    @property
    def executed(self) -> int:
        return self.counts.get("executed", 0)

    @property
    def refused(self) -> int:
        """What the policy blocked, people rejected, or a check before execution
        refused."""
        return sum(self.counts.get(word, 0) for word in REFUSED_WORDS)

    @property
    def failed(self) -> int:
        """What failed or has an unknown result."""
        return sum(self.counts.get(word, 0) for word in FAILED_WORDS)

    @property
    def expired(self) -> int:
        return self.counts.get("expired", 0)

    @property
    def problems(self) -> list[str]:
        """What is wrong with the agent, in words, the worst first."""
        plain_failures = self.counts.get("failed", 0)
        often = self.refused >= max(FEWEST_REFUSED, self.proposed / 2)
        lines = [
            (self.unknown, f"{self.unknown} with unknown result"),
            (plain_failures, f"{plain_failures} failed"),
            (self.expired, f"{self.expired} expired, nobody decided in time"),
            (often, f"{self.refused} of {self.proposed} refused"),
        ]
        return [words for holds, words in lines if holds]

    @property
    def severity(self) -> tuple[int, ...]:
        """Sorts the agents with the worst problems first."""
        halted = list(StopMode).index(self.mode) + 1 if self.mode else 0
        worst = (self.unknown, halted, self.counts.get("failed", 0), self.expired)
        return tuple(-n for n in (*worst, len(self.problems)))


def select_last_use() -> Subquery:
    """When any key of the agent of the outer query was last used."""
    keys = AgentKey.objects.filter(agent=OuterRef("pk")).order_by().values("agent")
    return Subquery(keys.annotate(last=Max("last_used_at")).values("last"))


def count_by_status(proposals: QuerySet[Proposal]) -> list[tuple[str, str, int, Any]]:
    """The agent, the status word, the number, and the newest, in two queries."""
    return list(
        annotate_status(visibility.select_newest(proposals, MAX_COUNTED))
        .order_by()
        .values_list("agent", "said")
        .annotate(n=Count("pk"), newest=Max("created_at"))
    )


def compute_medians(requests: QuerySet[ApprovalRequest]) -> dict[str, timedelta]:
    """How long decided requests of each agent waited, at the median; one query."""
    return dict(
        requests.filter(status__in=DECIDED)
        .order_by()
        .values_list("agent")
        .annotate(median=Median(F("settled_at") - F("opened_at")))
    )


def load_figures(
    person: Person,
    agents: list[Any],
    modes: Mapping[str, StopMode],
    now: datetime,
) -> dict[str, AgentFigures]:
    """Count the last day of these agents, which have `last_use` annotated, as far as
    this person may see it: four queries. `modes` are the switches by agent."""
    since, counts = now - DAY, dict[str, dict[str, int]]()
    seen = {agent.slug: agent.last_use for agent in agents}
    visible = visibility.select_visible_proposals(person)
    for slug, word, n, newest in count_by_status(visible.filter(created_at__gt=since)):
        counts.setdefault(slug, {})[word] = n
        seen[slug] = max(filter(None, (seen.get(slug), newest)))
    requests = visibility.select_visible_requests(person)
    medians = compute_medians(requests.filter(settled_at__gt=since))
    unknown = _count_unknown(visible)
    return {
        agent.slug: AgentFigures(
            counts.get(agent.slug, {}),
            medians.get(agent.slug),
            unknown.get(agent.slug, 0),
            modes.get(agent.slug, modes.get("")),
            seen[agent.slug],
        )
        for agent in agents
    }


def _count_unknown(visible: QuerySet[Proposal]) -> dict[str, int]:
    effects = Execution.objects.filter(status=ExecutionStatus.UNKNOWN)
    rows = visible.filter(pk__in=effects.values("proposal")).order_by()
    return dict(rows.values_list("agent").annotate(n=Count("pk", distinct=True)))
