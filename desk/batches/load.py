"""Loads one batch with its current members, and what one person may do with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from django.db.models import Count, F, QuerySet

from journal.errors import DomainError, NotFound
from policies import tools
from policies.documents import ToolDefinition
from policies.models import Person
from policies.staffing import Shortage
from reviews import permissions
from reviews.administration import queue_presets
from reviews.administration.queue_presets import OfferedPreset
from reviews.batches import membership
from reviews.batches.membership import BatchMember
from reviews.choices import BatchStatus
from reviews.governance import voters
from reviews.models import Batch, Decision, Execution, Hold
from reviews.roles import Permission

from ..components import choice, visibility
from ..components.states import ApprovalTally

MIN_MEMBERS = 2  # members; a single one is decided on its own page
OPEN_STATUSES = (BatchStatus.FORMING, BatchStatus.OPEN)


def select_visible_batches(person: Person) -> QuerySet[Batch]:
    """The batches of the person's queues, or all for a role that sees all."""
    batches = Batch.objects.select_related("tool", "queue__preset")
    if permissions.has_permission(person, Permission.SEE_ALL):
        return batches
    return batches.filter(queue__in=permissions.queues_of(person))


@dataclass
class LoadedBatch:
    """One batch with its current members, for one person."""

    person: Person
    batch: Batch
    members: list[BatchMember]
    now: datetime
    gone: list[BatchMember] = field(default_factory=list)
    # By request, the other person who holds it.
    held: Mapping[str, str] = field(default_factory=dict)
    # By proposal id.
    executions: Mapping[str, Execution] = field(default_factory=dict)
    # By request, the approvals of its current version.
    votes: Mapping[str, int] = field(default_factory=dict)
    # Page evidence only: why each row was shut, as the page said then.
    shut_reasons: Mapping[str, str] | None = None

    @property
    def definition(self) -> ToolDefinition:
        return tools.load_definition(self.batch.tool)

    @property
    def waits(self) -> bool:
        return self.batch.status in OPEN_STATUSES

    @property
    def over(self) -> bool:
        """Whether it was decided, or too few members are left."""
        return not self.waits or len(self.members) < MIN_MEMBERS

    @cached_property
    def preset(self) -> OfferedPreset:
        """What the panels offer in the batch's queue. No query."""
        return queue_presets.read_preset(self.batch.queue)

    @cached_property
    def why_not(self) -> str:
        """Why this person may not decide it, by the operation's check; or empty."""
        if not self.waits:
            return "This batch has already been decided."
        return self.why_not_admitted

    @cached_property
    def why_not_admitted(self) -> str:
        """Why this person decides nothing in its queue; empty when they do."""
        try:
            permissions.check_admitted_to_queue(self.person, self.batch.queue_id)
        except DomainError as error:
            return error.cause
        return ""

    @cached_property
    def marks(self) -> dict[str, str]:
        return {member.id: member.mark for member in self.members}

    def blocked(self, member: BatchMember) -> str:
        """Why this member cannot be in this person's decision; empty when it can."""
        who = self.held.get(member.id)
        return self.shut(member) or (f"Claimed by {who}." if who else "")

    def shut(self, member: BatchMember) -> str:
        """The same without reasons that pass, such as another person's hold."""
        if self.shut_reasons is not None:
            return self.shut_reasons.get(member.id, "")
        revision = member.version.revision
        if member.request.proposal.bars(self.person.public_id):
            return f"{permissions.CONCERNED_PREFIX}decide it."
        if permissions.is_above_ceiling(
            self.person, revision.amount_minor, revision.currency
        ):
            return permissions.describe_ceiling(self.person, revision)
        return ""

    def tally(self, member: BatchMember) -> ApprovalTally:
        required = sum(step["required"] for step in member.version.steps)
        return ApprovalTally(self.votes.get(member.id, 0), required)

    @cached_property
    def shortages(self) -> dict[str, Shortage | None]:
        """The people who would be missing if a request were escalated, in one query.
        None when there are enough; empty when this person may not escalate here."""
        if self.why_not or self.shut_reasons is not None:
            return {}
        # No member of a batch has votes yet: one vote decides each of them.
        people = voters.list_voters(self.batch.queue_id)
        return {
            member.id: choice.find_shortage(
                self.person, member.request, member.version, (), people
            )
            for member in self.members
        }

    @cached_property
    def choosable(self) -> list[str]:
        """The requests that this person can decide now."""
        return [member.id for member in self.members if not self.blocked(member)]


def load_batch(person: Person, pk: str, now: datetime) -> LoadedBatch:
    """Load one batch, in at most eight queries. Raises NotFound."""
    batch = select_visible_batches(person).filter(pk=pk).first()
    if batch is None:
        raise NotFound
    waits = batch.status in OPEN_STATUSES
    ran = () if waits else batch.executions.select_related("grant")
    members = membership.load_members if waits else membership.load_decided_members
    loaded = members(batch, now=now)
    blind = visibility.select_unanswered_reviews(person).filter(
        decision__request__in=[member.id for member in loaded]
    )
    if not waits and blind.exists():
        raise NotFound  # its members say how one of them was decided
    return LoadedBatch(
        person=person,
        batch=batch,
        members=[member for member in loaded if not waits or not member.gone],
        gone=[member for member in loaded if waits and member.gone],
        held=_list_holders(loaded, person, now) if waits else {},
        executions={row.proposal_id: row for row in ran},
        votes={} if waits else _count_approvals(loaded),
        now=now,
    )


def _list_holders(
    members: Iterable[BatchMember], person: Person, now: datetime
) -> dict[str, str]:
    holds = Hold.objects.filter(
        request__in=[member.id for member in members], until__gt=now
    ).exclude(holder=person)
    return {row.request_id: str(row.holder) for row in holds.select_related("holder")}


def _count_approvals(members: Iterable[BatchMember]) -> dict[str, int]:
    counted = Decision.objects.filter(
        request__in=[member.id for member in members],
        version=F("request__version"),
        counts=True,
    )
    counts = counted.order_by().values_list("request").annotate(Count("pk"))
    return dict(counts)
