"""What an identity provider keeps here over SCIM 2.0: its tokens, and the people and
groups that it sent."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower, Now

from journal import ids


def new_group_id() -> str:
    """The default of ProvisionedGroup.public_id."""
    return ids.new("pg")


def _administrator(*, null: bool = False) -> models.ForeignKey:  # type: ignore[type-arg]
    return models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=null,
        on_delete=models.PROTECT,
        db_index=False,
        related_name="+",
    )


class ProvisioningToken(models.Model):
    """The provider's bearer token, stored as a digest. One administrator makes it, and
    it is of no use until another one confirms it."""

    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=80)
    reason = models.TextField()
    asked_by = _administrator()
    asked_at = models.DateTimeField()
    confirmed_by = _administrator(null=True)
    confirmed_at = models.DateTimeField(null=True)
    ended_by = _administrator(null=True)
    ended_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)  # within a minute

    class Meta:
        ordering: ClassVar = ["-asked_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["prefix"], name="provisioning_token_prefix"
            ),
            models.CheckConstraint(
                name="provisioning_token_confirmed",
                condition=Q(confirmed_at__isnull=True, confirmed_by__isnull=True)
                | Q(confirmed_at__isnull=False, confirmed_by__isnull=False)
                & ~Q(confirmed_by=F("asked_by")),
            ),
            models.CheckConstraint(
                name="provisioning_token_ended",
                condition=Q(ended_at__isnull=True, ended_by__isnull=True)
                | Q(ended_at__isnull=False, ended_by__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}…"


class ProvisionedPerson(models.Model):
    """A person whom the provider keeps. `deactivated_at` is set while it is the
    provider that keeps the account deactivated; `removed_at` once it deleted the
    person, who is not there for it any more."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="provisioned",
    )
    external_id = models.CharField(max_length=255, blank=True)
    provisioned_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(db_default=Now())
    deactivated_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.person_id} of the provider"


class ProvisionedGroup(models.Model):
    """A group of the provider, with those of its members who are people here."""

    public_id = models.CharField(max_length=40, default=new_group_id, editable=False)
    name = models.CharField(max_length=255)
    external_id = models.CharField(max_length=255, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["public_id"], name="provisioned_group_public_id"
            ),
            models.UniqueConstraint(Lower("name"), name="provisioned_group_name"),
        ]

    def __str__(self) -> str:
        return self.name


class ProvisionedMember(models.Model):
    """A person in a group of the provider."""

    group = models.ForeignKey(
        ProvisionedGroup,
        on_delete=models.CASCADE,
        db_index=False,
        related_name="members",
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["group", "person"], name="provisioned_member_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.person_id} in {self.group_id}"
