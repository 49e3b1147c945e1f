"""Grants, the executions under them, and answers to look-ups."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from policies import tools
from policies.choices import ExecutionClass
from policies.documents import ToolDefinition
from policies.models import Queue, StandingGrant
from reviews.choices import FINISHED, UNFINISHED, ExecutionStatus, GrantStatus

from .base import (
    build_choice_check,
    build_choices,
    build_years_check,
    new_execution_id,
    new_grant_id,
)
from .batches import Batch
from .proposals import Proposal, Revision


class Grant(models.Model):
    """A one-use permission for exactly one action hash."""

    id = models.CharField(max_length=40, primary_key=True, default=new_grant_id)
    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, related_name="grants"
    )
    revision = models.OneToOneField(
        Revision, on_delete=models.PROTECT, related_name="grant"
    )
    action_hash = models.CharField(max_length=80)
    status = models.CharField(max_length=8, choices=build_choices(GrantStatus))
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()  # also the end of the execution window
    # Conditions of the approvals: the start of the window, if it is later than the
    # approval, and the values that the tool's reader must still give, as a list of
    # {"field", "value"}. Their end of the window is in `expires_at`.
    not_before = models.DateTimeField(null=True)
    expected = models.JSONField(null=True)
    # The permission given in advance that stands for the approval, if any.
    standing_grant = models.ForeignKey(
        StandingGrant,
        null=True,
        on_delete=models.PROTECT,
        db_index=False,
        related_name="+",
    )
    # Always false. A composite key compares it with the proposal's column.
    canary = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints: ClassVar = [
            build_choice_check("grant_status", "status", GrantStatus),
            models.CheckConstraint(name="grant_no_canary", condition=Q(canary=False)),
            build_years_check("grant_years", "not_before", "expires_at"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["expires_at"], name="grant_live", condition=Q(status="live")
            ),
            models.Index(  # small: every executed grant is spent
                fields=["expires_at"],
                name="grant_unspent",
                condition=~Q(status="spent"),
            ),
        ]

    def __str__(self) -> str:
        return self.id


_LOOK_UP_PATH = "grant__revision__tool__definition__look_up"
# Executions whose tool defines no look-up.
NO_LOOK_UP = Q(**{_LOOK_UP_PATH: None}) | Q(**{f"{_LOOK_UP_PATH}__isnull": True})


class Execution(models.Model):
    """The record of the attempts under one grant."""

    id = models.CharField(max_length=40, primary_key=True, default=new_execution_id)
    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, related_name="executions"
    )
    grant = models.OneToOneField(
        Grant, on_delete=models.PROTECT, related_name="execution"
    )
    status = models.CharField(max_length=9, choices=build_choices(ExecutionStatus))
    # The batch it was decided in and its position there; null when decided alone.
    batch = models.ForeignKey(
        Batch, null=True, on_delete=models.PROTECT, related_name="executions"
    )
    batch_position = models.PositiveIntegerField(null=True)
    by_agent = models.BooleanField(default=False)  # the agent performs the effect
    # The queue whose people were told that it runs; null when it was not announced.
    announced_in = models.ForeignKey(
        Queue, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    idempotency_key = models.CharField(max_length=80, unique=True)
    fence = models.PositiveIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    # When a person allowed a retry that has not begun yet.
    retried_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField()  # earliest start; a retry's back-off moves it
    result = models.BinaryField(null=True)  # encrypted
    result_shown = models.JSONField(null=True)  # redacted
    result_digest = models.CharField(max_length=80, blank=True)
    code = models.CharField(max_length=64, blank=True)  # why it failed or was refused
    detail = models.TextField(blank=True)
    queued_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True)
    # Digest of the key the agent redeemed this fence with; empty when it sent none.
    redeem_digest = models.CharField(max_length=80, blank=True, db_default="")
    # When the holder of this fence last reported that it is about to call the service,
    # or when the agent was last given what it needs to perform the effect.
    began_at = models.DateTimeField(null=True)
    # Since when the outcome is unknown, how many look-ups ran since then, and when the
    # next one is due; `ask_at` is null when no look-up runs automatically.
    unknown_at = models.DateTimeField(null=True)
    asked = models.PositiveIntegerField(default=0, db_default=0)
    ask_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # A look-up found that it had succeeded; the last attempt performed nothing.
    looked_up = models.BooleanField(default=False, db_default=False)
    # When the service was last asked whether an effect happened although the execution
    # was refused or its agent reported a failure. While the answer is unclear, the next
    # look-up runs at `ask_at`.
    audited_at = models.DateTimeField(null=True)
    # Always false. A composite key compares it with the proposal's column.
    canary = models.BooleanField(default=False, db_default=False)
    # What the re-checks read (executions.rechecks); not a column.
    recheck_facts: Any = None

    class Meta:
        constraints: ClassVar = [
            build_choice_check("execution_status", "status", ExecutionStatus),
            models.CheckConstraint(
                name="execution_no_canary", condition=Q(canary=False)
            ),
            models.CheckConstraint(
                name="execution_lease_paired",
                condition=Q(status="claimed", lease_until__isnull=False)
                | ~Q(status="claimed") & Q(lease_until__isnull=True),
            ),
            models.CheckConstraint(
                name="execution_finish_paired",
                condition=Q(
                    status__in=[s.value for s in FINISHED], finished_at__isnull=False
                )
                | Q(status__in=[s.value for s in UNFINISHED], finished_at__isnull=True),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["due_at"],
                name="execution_queued",
                condition=Q(status="queued"),
            ),
            models.Index(
                fields=["lease_until"],
                name="execution_leased",
                condition=Q(status="claimed"),
            ),
            models.Index(
                fields=["queued_at"],
                name="execution_unknown",
                condition=Q(status="unknown"),
            ),
            models.Index(
                fields=["finished_at"],
                name="execution_refused",
                condition=Q(status="refused"),
            ),
            models.Index(
                fields=["finished_at"],
                name="execution_to_audit",
                condition=Q(status="refused")
                & (Q(audited_at__isnull=True) | Q(ask_at__isnull=False)),
            ),
            models.Index(
                fields=["ask_at"],
                name="execution_said_to_fail",
                condition=Q(status="failed", ask_at__isnull=False),
            ),
            models.Index(
                fields=["finished_at"],
                name="execution_result_kept",
                condition=Q(result__isnull=False),
            ),
            models.Index(
                fields=["announced_in", "-queued_at"],
                name="execution_announced",
                condition=Q(announced_in__isnull=False),
            ),
            models.Index(  # across all queues
                fields=["-queued_at"],
                name="execution_announced_newest",
                condition=Q(announced_in__isnull=False),
            ),
            models.Index(
                fields=["finished_at"],
                name="execution_known_by_now",
                condition=Q(unknown_at__isnull=False) & ~Q(status="unknown"),
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def tool_definition(self) -> ToolDefinition:
        """The approved version of the tool, as the policy document defines it."""
        return tools.load_definition(self.grant.revision.known_tool)

    @property
    def execution_class(self) -> ExecutionClass:
        """What the approved tool's service promises about repetition."""
        return ExecutionClass(self.grant.revision.known_tool.execution_class)

    @property
    def has_look_up(self) -> bool:
        """Whether the approved tool defines a look-up for the outcome of an effect."""
        return self.tool_definition.look_up is not None


class LookUp(models.Model):
    """One answer of a service about an unknown outcome. The row never changes."""

    execution = models.ForeignKey(
        Execution, on_delete=models.PROTECT, related_name="look_ups"
    )
    number = models.PositiveIntegerField()
    at = models.DateTimeField()
    by_kind = models.CharField(max_length=8)  # "system", or "person" on request
    by_id = models.CharField(max_length=64)
    # succeeded, failed, not_found or unknown; `detail` is the service's own text.
    said = models.CharField(max_length=9)
    code = models.CharField(max_length=64, blank=True)
    detail = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["execution", "number"], name="look_up_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.execution_id} look-up {self.number}"
