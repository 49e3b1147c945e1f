"""The page of a batch that waits, for one person who may decide it.

The form repeats the mark that a changed row had before, so that the next response
reports the change again, and a signed token that says since when the rows have been on
the screen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.urls import reverse

from journal import canonical
from journal.errors import BatchChanged, DomainError
from reviews.batches.membership import BatchMember
from reviews.choices import BatchStatus
from reviews.decisions import submission
from reviews.decisions.submission import PageToken
from reviews.effects.wording import format_required_people
from reviews.models import RequestVersion
from reviews.presenters.common import build_reversibility
from reviews.presenters.shapes import Reversibility, SentencePart

from ..components import banners, formatting
from ..components.banners import PolicyChange
from ..components.formatting import DeadlineClock
from .columns import BatchLine, BatchTable, BatchTableEntry
from .links import build_batch_title
from .load import LoadedBatch
from .panel import BatchPanel
from .rows import BatchRow, BatchSamples, build_rows, build_samples
from .selection import BatchChanges, BatchSelection, TickedRows, sum_line_costs
from .table import build_line, build_table, compute_total_and_largest


@dataclass(frozen=True)
class BatchFacts:
    """The facts that are equal for all members, printed once."""

    loaded: LoadedBatch

    @property
    def version(self) -> RequestVersion:
        """That of the first member, whose terms are those of all."""
        return self.loaded.members[0].version

    @cached_property
    def policy_change(self) -> PolicyChange | None:
        """What a policy change since the proposals means for them; None without one."""
        if self.loaded.over or self.loaded.shut_reasons is not None:
            return None
        versions = (member.version for member in self.loaded.members)
        return banners.find_policy_change(versions, self.loaded.now)

    @property
    def rules(self) -> list[str]:
        rules = [rule["text"] for rule in self.version.rules]
        return rules or ["Policy requires approval for this tool."]

    @property
    def asked(self) -> str:
        """The approvals that each member needs: `1 reviewer`."""
        return format_required_people(self.version.steps)

    @property
    def proposed(self) -> tuple[datetime, datetime]:
        """When the first and the last member were opened."""
        times = [member.request.opened_at for member in self.loaded.members]
        return min(times), max(times)

    @property
    def reversal(self) -> Reversibility:
        return build_reversibility(self.loaded.definition)

    @property
    def clock(self) -> DeadlineClock:
        first = min(self.loaded.members, key=lambda member: member.request.expires_at)
        return formatting.build_request_clock(first.request, self.loaded.now)

    @property
    def forming_until(self) -> datetime | None:
        """Until when others may still join; None when the batch is closed."""
        batch = self.loaded.batch
        return batch.closes_at if batch.status == BatchStatus.FORMING else None


MAX_RATIONALE = 280  # characters of a rationale that differs from the usual one


@dataclass(frozen=True, slots=True)
class BatchRationales:
    """The agent's rationales: untrusted text, to be printed as such."""

    usual: str  # that most members share
    identical: int  # how many members have it
    different: Sequence[tuple[str, str]]  # by the label of the member


def build_rationales(
    members: Sequence[BatchMember], labels: Mapping[str, str]
) -> BatchRationales:
    """Compare what the agent says about each member. `labels` name the members."""
    texts = {member.id: member.version.revision.rationale for member in members}
    ((usual, identical),) = Counter(texts.values()).most_common(1)
    different = [
        (labels[pk], text[:MAX_RATIONALE] + " […]" * (len(text) > MAX_RATIONALE))
        for pk, text in texts.items()
        if text != usual
    ]
    return BatchRationales(usual, identical, different)


NO_SELECTION = BatchSelection()


@dataclass(frozen=True)
class BatchPage:
    """One batch as this person may see it now."""

    loaded: LoadedBatch
    selection: BatchSelection
    facts: BatchFacts
    lines: Sequence[BatchLine]
    table: BatchTable
    ticked: TickedRows
    samples: BatchSamples
    news: BatchChanges | None  # changes since the rows on the screen were rendered
    armed: BatchPanel | None = None
    problem: DomainError | None = None
    focus: str = ""  # the selector of the element that gets the focus

    @property
    def id(self) -> str:
        return self.loaded.batch.pk

    @property
    def decide_url(self) -> str:
        return reverse("reviews:batch_decide", args=[self.id])

    @property
    def is_evidence(self) -> bool:
        return self.loaded.shut_reasons is not None

    @property
    def title(self) -> tuple[SentencePart, ...]:
        definition = self.loaded.definition
        return build_batch_title(
            definition,
            len(self.lines),
            *compute_total_and_largest(line.amount for line in self.lines),
            sum_line_costs(definition, self.lines),
        )

    @cached_property
    def rationales(self) -> BatchRationales:
        entries = self.table.entries
        labels = {
            entry.id: entry.first.text if entry.first else "" for entry in entries
        }
        return build_rationales(self.loaded.members, labels)

    @cached_property
    def rows(self) -> list[BatchRow]:
        return build_rows(
            self.loaded, self.selection, self.table, self.ticked.ids, self.samples
        )

    @property
    def unopened(self) -> list[BatchTableEntry]:
        """The samples that are still to be opened, in the order of the page."""
        opened = {*self.samples.opened, *self.selection.open_now}
        return [
            entry
            for entry in self.selection.sort_entries(self.table.entries)
            if entry.id in self.samples.ids and entry.id not in opened
        ]

    @property
    def opened_samples(self) -> int:
        return len(self.samples.ids) - len(self.unopened)

    @property
    def token(self) -> str:
        """The signed time since when these rows have been on the screen."""
        return create_timing_token(self.loaded, self.selection.page)

    @property
    def gone(self) -> list[tuple[str, str]]:
        """The requests that left the batch since, with the reason: they have no row."""
        known = set(self.loaded.marks)
        return [
            (reverse("reviews:request_detail", args=[pk]), why)
            for pk, why in self.selection.changed.items()
            if pk not in known and pk.startswith("r-")
        ]

    @property
    def pinned(self) -> bool:
        """Whether the problem concerns rows and is therefore printed above them."""
        return isinstance(self.problem, BatchChanged) and bool(self.problem.errors)


def build_page(
    loaded: LoadedBatch,
    selection: BatchSelection = NO_SELECTION,
    *,
    kept_samples: BatchSamples | None = None,
    news: BatchChanges | None = None,
    problem: DomainError | None = None,
    focus: str = "",
) -> BatchPage:
    """Build the page of a batch. `kept_samples` are those of page evidence."""
    lines = [build_line(member) for member in loaded.members]
    batch = loaded.definition.batchable
    table = build_table(lines, batch.varying if batch else ())
    return BatchPage(
        loaded,
        selection,
        BatchFacts(loaded),
        lines,
        table,
        TickedRows(loaded, selection, lines),
        kept_samples or build_samples(loaded, selection.opened, table),
        news,
        problem=problem,
        focus=focus,
    )


def create_timing_token(loaded: LoadedBatch, before: str) -> str:
    """Sign since when the page is on the screen, for a hidden field. `before` is the
    token that the browser sent; a page rebuilt with the same rows keeps its start."""
    made = _build_page_token(loaded, loaded.marks)
    sent = submission.find_page_token(before)
    return (made.read_since(sent) if sent else made).token()


def compute_took_ms(
    loaded: LoadedBatch, marks: Mapping[str, str], sent: str
) -> int | None:
    """Compute how long a page with these rows was on the screen, in milliseconds.

    None if the token is not ours or belongs to another page.
    """
    page, ours = submission.find_page_token(sent), _build_page_token(loaded, marks)
    if page is None or not page.is_for(ours.person, ours.request):
        return None
    return page.took_ms(loaded.now) if page.digest == ours.digest else None


def _build_page_token(loaded: LoadedBatch, marks: Mapping[str, str]) -> PageToken:
    return PageToken(
        person=loaded.person.public_id,
        request=loaded.batch.pk,
        version=0,  # a batch has no version; the digest covers its rows' versions
        action_hash="",
        digest=canonical.digest(canonical.encode(dict(marks))),
        rendered_at=loaded.now,
    )
