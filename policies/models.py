"""People, queues, policy versions, tools and observations: what may be done and who may
decide it. Only administrators change these, never agents. Tools and active policy
versions are immutable; a change is a new row."""

from __future__ import annotations

from datetime import UTC
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Lower, Now
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from journal import clock, encryption, ids

from .choices import ExecutionClass, Risk
from .factor_models import FederatedIdentity as FederatedIdentity
from .factor_models import Passkey as Passkey
from .factor_models import RecoveryCode as RecoveryCode
from .factor_models import SignIn as SignIn
from .factor_models import TotpDevice as TotpDevice
from .mailboxes import fold_mailbox
from .money import Money
from .provisioning_models import ProvisionedGroup as ProvisionedGroup
from .provisioning_models import ProvisionedMember as ProvisionedMember
from .provisioning_models import ProvisionedPerson as ProvisionedPerson
from .provisioning_models import ProvisioningToken as ProvisioningToken

ONE_ACCOUNT = "person_one_account"


def new_person_id() -> str:
    """The default of Person.public_id."""
    return ids.new("u")


def new_standing_grant_id() -> str:
    """The default of StandingGrant.id."""
    return ids.new("sg")


class Person(AbstractUser):
    """A person who can sign in. The audit log has only the opaque public id, never the
    name."""

    public_id = models.CharField(
        max_length=40, unique=True, default=new_person_id, editable=False
    )
    # The largest amount this person may decide, in minor units; null means any.
    ceiling_minor = models.BigIntegerField(null=True, blank=True)
    ceiling_currency = models.CharField(max_length=3, blank=True)
    # Personal tokens created before it are invalid. Rehashing at sign-in, after the
    # number of hash iterations was raised, does not set it.
    password_changed_at = models.DateTimeField(null=True, editable=False)

    class Meta(AbstractUser.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(
                Lower("email"),
                condition=~models.Q(email=""),
                name=ONE_ACCOUNT,
                violation_error_message="Another account has this mail address.",
            ),
            models.CheckConstraint(
                name="person_ceiling_paired",
                condition=models.Q(ceiling_minor__isnull=True, ceiling_currency="")
                | (
                    models.Q(ceiling_minor__isnull=False)
                    & ~models.Q(ceiling_currency="")
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.get_full_name() or self.username

    @property
    def ceiling(self) -> Money | None:
        """The largest amount this person may decide; None for any."""
        if self.ceiling_minor is None:
            return None
        return Money(self.ceiling_minor, self.ceiling_currency)

    def set_password(self, raw_password: str | None) -> None:
        """Set the password and the time of the change; the caller saves the row."""
        super().set_password(raw_password)
        self.password_changed_at = clock.now()

    def clean(self) -> None:
        """Raise ValidationError for a mailbox that another account has."""
        super().clean()
        if twin := self.same_mailbox():
            text = (
                f"{twin.username} has this email address. Each person has one account."
            )
            raise ValidationError({"email": text})

    def same_mailbox(self) -> Person | None:
        """Another account with the same mailbox, in whatever spelling; else None."""
        mailbox = fold_mailbox(self.email)
        others = Person.objects.exclude(pk=self.pk).exclude(email="")
        rows = others.only("username", "email") if mailbox else ()
        return next((row for row in rows if fold_mailbox(row.email) == mailbox), None)


class Queue(models.Model):
    """A named set of tools that people are admitted to."""

    name = models.SlugField(max_length=64, unique=True)
    title = models.CharField(max_length=128)

    class Meta:
        permissions: ClassVar = [("decide", "Can decide requests in this queue")]
        default_permissions: ClassVar = ()

    def __str__(self) -> str:
        return self.name


class QueueUserPermission(UserObjectPermissionBase):
    """A person admitted to a queue: django-guardian's, with a direct foreign key."""

    id = models.BigAutoField(primary_key=True)
    content_object = models.ForeignKey(Queue, on_delete=models.CASCADE)

    class Meta(UserObjectPermissionBase.Meta):
        abstract = False


class QueueGroupPermission(GroupObjectPermissionBase):
    """A role, as a group, admitted to a queue."""

    id = models.BigAutoField(primary_key=True)
    content_object = models.ForeignKey(Queue, on_delete=models.CASCADE)

    class Meta(GroupObjectPermissionBase.Meta):
        abstract = False


class Substitution(models.Model):
    """One queue that a person handed to a substitute until a date. It counts while
    the view of `Admission` says so."""

    person = models.ForeignKey(
        Person, on_delete=models.CASCADE, related_name="substitutions"
    )
    substitute = models.ForeignKey(
        Person, on_delete=models.CASCADE, related_name="stands_in"
    )
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE)
    began_at = models.DateTimeField()
    until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)  # before its time, by either of them

    class Meta:
        ordering: ClassVar = ["until", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                "person",
                "queue",
                condition=models.Q(ended_at=None),
                name="substitution_one_open",
            ),
            models.CheckConstraint(
                condition=~models.Q(person=models.F("substitute")),
                name="substitution_of_another",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.substitute_id} for {self.person_id}"


class Admission(models.Model):
    """That a person may decide in a queue now, as their role allows: admitted
    directly, through a role or as a substitute, and not handed to one. A view."""

    pk = models.CompositePrimaryKey("person_id", "queue_id")
    person = models.ForeignKey(Person, on_delete=models.DO_NOTHING, related_name="+")
    queue = models.ForeignKey(Queue, on_delete=models.DO_NOTHING, related_name="+")

    class Meta:
        managed = False
        db_table = "policies_admission"

    def __str__(self) -> str:
        return f"{self.person_id} in {self.queue_id}"


class PolicyVersion(models.Model):
    """One version of the policy document. At most one is active; an active version
    never changes except to be retired."""

    class Status(models.TextChoices):
        DRAFT = "draft"
        ACTIVE = "active"
        RETIRED = "retired"
        REFUSED = "refused"

    number = models.PositiveIntegerField(unique=True)
    status = models.CharField(
        max_length=8, choices=Status.choices, default=Status.DRAFT
    )
    document = models.JSONField()
    digest = models.CharField(max_length=80)
    # Null where the gate itself began with this policy (policies/first_policy.py).
    author = models.ForeignKey(
        Person, null=True, on_delete=models.PROTECT, related_name="policies_written"
    )
    activated_by = models.ForeignKey(
        Person, null=True, on_delete=models.PROTECT, related_name="policies_activated"
    )
    created_at = models.DateTimeField(db_default=Now())
    activated_at = models.DateTimeField(null=True)
    solo = models.BooleanField(db_default=False, default=False)  # saved in solo mode
    refused_by = models.ForeignKey(
        Person, null=True, on_delete=models.PROTECT, related_name="policies_refused"
    )
    refused_at = models.DateTimeField(null=True)
    refusal = models.TextField(blank=True, default="", db_default="")  # the reason

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="policy_activation_paired",
                condition=models.Q(
                    models.Q(activated_by__isnull=True, activated_at__isnull=True),
                    status__in=["draft", "refused"],
                )
                | models.Q(
                    status__in=["active", "retired"],
                    activated_by__isnull=False,
                    activated_at__isnull=False,
                )
                | models.Q(
                    status__in=["active", "retired"],
                    author__isnull=True,
                    activated_by__isnull=True,
                    activated_at__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="policy_refusal_paired",
                condition=models.Q(
                    ~models.Q(status="refused"),
                    refused_by__isnull=True,
                    refused_at__isnull=True,
                    refusal="",
                )
                | models.Q(
                    ~models.Q(refusal=""),
                    status="refused",
                    refused_by__isnull=False,
                    refused_at__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="policy_needs_two_people",
                condition=models.Q(solo=True)
                | ~models.Q(activated_by=models.F("author")),
            ),
            models.UniqueConstraint(
                fields=["status"],
                condition=models.Q(status="active"),
                name="policy_one_active",
            ),
        ]

    def __str__(self) -> str:
        return f"policy v{self.number}"


class Tool(models.Model):
    """One immutable version of a tool.

    `definition` is the policy document's ToolDefinition as plain data: arguments
    schema, profile, classes, effect sentence, executor, reader and so on.
    """

    name = models.CharField(max_length=64)
    version = models.PositiveIntegerField()
    definition = models.JSONField()
    digest = models.CharField(max_length=80)
    risk = models.CharField(max_length=8, choices=[(r, r) for r in Risk])
    execution_class = models.CharField(
        max_length=9, choices=[(c, c) for c in ExecutionClass]
    )
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="tools")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["name", "version"], name="tool_version"),
            models.UniqueConstraint(fields=["name", "digest"], name="tool_definition"),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class Observation(models.Model):
    """What one proposal adds to one measure; rolling sums and counts are over these.

    `measure` is the measure's name in the policy, and `key` the customer, agent or
    target that it sums by. A refusal sets `counts` to false. A window counts from the
    effect: `ran_by` is the time at which it ran or, until then, the latest time at
    which it can run.
    """

    proposal = models.CharField(max_length=40)
    measure = models.CharField(max_length=64)
    key = models.CharField(max_length=200)
    amount_minor = models.BigIntegerField(default=0)
    currency = models.CharField(max_length=3, blank=True)
    at = models.DateTimeField()
    ran_by = models.DateTimeField()
    # True once the effect may have run. Then only evidence that it did not run takes
    # the proposal out of the sums.
    ran = models.BooleanField(default=False, db_default=False)
    counts = models.BooleanField(default=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["proposal", "measure", "key"], name="observation_once"
            )
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["measure", "key", "ran_by"],
                name="observation_ran",
                condition=models.Q(counts=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.measure} {self.key} {self.proposal}"


class StandingGrant(models.Model):
    """A person's permission, given in advance, for calls of one tool in one run: until
    a time, and up to a number of uses. `request` is the one on whose page it was
    issued. Only `uses` and the revocation ever change."""

    id = models.CharField(
        max_length=40, primary_key=True, default=new_standing_grant_id
    )
    agent = models.CharField(max_length=64)
    thread = models.CharField(max_length=128)
    tool = models.CharField(max_length=64)
    queue = models.ForeignKey(
        Queue, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    request = models.CharField(max_length=40)
    issued_by = models.ForeignKey(
        Person, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    role = models.CharField(max_length=20)  # in which they issued it
    reason = models.TextField()
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    budget = models.PositiveIntegerField()
    uses = models.PositiveIntegerField(default=0)
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.ForeignKey(
        Person,
        null=True,
        on_delete=models.PROTECT,
        db_index=False,
        related_name="+",
    )
    # A MAC of what was issued (`compute_seal`): without it, it covers nothing.
    seal = models.CharField(max_length=80, blank=True, db_default="")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(uses__lte=models.F("budget")),
                name="standing_grant_budget",
            ),
            models.CheckConstraint(
                condition=models.Q(expires_at__gt=models.F("issued_at")),
                name="standing_grant_ends",
            ),
            models.CheckConstraint(
                condition=models.Q(revoked_at__isnull=True, revoked_by__isnull=True)
                | models.Q(revoked_at__isnull=False, revoked_by__isnull=False),
                name="standing_grant_revoked",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["agent", "thread", "tool"],
                name="standing_grant_run",
                condition=models.Q(revoked_at__isnull=True),
            ),
            models.Index(fields=["-issued_at"], name="standing_grant_newest"),
        ]

    def __str__(self) -> str:
        return self.id

    def compute_seal(self) -> str:
        """The seal of all that was issued, but not of its uses or its revocation."""
        return encryption.seal_content(self._build_issued_content())

    def is_sealed(self) -> bool:
        """Whether Counterseal itself issued it, with these terms."""
        return encryption.is_sealed(self._build_issued_content(), self.seal)

    def is_sealed_by(self, key: bytes) -> bool:
        """Whether its seal needs this data key."""
        return encryption.is_sealed_by(self._build_issued_content(), self.seal, key)

    def _build_issued_content(self) -> dict[str, Any]:
        names = ("agent", "thread", "tool", "queue_id", "request", "issued_by_id")
        return {
            "standing_grant": self.pk,
            **{name: getattr(self, name) for name in names},
            "role": self.role,
            "issued_at": self.issued_at.astimezone(UTC).isoformat(),
            "expires_at": self.expires_at.astimezone(UTC).isoformat(),
            "budget": self.budget,
        }
