"""A batch that waits, as one person may decide it.

What became of a batch since a page of it was made: said there, moving nothing.

What of a batch a decision would be on: the list, its digest, its sum.

What all members of a batch have in common beside their arguments.

What a page told of a row that changed under its reader, signed, so that it is still
said at the next press and is kept with the decision.

Since when a batch has been on a screen: its page says so itself, signed, and a page
made anew of the very same rows has been read since the first.

What the agent says of a batch: once for most members, and where it differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.core import signing
from django.urls import reverse

from journal import canonical
from journal.errors import BatchChanged, DomainError, FieldError
from policies.documents import ToolDefinition
from policies.money import Money
from policies.staffing import Shortage
from reviews.batches import decide, similarity
from reviews.batches.membership import Member
from reviews.choices import BatchStatus
from reviews.decisions import submission
from reviews.decisions.submission import Seen
from reviews.desk.components import formatting, undo
from reviews.desk.components.choice import too_few
from reviews.desk.components.formatting import Clock
from reviews.desk.components.undo import Reverses
from reviews.effects.wording import asked_of
from reviews.presenters.common import reversal as common_reversal
from reviews.presenters.current import figure
from reviews.presenters.shapes import Part, Reversal

from . import costs
from . import table as batches_table
from .columns import Entry, Line, Table
from .costs import Cost
from .links import called
from .links import title as links_title
from .load import Loaded
from .table import Opened, Peek, Row, build, line_of, peek_of, sent_of, total_of


@dataclass(frozen=True, slots=True)
class News:
    """The rows that are not as they were, and whether the batch is over."""

    rows: tuple[FieldError, ...]
    over: bool

    @property
    def by_request(self) -> dict[str, str]:
        """What to say of each."""
        return {one["path"]: one["message"] for one in self.rows}

    @property
    def said(self) -> str:
        """One sentence; empty when nothing changed."""
        if self.over:
            return "This batch is over. Nothing you press here is recorded."
        many = len(self.rows)
        if not many:
            return ""
        rows = "1 item" if many == 1 else f"{many} items"
        return f"{rows} changed, left or joined since this page was made."

    @property
    def etag(self) -> str:
        said = [self.said, *(f"{one['path']} {one['message']}" for one in self.rows)]
        return canonical.digest(canonical.encode(said)).removeprefix("sha256:")[:16]


def since(loaded: Loaded, marks: Mapping[str, str]) -> News:
    """By what each row was on the page."""
    if loaded.over:
        return News((), over=True)
    return News(tuple(decide.since(marks, [*loaded.members, *loaded.gone])), over=False)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a page sent: which rows are in, which were opened, what it had shown.
    Without `made` nothing was chosen yet, and everything is in."""

    items: frozenset[str] = frozenset()
    made: bool = False
    opened: tuple[str, ...] = ()
    open_now: tuple[str, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)
    page: str = ""  # the token of the page that sent it


class Choice:
    """The rows that are ticked."""

    def __init__(
        self, loaded: Loaded, selection: Selection, lines: Sequence[Line]
    ) -> None:
        self.loaded = loaded
        self.selection = selection
        self.lines = lines
        self.definition = loaded.definition

    @cached_property
    def ids(self) -> list[str]:
        """The rows that a decision is on, in the order of the batch."""
        able = self.loaded.choosable
        if not self.selection.made:
            return able
        return [pk for pk in able if pk in self.selection.items]

    @cached_property
    def left_out(self) -> list[str]:
        return [one.id for one in self.loaded.members if one.id not in self.ids]

    @cached_property
    def digest(self) -> str:
        chosen = set(self.ids)
        return similarity.digest(
            member.entry for member in self.loaded.members if member.id in chosen
        )

    @cached_property
    def total(self) -> Money | None:
        chosen = set(self.ids)
        amounts = (line.amount for line in self.lines if line.id in chosen)
        return total_of(amounts)[0]

    @property
    def total_said(self) -> str:
        """What they move or cost together; empty where nothing says so."""
        if self.total:
            return figure(self.total)
        chosen = [line for line in self.lines if line.id in set(self.ids)]
        return ", ".join(
            cost.said
            if cost.known == len(chosen)
            else f"{cost.said} for {cost.known} of them"
            for cost in costs_of(self.definition, chosen)
        )

    @property
    def too_much(self) -> str:
        """Why these are too much for one decision; empty when they are not."""
        batch = self.definition.batchable
        if not similarity.too_much(self.total, self.definition) or not batch:
            return ""
        most = figure(batch.total.money) if batch.total else ""
        return f"Together this is above {most}, the most for one batch."

    @cached_property
    def in_vain(self) -> list[Shortage]:
        """Of these whom too few people could decide once they are escalated, and whom
        that lacks."""
        lacking = (self.loaded.lacking(pk) for pk in self.ids)
        return [one for one in lacking if one]

    @property
    def why_not_escalate(self) -> str:
        """What the page says of it; empty when all of these can be."""
        if not self.in_vain:
            return ""
        many, of = len(self.in_vain), len(self.ids)
        which = "These" if many == of else f"{many} of these"
        return f"{which} cannot be escalated: {too_few(self.in_vain[0])}."

    @property
    def escalates(self) -> bool:
        """Whether that verdict would be taken on any of these."""
        return not self.ids or len(self.in_vain) < len(self.ids)

    @property
    def what(self) -> str:
        """`36 refunds, 1,788.20 USD`: what a commit repeats."""
        said = called(self.definition, len(self.ids))
        return f"{said}, {self.total_said}" if self.total_said else said


def costs_of(definition: ToolDefinition, lines: Iterable[Line]) -> list[Cost]:
    """What these cost together, as they were read."""
    read = (line.subject.facts.get("before") for line in lines)
    return costs.total(definition, read)


class Facts:
    """Said once, for they are the same for each."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.count = len(loaded.members)
        self.agent = loaded.batch.agent
        self.tool = loaded.batch.tool.name
        self.tool_version = loaded.batch.tool.version

    @cached_property
    def first(self) -> Member:
        return self.loaded.members[0]

    @property
    def risk(self) -> str:
        return self.first.version.risk

    @property
    def tier(self) -> str:
        return self.first.version.tier

    @property
    def policy(self) -> int:
        return self.first.version.policy.number

    @property
    def rules(self) -> list[str]:
        said = [rule["text"] for rule in self.first.version.rules]
        return said or ["The policy wants a person for this tool."]

    @property
    def asked(self) -> str:
        """Whose approvals each of them needs: `1 reviewer`."""
        return asked_of(self.first.version.steps)

    @property
    def proposed(self) -> tuple[datetime, datetime]:
        times = [member.request.opened_at for member in self.loaded.members]
        return min(times), max(times)

    @property
    def reversal(self) -> Reversal:
        return common_reversal(self.loaded.definition)

    @property
    def clock(self) -> Clock:
        """The earliest deadline is everybody's."""
        first = min(self.loaded.members, key=lambda member: member.request.expires_at)
        return formatting.of(first.request, self.loaded.now)

    @property
    def forming_until(self) -> datetime | None:
        """Until when others may still join."""
        batch = self.loaded.batch
        return batch.closes_at if batch.status == BatchStatus.FORMING else None


SALT = "reviews.noted"
Whose = tuple[str, str]  # batch and person


def notes_token(whose: Whose, request: str, mark: str, said: str) -> str:
    """For a hidden field of the row."""
    return signing.dumps([*whose, request, mark, said], salt=SALT)


def read(
    tokens: Iterable[str], whose: Whose, marks: Mapping[str, str]
) -> dict[str, str]:
    """By request, what was said of rows that still are as they were then."""
    found = {}
    for text in tokens:
        try:
            batch, person, request, mark, said = signing.loads(text, salt=SALT)
        except (signing.BadSignature, ValueError, TypeError):
            continue
        if (batch, person) == whose and marks.get(request) == mark:
            found[request] = said
    return found


def timing_token(loaded: Loaded, before: str) -> str:
    """For a hidden field of the page; `before` is the one that was sent."""
    made = _made(loaded, loaded.marks)
    sent = submission.read_or_none(before)
    return (made.read_since(sent) if sent else made).token()


def took_ms(loaded: Loaded, marks: Mapping[str, str], sent: str) -> int | None:
    """How long a page with these rows was on the screen, in milliseconds; None where
    its token is not ours, or of another page."""
    page, ours = submission.read_or_none(sent), _made(loaded, marks)
    if page is None or not page.is_for(ours.person, ours.request):
        return None
    return page.took_ms(loaded.now) if page.digest == ours.digest else None


def _made(loaded: Loaded, marks: Mapping[str, str]) -> Seen:
    return Seen(
        person=loaded.person.public_id,
        request=loaded.batch.pk,
        version=0,  # a batch has none: its rows say what they are of
        action_hash="",
        digest=canonical.digest(canonical.encode(dict(marks))),
        rendered_at=loaded.now,
    )


MOST = 280  # characters of a text that differs from the others


@dataclass(frozen=True, slots=True)
class Said:
    """What the agent says of a member, where it is not what it says of most."""

    id: str
    label: str
    text: str


class Words:
    """Untrusted text of each member, to be printed as such; `labels` name them."""

    def __init__(self, members: Sequence[Member], labels: Mapping[str, str]) -> None:
        self._labels = labels
        self._texts = [
            (member.id, member.version.revision.rationale) for member in members
        ]

    @cached_property
    def rationale(self) -> str:
        """What it says of most of them."""
        return Counter(text for _, text in self._texts).most_common(1)[0][0]

    @property
    def identical(self) -> int:
        return sum(text == self.rationale for _, text in self._texts)

    @cached_property
    def different(self) -> list[Said]:
        return [
            Said(
                pk, self._labels[pk], text[:MOST] + (" […]" if len(text) > MOST else "")
            )
            for pk, text in self._texts
            if text != self.rationale
        ]


class BatchPage:
    """What is the same for all, the table, what is ticked, and what is armed."""

    kept = False  # whether it is one that was decided on, to be read only

    def __init__(
        self,
        loaded: Loaded,
        selection: Selection | None = None,
        *,
        armed: Any = None,
        problem: DomainError | None = None,
        focus: str = "",
    ) -> None:
        self.loaded = loaded
        self.selection = selection or Selection()
        self.armed = armed
        self.problem = problem
        self.focus = focus
        self.news: News | None = None  # since the rows on the screen were made
        self.id = loaded.batch.pk
        self.url = reverse("reviews:batch", args=[self.id])
        self.decide_url = reverse("reviews:batch_decide", args=[self.id])
        self.definition = loaded.definition
        self.facts = Facts(loaded)

    @property
    def title(self) -> tuple[Part, ...]:
        total, largest = total_of(line.amount for line in self.lines)
        found = costs_of(self.definition, self.lines)
        return links_title(self.definition, len(self.lines), total, largest, found)

    @cached_property
    def choice(self) -> Choice:
        return Choice(self.loaded, self.selection, self.lines)

    @cached_property
    def words(self) -> Words:
        labels = {row.id: row.first.text if row.first else "" for row in self.rows}
        return Words(self.loaded.members, labels)

    # The table
    @cached_property
    def lines(self) -> list[Line]:
        return [line_of(member) for member in self.loaded.members]

    @cached_property
    def table(self) -> Table:
        batch = self.definition.batchable
        return build(self.lines, batch.varying if batch else ())

    @cached_property
    def rows(self) -> list[Row]:
        """Every member: what changed under the reader, then what stands out, then in
        the order in which they will run."""
        by_id = {member.id: member for member in self.loaded.members}
        found = [self._row(by_id[entry.id], entry) for entry in self.table.entries]
        return sorted(found, key=lambda row: not row.changed)

    def _row(self, member: Member, entry: Entry) -> Row:
        return Row(
            id=member.id,
            url=reverse("reviews:batch_item", args=[self.id, member.id]),
            sent=sent_of(member),
            noted=self._noted(member),
            first=entry.cells[0] if entry.cells else None,
            reverses=self.reverses.get(member.request.proposal_id),
            others=list(zip(self.table.columns, entry.cells, strict=True))[1:],
            reasons=entry.reasons,
            changed=self.selection.changed.get(member.id, ""),
            blocked=self.loaded.blocked(member),
            checked=member.id in self.choice.ids,
            sample=member.id in self.samples,
            peek=self._peek(member),
        )

    @cached_property
    def reverses(self) -> dict[str, Reverses]:
        """What members undo that people proposed for that, by proposal."""
        members = self.loaded.members
        return undo.reversed_by(member.request.proposal for member in members)

    def _noted(self, member: Member) -> str:
        """So that what changed under the reader stays said at the next press."""
        said = self.selection.changed.get(member.id, "")
        if not said or self.kept:
            return ""
        return notes_token(self._whose, member.id, member.mark, said)

    @property
    def _whose(self) -> tuple[str, str]:
        return self.id, self.loaded.person.public_id

    def _peek(self, member: Member) -> Peek | None:
        """What was opened stays open; its first moment counts."""
        if member.id in self.opened:
            return peek_of(self.loaded, member, self.opened[member.id].at)
        if member.id in self.selection.open_now:
            return peek_of(self.loaded, member)
        return None

    @property
    def token(self) -> str:
        """Since when these rows have been on the screen."""
        return timing_token(self.loaded, self.selection.page)

    @property
    def gone(self) -> list[tuple[str, str]]:
        """Who left since: changed rows that cannot be shown as rows any more."""
        known = set(self.loaded.marks)
        return [
            (reverse("reviews:request_detail", args=[pk]), why)
            for pk, why in self.selection.changed.items()
            if pk not in known and pk.startswith("r-")
        ]

    @property
    def pinned(self) -> bool:
        """Whether what is wrong is about rows, and so is said above them."""
        return isinstance(self.problem, BatchChanged) and bool(self.problem.errors)

    @property
    def span(self) -> int:
        """How many cells a row has: the tick, the columns, what stands out, Open."""
        return max(len(self.table.columns), 1) + 3

    @property
    def samples_said(self) -> str:
        left, count = len(self.unopened), len(self.samples)
        return f"{count - left} of {count} samples opened"

    # The samples
    @cached_property
    def samples(self) -> list[str]:
        return batches_table.picked(self.id, self.loaded.choosable, self.table.outliers)

    @cached_property
    def opened(self) -> dict[str, Opened]:
        return batches_table.read(
            self.selection.opened,
            batch=self.id,
            person=self.loaded.person.public_id,
            marks=self.loaded.marks,
        )

    @property
    def unopened(self) -> list[Row]:
        """The samples that are still to be opened, in the order of the page."""
        return [row for row in self.rows if row.sample and row.peek is None]
