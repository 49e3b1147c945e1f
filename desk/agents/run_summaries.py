"""What the lists of runs say of each run beside its status: its newest effect in words,
and what went wrong in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery

from agents.choices import ThreadResult
from agents.models import Thread
from agents.representation import annotate_status
from policies.models import Person
from reviews.effects import describe
from reviews.models import Proposal, Revision
from reviews.presenters.shapes import SentencePart

from ..components import visibility

MAX_COUNTED = 5000  # the newest proposals of all listed runs
PROBLEM_WORDS = {
    "unknown": "with unknown result",
    "failed": "failed",
    "refused": "refused before execution",
    "rejected": "rejected",
    "blocked": "blocked by policy",
    "expired": "expired",
}
# Of these the run did not do what it may report as done.
_UNDONE = ("unknown", "failed")
_RESULT_ICONS = {
    ThreadResult.COMPLETED: "ok",
    ThreadResult.GAVE_UP: "void",
    ThreadResult.FAILED: "no",
}
RunKey = tuple[str, str]  # agent and name


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The newest effect, empty for a run without one, and the proposals by outcome."""

    effect: Sequence[SentencePart]
    counts: Mapping[str, int]

    @property
    def problems(self) -> list[str]:
        """What went wrong, in words, the worst first."""
        return [
            f"{self.counts[word]} {words}"
            for word, words in PROBLEM_WORDS.items()
            if self.counts.get(word)
        ]


def find_result_icon(result: str, outcomes: Collection[str]) -> str:
    """The icon of a finished run with these outcomes. An agent that reports a run as
    completed may not know that an effect failed or has no known result."""
    if result == ThreadResult.COMPLETED and not set(_UNDONE).isdisjoint(outcomes):
        return "warn"
    return _RESULT_ICONS[ThreadResult(result)]


def load_run_summaries(
    person: Person, runs: Sequence[Thread]
) -> dict[RunKey, RunSummary]:
    """The summaries of these runs, whose agents are loaded, from what this person may
    see; four queries, and one for effects that are not cached."""
    if not runs:
        return {}
    visible = visibility.select_visible_proposals(person)
    effects, counts = _load_effects(runs, visible), _count_outcomes(runs, visible)
    return {
        (run.agent.slug, run.name): RunSummary(
            effects.get(run.pk, ()), counts.get((run.agent.slug, run.name), {})
        )
        for run in runs
    }


def _load_effects(
    runs: Iterable[Thread], visible: QuerySet[Proposal]
) -> dict[int, Sequence[SentencePart]]:
    own = visible.filter(agent=OuterRef("agent__slug"), thread=OuterRef("name"))
    newest = Subquery(own.order_by("-created_at").values("pk")[:1])
    rows: Any = Thread.objects.filter(pk__in=[run.pk for run in runs])
    proposals = dict(rows.annotate(newest=newest).values_list("newest", "pk"))
    revisions = Revision.objects.filter(
        proposal__in=[pk for pk in proposals if pk], number=F("proposal__revision")
    )
    columns = list(revisions.values_list("pk", "action_hash", "proposal"))
    briefs = describe.load_briefs_by_id({pk: digest for pk, digest, _ in columns})
    return {proposals[proposal]: briefs[pk].effect for pk, _, proposal in columns}


def _count_outcomes(
    runs: Iterable[Thread], visible: QuerySet[Proposal]
) -> dict[RunKey, dict[str, int]]:
    theirs = Q()
    for run in runs:
        theirs |= Q(agent=run.agent.slug, thread=run.name)
    newest = visibility.select_newest(visible.filter(theirs, canary=False), MAX_COUNTED)
    rows = annotate_status(newest).order_by()
    counts: dict[RunKey, dict[str, int]] = {}
    for agent, thread, word, n in rows.values_list("agent", "thread", "said").annotate(
        n=Count("pk")
    ):
        counts.setdefault((agent, thread), {})[word] = n
    return counts
