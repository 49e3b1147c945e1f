"""The second factor of a person: an authenticator app (TOTP, RFC 6238), passkeys
(`passkeys`), and recovery codes for when they are lost. A person who has one needs it
at every sign-in, and may use it in place of the password where a page asks who they
are.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.constant_time import bytes_eq
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.backends import BaseBackend
from django.db.models import Case, F, Q, QuerySet, Value, When
from django.http import HttpRequest

from journal import bearer_tokens, clock, encryption, ids, log
from journal.errors import Conflict
from journal.operations import operation

from . import people
from .models import Passkey, Person, RecoveryCode, TotpDevice

DIGITS, PERIOD_S = 6, 30  # what every authenticator app has as its default
SECRET_BYTES = 20  # RFC 4226, section 4: of HMAC-SHA-1
EARLY_AND_LATE = (-1, 0, 1)  # time steps whose code works (RFC 6238, section 5.2)
SHOWN_FOR = timedelta(minutes=15)
MOST_ATTEMPTS, COOL_OFF = 10, timedelta(minutes=15)
RECOVERY_CODES, RECOVERY_LETTERS = 10, 16  # 80 random bits each
WRONG_CODE = (
    "That code is not right, or it was used already. Nothing was done. Wait for the"
    " next one."
)


def build_secret_binding(device: TotpDevice) -> bytes:
    """What binds the stored secret to its person."""
    return f"totp {device.person_id}".encode()


def find_device(person: Person) -> TotpDevice | None:
    """The person's authenticator app once it counts; else None."""
    return TotpDevice.objects.filter(person=person, confirmed_at__isnull=False).first()


def has_second_factor(person: Person) -> bool:
    """Whether the person needs a second factor to sign in."""
    return find_device(person) is not None or has_passkey(person)


def has_passkey(person: Person) -> bool:
    """Whether the person has a passkey."""
    return Passkey.objects.filter(person=person).exists()


def find_pending_secret(person: Person) -> str:
    """The secret, in base32, of an app whose first code is awaited; else ""."""
    device = _select_waiting(person, clock.now()).first()
    return base64.b32encode(_read_secret(device)).decode() if device else ""


def build_enrolment_address(person: Person, secret: str) -> str:
    """The address that a QR code carries to an authenticator app."""
    issuer = f"Counterseal {settings.COUNTERSEAL.hostname}"
    totp = _build_totp(base64.b32decode(secret))
    return totp.get_provisioning_uri(person.get_username(), issuer)


def count_recovery_codes(person: Person) -> int:
    """How many recovery codes the person has left."""
    return RecoveryCode.objects.filter(person=person, used_at__isnull=True).count()


@operation(writes="TotpDevice")
def begin_enrolment(person: Person) -> None:
    """Make a secret for the person's authenticator app; it replaces one whose first
    code has not come. Raises Conflict for a person who has an app."""
    now, device = clock.now(), TotpDevice(person=person)
    binding = build_secret_binding(device)
    secret = secrets.token_bytes(SECRET_BYTES)
    values = {
        "secret": encryption.encrypt_stored(secret, binding),
        "created_at": now,
        "attempts": 0,
    }
    row, created = TotpDevice.objects.get_or_create(person=person, defaults=values)
    waiting = TotpDevice.objects.filter(pk=row.pk, confirmed_at__isnull=True)
    if not created and not waiting.update(**values):
        raise Conflict("You have an authenticator app already. Nothing was changed.")


@operation(
    writes="TotpDevice, RecoveryCode", logs="person.factor_added", after="wake-up"
)
def confirm_enrolment(person: Person, code: str) -> Sequence[str] | None:
    """Count the app from now on, because it showed the right code. Returns new recovery
    codes, which are not stored; None for a wrong code. Raises Conflict when no app
    waits for its first code."""
    now = clock.now()
    waiting = _select_waiting(person, now)
    device = waiting.first()
    if device is None:
        raise Conflict("No authenticator app waits for a code. Nothing was changed.")
    if not _use_totp(device, _strip_code(code), now):
        return None
    if not waiting.update(confirmed_at=now):
        raise Conflict("It was confirmed already. Nothing was changed.")
    _log_factor("person.factor_added", person, people.build_actor(person))
    return _replace_recovery_codes(person)


@operation(writes="RecoveryCode", logs="person.recovery_codes_renewed", after="wake-up")
def renew_recovery_codes(person: Person) -> Sequence[str]:
    """New recovery codes in place of the former ones. Raises Conflict for a person
    without a second factor."""
    if not has_second_factor(person):
        raise Conflict("You have no second factor. Nothing was changed.")
    actor = people.build_actor(person)
    _log_factor("person.recovery_codes_renewed", person, actor)
    return _replace_recovery_codes(person)


@operation(
    writes="TotpDevice, RecoveryCode", logs="person.factor_removed", after="wake-up"
)
def remove_own_app(person: Person) -> None:
    """Remove the person's own authenticator app; the recovery codes go with the last
    factor. Caller has checked a password and a code. Raises Conflict when there is
    none."""
    removed, _ = TotpDevice.objects.filter(person=person).delete()
    if not removed:
        raise Conflict("There is no app to remove. Nothing was changed.")
    drop_idle_codes(person)
    _log_factor("person.factor_removed", person, people.build_actor(person))


@operation(
    writes="TotpDevice, Passkey, RecoveryCode",
    logs="person.factor_removed",
    after="wake-up",
)
def remove_lost_factor(person: Person, *, by: Person) -> None:
    """Remove the lost second factor of a person, from a shell on the gate's host.
    Raises NotPermitted for anybody but an administrator, and Conflict when there is
    none."""
    people.check_administrator(by)
    remove_factor(person, by=people.build_actor(by))


def remove_factor(person: Person, *, by: log.Actor) -> None:
    """`remove_lost_factor` as a step: the app, every passkey and the codes. Caller
    holds a transaction, and has checked who asks."""
    apps, _ = TotpDevice.objects.filter(person=person).delete()
    keys, _ = Passkey.objects.filter(person=person).delete()
    RecoveryCode.objects.filter(person=person).delete()
    if not apps + keys:
        raise Conflict("There is no second factor to remove. Nothing was changed.")
    _log_factor("person.factor_removed", person, by)


@operation(
    writes="TotpDevice, RecoveryCode", logs="person.recovery_code_used", after="wake-up"
)
def use_code(person: Person, code: str, *, recovery: bool) -> bool:
    """Whether the code is right; it does not work again. `recovery` also takes a
    recovery code. After ten wrong ones in a row, none works for a quarter of an hour,
    from whatever address they came."""
    device, now, text = find_device(person), clock.now(), _strip_code(code)
    if text.isdecimal() and len(text) == DIGITS:
        return device is not None and _use_totp(device, text, now)
    if not recovery or (device is not None and not _take_attempt(device, now)):
        return False
    digest = bearer_tokens.hash_secret(text)
    unused = RecoveryCode.objects.filter(
        person=person, digest=digest, used_at__isnull=True
    )
    if not unused.update(used_at=now):
        return False
    TotpDevice.objects.filter(person=person).update(attempts=0)
    _log_factor("person.recovery_code_used", person, people.build_actor(person))
    return True


class CodeBackend(BaseBackend):
    """Checks a code as Django checks a password, so that wrong ones lock the sign-in
    out."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str = "",
        one_time_password: str = "",
        recovery: bool = False,
        **other: Any,
    ) -> Person | None:
        """The person of this name, if the code is theirs."""
        if not one_time_password:
            return None
        person = Person.objects.filter(username=username, is_active=True).first()
        valid = person and use_code(person, one_time_password, recovery=recovery)
        return person if valid else None


def is_right_code(
    http: HttpRequest, person: Person, code: str, *, recovery: bool = False
) -> bool:
    """Whether the person just typed a right code. Wrong ones count towards the login
    lockout."""
    proved = authenticate(
        http,
        username=person.get_username(),
        one_time_password=code,
        recovery=recovery,
    )
    return proved is not None and proved.pk == person.pk


def complete_codes(person: Person) -> Sequence[str]:
    """New recovery codes for a person who has none left, else nothing. Caller holds a
    transaction."""
    return () if count_recovery_codes(person) else _replace_recovery_codes(person)


def drop_idle_codes(person: Person) -> None:
    """Delete the recovery codes of a person who has no factor left. Caller holds a
    transaction."""
    if not has_second_factor(person):
        RecoveryCode.objects.filter(person=person).delete()


def _select_waiting(person: Person, now: datetime) -> QuerySet[TotpDevice]:
    """The app whose first code is awaited: its secret is shown for a while only."""
    rows = TotpDevice.objects.filter(person=person, confirmed_at__isnull=True)
    return rows.filter(created_at__gt=now - SHOWN_FOR)


def _use_totp(device: TotpDevice, code: str, now: datetime) -> bool:
    if not _take_attempt(device, now):
        return False
    totp, step = _build_totp(_read_secret(device)), int(now.timestamp()) // PERIOD_S
    given = code.encode()
    for at in (step + shift for shift in EARLY_AND_LATE):
        if not bytes_eq(totp.generate(at * PERIOD_S), given):
            continue
        rows = TotpDevice.objects.filter(pk=device.pk)
        rows = rows.filter(last_step__lt=at)  # guard: totp-once
        return bool(rows.update(last_step=at, attempts=0))
    return False


def _take_attempt(device: TotpDevice, now: datetime) -> bool:
    """Count a code before it is checked, so that many at once are not more tries."""
    rested = Q(attempted_at__isnull=True) | Q(attempted_at__lte=now - COOL_OFF)
    rows = TotpDevice.objects.filter(pk=device.pk)
    rows = rows.filter(rested | Q(attempts__lt=MOST_ATTEMPTS))  # guard: totp-attempts
    count = Case(When(rested, then=Value(1)), default=F("attempts") + 1)
    return bool(rows.update(attempts=count, attempted_at=now))


def _strip_code(code: str) -> str:
    """The code without the spaces and hyphens that help people to read it."""
    return "".join(code.split()).replace("-", "").lower()


def _replace_recovery_codes(person: Person) -> Sequence[str]:
    RecoveryCode.objects.filter(person=person).delete()
    texts = [
        "".join(secrets.choice(ids.ALPHABET) for _ in range(RECOVERY_LETTERS))
        for _ in range(RECOVERY_CODES)
    ]
    RecoveryCode.objects.bulk_create(
        RecoveryCode(person=person, digest=bearer_tokens.hash_secret(text))
        for text in texts
    )
    return [
        "-".join(text[at : at + 4] for at in range(0, len(text), 4)) for text in texts
    ]


def _read_secret(device: TotpDevice) -> bytes:
    return encryption.decrypt_stored(device.secret, build_secret_binding(device))


def _build_totp(secret: bytes) -> TOTP:
    return TOTP(secret, DIGITS, SHA1(), PERIOD_S)  # noqa: S303 - what apps speak


def _log_factor(kind: str, person: Person, by: log.Actor) -> None:
    data = {"person": person.public_id, "factor": "totp"}
    log.append(kind, actor=by, at=clock.now(), data=data)
