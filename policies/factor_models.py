"""What a person proves who they are with beside a password, or in place of it."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class TotpDevice(models.Model):
    """A person's authenticator app (RFC 6238). It counts once its first code came."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="totp_device",
    )
    secret = models.BinaryField()  # encrypted under DATA_KEY
    created_at = models.DateTimeField(db_default=Now())
    confirmed_at = models.DateTimeField(null=True)
    # The time step of the last code that was accepted: no code works twice.
    last_step = models.BigIntegerField(default=0)
    # Codes sent since the last right one, from whatever address, and when.
    attempts = models.PositiveSmallIntegerField(default=0)
    attempted_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"authenticator app of {self.person_id}"


class RecoveryCode(models.Model):
    """A code that replaces the authenticator app once, stored as a digest."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="recovery_codes",
    )
    digest = models.CharField(max_length=80)
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["person", "digest"], name="recovery_code_once"
            )
        ]

    def __str__(self) -> str:
        return f"recovery code of {self.person_id}"


class Passkey(models.Model):
    """A passkey of a person (WebAuthn): what the gate knows of a key pair whose private
    half an authenticator keeps."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="passkeys"
    )
    name = models.CharField(max_length=60)
    credential = models.BinaryField(max_length=1023)  # its id, which is no secret
    key = models.BinaryField()  # the attested credential data, with the public key
    # What the authenticator counted at its last answer; 0 for one that does not count.
    sign_count = models.BigIntegerField(default=0)
    # When the last accepted challenge was issued: none up to then works again.
    last_challenge = models.BigIntegerField(default=0)  # in microseconds
    created_at = models.DateTimeField(db_default=Now())
    used_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["created_at", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["credential"], name="passkey_once")
        ]

    def __str__(self) -> str:
        return f"passkey of {self.person_id}"


class FederatedIdentity(models.Model):
    """The account of a person at the identity provider (OpenID Connect) that signs them
    in. The provider alone makes it: nobody types a subject."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="federated_identity",
    )
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)
    linked_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["issuer", "subject"], name="federated_identity_once"
            )
        ]

    def __str__(self) -> str:
        return f"account of {self.person_id} at {self.issuer}"


class SignIn(models.Model):
    """A session of a browser that a person began, for the list of their sessions. The
    session itself is Django's row of the same key."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_ins"
    )
    session_key = models.CharField(max_length=40)
    began_at = models.DateTimeField()
    seen_at = models.DateTimeField()  # within some minutes
    address = models.GenericIPAddressField(null=True)
    browser = models.CharField(max_length=300, blank=True)  # its User-Agent: untrusted

    class Meta:
        ordering: ClassVar = ["-seen_at"]
        constraints: ClassVar = [
            # unique=True would also make an index for LIKE, which nothing reads
            models.UniqueConstraint(fields=["session_key"], name="sign_in_key_once"),
        ]

    def __str__(self) -> str:
        return f"session of {self.person_id}"
