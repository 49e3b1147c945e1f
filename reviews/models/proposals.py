"""Proposals, their immutable revisions, and later readings of the state."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from journal.prepared_queries import Parameter, PreparedQuery
from policies import active
from policies.choices import Risk, Tier
from policies.models import PolicyVersion, Tool

from .base import (
    build_choice_check,
    build_choices,
    build_removal_index,
    format_removal,
    new_proposal_id,
    removed_after,
)


class RealProposals(models.Manager["Proposal"]):
    """The proposals of agents. Canaries look like them and are left out, so that a
    query which does not think of canaries does not count or show one."""

    def get_queryset(self) -> models.QuerySet[Proposal]:
        return super().get_queryset().filter(canary=False)


class Proposal(models.Model):
    """An action that an agent proposes. The gate stores agent and thread as text. A
    canary is a proposal that the gate makes itself, to measure reviewers. The database
    refuses a grant or an execution of one."""

    id = models.CharField(max_length=40, primary_key=True, default=new_proposal_id)
    agent = models.CharField(max_length=64)
    thread = models.CharField(max_length=128)
    tool_name = models.CharField(max_length=64)
    revision = models.PositiveIntegerField(default=1)
    # Public ids of people who may not decide: the owner and the delegation chain.
    barred = ArrayField(models.CharField(max_length=64), default=list)
    # Public ids of others who may not decide, and are not shown the proposal because of
    # this: people with a similar name, and people barred from the proposal behind it.
    kept_out = ArrayField(models.CharField(max_length=64), default=list, db_default=[])
    on_behalf_of = models.JSONField(default=dict)
    parent = models.CharField(max_length=40, blank=True)
    supersedes = models.CharField(max_length=40, blank=True)
    group = models.CharField(max_length=128, blank=True)
    priority = models.CharField(max_length=8, default="normal")
    source = models.CharField(max_length=64, blank=True)
    # The rule that blocked it; empty unless the answer was `blocked`.
    blocked_by = models.CharField(max_length=64, blank=True)
    # The rejected proposal of the same action in its run. This one got its rejection.
    repeats = models.CharField(max_length=40, blank=True, db_default="")
    # An endpoint of the agent is to receive webhook events about it.
    has_listener = models.BooleanField(default=False, db_default=False)
    # W3C Trace Context: the agent's span that caused the proposal.
    traceparent = models.CharField(max_length=55, blank=True, db_default="")
    canary = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField()
    _current: Revision | None = None

    objects = RealProposals()
    with_canaries: ClassVar[models.Manager[Proposal]] = models.Manager()

    class Meta:
        constraints: ClassVar = [
            # The target of the composite keys of requests, grants and executions.
            models.UniqueConstraint(fields=["id", "canary"], name="proposal_canary"),
            models.CheckConstraint(
                name="proposal_canary_without_listener",
                condition=Q(canary=False) | Q(has_listener=False),
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["agent", "-created_at"], name="proposal_by_agent"),
            models.Index(
                fields=["agent", "thread", "created_at"], name="proposal_by_thread"
            ),
            models.Index(fields=["-created_at"], name="proposal_newest"),
            models.Index(
                fields=["parent"], name="proposal_parent", condition=~Q(parent="")
            ),
            models.Index(
                fields=["repeats"], name="proposal_repeats", condition=~Q(repeats="")
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def current(self) -> Revision:
        """The newest revision. It never changes, so each number takes one query."""
        if self._current is None or self._current.number != self.revision:
            self._current = _REVISION.fetch_one(proposal=self.pk, number=self.revision)
            self._current.proposal = self
        return self._current

    @current.setter
    def current(self, revision: Revision) -> None:
        self._current = revision

    def bars(self, public_id: str) -> bool:
        """Whether this person is behind the proposal and so may not decide it
        (docs/invariants.md I9)."""
        return public_id in self.barred or public_id in self.kept_out


class Revision(models.Model):
    """An immutable version of a proposal: canonical bytes and their hash. Texts are
    stored redacted. `facts` are what the policy evaluated; the check before execution
    uses them again. Of an old action the retention rule removes the bytes, the texts
    and the readings; the hash stays."""

    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, related_name="revisions", db_index=False
    )
    number = models.PositiveIntegerField()
    tool = models.ForeignKey(Tool, null=True, on_delete=models.PROTECT, db_index=False)
    canonical = models.BinaryField()
    action_hash = models.CharField(max_length=80)
    author_kind = models.CharField(max_length=16)
    author_id = models.CharField(max_length=64)
    # The version of the agent that proposed it, from the registry.
    agent_version = models.CharField(max_length=64, blank=True)
    rationale = models.TextField(blank=True)
    expected_outcome = models.TextField(blank=True)
    reversal = models.TextField(blank=True)
    alternatives = models.JSONField(default=list)
    evidence = models.JSONField(default=list)
    # What hostile texts among the above try (`effects.describe.TextSign`), so that no
    # list has to read them.
    text_signs = ArrayField(models.CharField(max_length=8), default=list)
    uncertain = models.FloatField(default=0)
    reading = models.JSONField(default=dict)
    facts = models.JSONField(default=dict)
    evaluation = models.JSONField(default=dict)
    tier = models.CharField(max_length=8, choices=build_choices(Tier))
    risk = models.CharField(max_length=8, choices=build_choices(Risk))
    amount_minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True)
    # Null only when it was blocked because no policy was active.
    policy = models.ForeignKey(
        PolicyVersion, null=True, on_delete=models.PROTECT, db_index=False
    )
    created_at = models.DateTimeField()
    removed_after = removed_after()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["proposal", "number"], name="revision_number"
            ),
            build_choice_check("revision_tier", "tier", Tier),
            build_choice_check("revision_risk", "risk", Risk),
        ]
        indexes: ClassVar = [build_removal_index("revision_removable", "created_at")]

    def __str__(self) -> str:
        return f"{self.proposal_id}.{self.number}"

    @property
    def policy_number(self) -> int | None:
        """The number of the policy version that evaluated it, for the log."""
        return active.load_version_number(self.policy_id) if self.policy_id else None

    @property
    def known_tool(self) -> Tool:
        """The tool. Raises LookupError when the revision has none and was blocked."""
        if self.tool is None:
            raise LookupError(f"{self} names a tool that nobody registered.")
        return self.tool

    @property
    def removal(self) -> str:
        """That the retention rule removed what the action was; empty if it did not."""
        return format_removal("Arguments and texts", self.removed_after)

    @property
    def args(self) -> dict[str, Any]:
        """The arguments, read from the canonical bytes and nowhere else."""
        args: dict[str, Any] = json.loads(bytes(self.canonical))["args"]
        return args

    @property
    def preconditions(self) -> dict[str, Any]:
        """The agent's preconditions, read from the canonical bytes."""
        preconditions: dict[str, Any] = json.loads(bytes(self.canonical))[
            "preconditions"
        ]
        return preconditions


_REVISION = PreparedQuery(
    lambda: Revision.objects.filter(
        proposal_id=Parameter("proposal"), number=Parameter("number")
    )
)


class StateReading(models.Model):
    """The business state as read again after the proposal. It is read when a person
    opens the request and when the execution is claimed. The first reading is stored on
    the revision."""

    revision = models.ForeignKey(
        Revision, on_delete=models.PROTECT, related_name="readings", db_index=False
    )
    cause = models.CharField(max_length=8)  # "opened" or "claimed"
    reading = models.JSONField()
    digest = models.CharField(max_length=80)  # of before-state and preconditions
    at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["revision", "-at"], name="state_reading_newest")
        ]

    def __str__(self) -> str:
        return f"{self.revision_id} {self.cause}"
