"""Passkeys (WebAuthn): a person's key pairs, whose private half stays with an
authenticator. One signs the person in, alone or after the password, and confirms a
decision.

An authenticator signs a challenge of this gate. An HMAC binds the challenge to its
purpose, such as the one verdict that it confirms: an answer serves no other purpose. It
is valid for five minutes and works once.
"""

from __future__ import annotations

import ipaddress
import json
import secrets
import struct
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.constant_time import bytes_eq
from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.backends import BaseBackend
from django.db.models import Q
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from fido2.cose import CoseKey
from fido2.server import Fido2Server
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialDescriptor,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialType,
    PublicKeyCredentialUserEntity,
    RegistrationResponse,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from journal import clock, log
from journal.errors import Conflict, InvalidInput, build_field_error
from journal.operations import operation

from . import people, second_factors, solo
from .models import FederatedIdentity, Passkey, Person

CHALLENGE_LIFETIME = timedelta(minutes=5)
MOST_PASSKEYS, LONGEST_NAME, LONGEST_ANSWER = 20, 60, 16_000
LONGEST_CREDENTIAL = 1023  # bytes (WebAuthn Level 3, section 4)
WRONG_PASSKEY = (
    "That passkey is not right, or its answer came too late. Nothing was done. Try"
    " again."
)
_NONCE_BYTES, _MAC_BYTES = 16, 32
_SALT = "policies.passkeys.challenge"
# What an answer that is wrong in any part ends in.
_WRONG = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    RecursionError,
    TypeError,
    UnsupportedAlgorithm,
    ValueError,
    struct.error,
)


def is_offered() -> bool:
    """Whether browsers make passkeys for the gate's address: it has a name, and https
    unless the name is of this machine."""
    given = settings.COUNTERSEAL
    try:
        ipaddress.ip_address(given.hostname)
    except ValueError:
        return bool(given.hostname) and (given.https or given.loopback)
    return False


def find_localhost() -> str:
    """The address at which browsers of this machine make passkeys, where the gate's is
    a loopback number; "" for others."""
    given = settings.COUNTERSEAL
    if is_offered() or not given.loopback:
        return ""
    parts = urlsplit(given.base_url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://localhost{port}"


def may_sign_in_alone(person: Person) -> bool:
    """Whether a passkey signs this person in without a password. Not where they have
    none: their identity provider decides who comes in, or their account was deactivated
    and waits for a new password. In solo mode there is no password."""
    if person.has_usable_password():
        return True
    linked = FederatedIdentity.objects.filter(person=person)
    return solo.is_solo() and not linked.exists()


def list_passkeys(person: Person) -> Sequence[Passkey]:
    """The person's passkeys, oldest first."""
    return list(Passkey.objects.filter(person=person))


def issue_challenge(purpose: str) -> bytes:
    """A challenge for exactly this purpose, as of now."""
    head = secrets.token_bytes(_NONCE_BYTES) + struct.pack(">q", _count_microseconds())
    return head + _compute_mac(head, purpose)


def read_challenge(challenge: bytes, purpose: str) -> int | None:
    """When the challenge was issued for exactly this purpose, in microseconds; None for
    one that is too old or was not."""
    head, mac = challenge[:-_MAC_BYTES], challenge[-_MAC_BYTES:]
    if len(head) != _NONCE_BYTES + 8:
        return None
    if not bytes_eq(mac, _compute_mac(head, purpose)):  # guard: passkey-purpose
        return None
    (issued,) = struct.unpack(">q", head[_NONCE_BYTES:])
    age = timedelta(microseconds=_count_microseconds() - issued)
    return issued if timedelta() <= age <= CHALLENGE_LIFETIME else None


def build_creation_options(person: Person) -> dict[str, Any]:
    """What a browser needs to make a passkey for this person."""
    user = PublicKeyCredentialUserEntity(
        id=person.public_id.encode(),
        name=person.get_username(),
        display_name=str(person),
    )
    options, _ = _build_server().register_begin(
        user,
        _describe_credentials(person),
        resident_key_requirement=ResidentKeyRequirement.PREFERRED,
        user_verification=UserVerificationRequirement.PREFERRED,
        challenge=issue_challenge(_name_registration(person)),
    )
    return dict(options.public_key)


def build_request_options(
    purpose: str, person: Person | None, *, verified: bool
) -> dict[str, Any]:
    """What a browser needs to ask for a passkey of this person, or for any of this gate
    without one. `verified` has the authenticator check who uses it."""
    options, _ = _build_server().authenticate_begin(
        _describe_credentials(person) if person else None,
        user_verification=_choose_verification(verified),
        challenge=issue_challenge(purpose),
    )
    return dict(options.public_key)


@operation(writes="Passkey, RecoveryCode", logs="person.passkey_added", after="wake-up")
def add_passkey(person: Person, name: str, answer: str) -> Sequence[str]:
    """Add the passkey that a browser made. Returns new recovery codes where the person
    has none, which are not stored. Raises InvalidInput for a wrong answer, and Conflict
    for a passkey that is known."""
    try:
        response = RegistrationResponse.from_dict(_parse_answer(answer))
        challenge = response.response.client_data.challenge
        if read_challenge(challenge, _name_registration(person)) is None:
            raise ValueError("the challenge is of another purpose or too old")
        made = _build_server().register_complete(
            _build_state(challenge, verified=False), response
        )
        key = made.credential_data
        if key is None or len(key.credential_id) > LONGEST_CREDENTIAL:
            raise ValueError("there is no key, or its id is too long")
        if key.public_key.ALGORITHM not in CoseKey.supported_algorithms():
            raise ValueError("the key's algorithm is not known")
    except _WRONG:
        rule = "the browser's answer is not valid; try again"
        raise InvalidInput(errors=[build_field_error("passkey", rule)]) from None
    if Passkey.objects.filter(person=person).count() >= MOST_PASSKEYS:
        raise Conflict(f"You have {MOST_PASSKEYS} passkeys. Remove one first.")
    _, created = Passkey.objects.get_or_create(
        credential=key.credential_id,
        defaults={
            "person": person,
            "name": name,
            "key": bytes(key),
            "sign_count": made.counter,
            "last_challenge": _count_microseconds(),
        },
    )
    if not created:
        raise Conflict("This passkey was added already. Nothing was changed.")
    _log_passkey("person.passkey_added", person)
    return second_factors.complete_codes(person)


@operation(
    writes="Passkey, RecoveryCode", logs="person.passkey_removed", after="wake-up"
)
def remove_own_passkey(person: Person, passkey_id: int) -> None:
    """Remove one of the person's own passkeys; the recovery codes go with the last
    factor. Caller has checked a password and a second factor. Raises Conflict when it
    is gone."""
    removed, _ = Passkey.objects.filter(person=person, pk=passkey_id).delete()
    if not removed:
        raise Conflict("That passkey is removed already. Nothing was changed.")
    second_factors.drop_idle_codes(person)
    _log_passkey("person.passkey_removed", person)


def find_owner(answer: str) -> Person | None:
    """The active person whose passkey the answer names; it is not checked yet."""
    try:
        response = AuthenticationResponse.from_dict(_parse_answer(answer))
        handle = response.response.user_handle
        rows = Passkey.objects.filter(credential=response.raw_id)
    except _WRONG:
        return None
    row = rows.filter(person__is_active=True).select_related("person").first()
    if row is None or handle not in (None, row.person.public_id.encode()):
        return None
    return row.person


@operation(writes="Passkey", logs="person.passkey_refused", after="wake-up")
def use_passkey(person: Person, answer: str, purpose: str, *, verified: bool) -> bool:
    """Whether the answer is of a passkey of this person and for exactly this purpose.
    It does not work again. `verified` asks that the authenticator checked who used it.
    An authenticator that counts backwards may be a copy: it is refused, which is
    logged."""
    try:
        response = AuthenticationResponse.from_dict(_parse_answer(answer))
        challenge = response.response.client_data.challenge
        issued = read_challenge(challenge, purpose)
        row = Passkey.objects.filter(person=person, credential=response.raw_id).first()
        if issued is None or row is None:
            return False
        _build_server().authenticate_complete(
            _build_state(challenge, verified=verified),
            [AttestedCredentialData(bytes(row.key))],
            response,
        )
        counter = response.response.authenticator_data.counter
    except _WRONG:
        return False
    rows = Passkey.objects.filter(person=person)
    rows = rows.filter(last_challenge__lt=issued)  # guard: passkey-once
    if not rows.update(last_challenge=issued):
        return False
    same = Passkey.objects.filter(pk=row.pk)
    uncounted = Q(sign_count=0) if counter == 0 else Q()
    same = same.filter(Q(sign_count__lt=counter) | uncounted)  # guard: passkey-clone
    if not same.update(sign_count=counter, used_at=clock.now()):
        _log_passkey("person.passkey_refused", person)
        return False
    return True


class PasskeyBackend(BaseBackend):
    """Checks a passkey as Django checks a password, so that wrong ones lock the sign-in
    out."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str = "",
        passkey: str = "",
        purpose: str = "",
        verified: bool = True,
        **other: Any,
    ) -> Person | None:
        """The person of this name, if the answer is of a passkey of theirs."""
        if not passkey:
            return None
        person = Person.objects.filter(username=username, is_active=True).first()
        if person is None:
            return None
        right = use_passkey(person, passkey, purpose, verified=verified)
        return person if right else None


def is_right_passkey(
    http: HttpRequest,
    person: Person,
    answer: str,
    purpose: str,
    *,
    verified: bool = True,
) -> bool:
    """Whether the person just used a passkey of theirs for this purpose. Wrong answers
    count towards the login lockout."""
    proved = authenticate(
        http,
        username=person.get_username(),
        passkey=answer,
        purpose=purpose,
        verified=verified,
    )
    return proved is not None and proved.pk == person.pk


def _build_server() -> Fido2Server:
    hostname = settings.COUNTERSEAL.hostname
    party = PublicKeyCredentialRpEntity(name="Counterseal", id=hostname)
    return Fido2Server(party, verify_origin=_is_own_origin)


def _is_own_origin(sent: str) -> bool:
    """fido2 alone would also take the subdomains."""
    parts = urlsplit(settings.COUNTERSEAL.base_url)
    origin = f"{parts.scheme}://{parts.netloc}".lower()
    return sent == origin  # guard: passkey-origin


def _build_state(challenge: bytes, *, verified: bool) -> dict[str, Any]:
    """What fido2 compares with; `read_challenge` has compared the challenge."""
    return {
        "challenge": websafe_encode(challenge),
        "user_verification": _choose_verification(verified),
    }


def _choose_verification(verified: bool) -> UserVerificationRequirement:
    if verified:
        return UserVerificationRequirement.REQUIRED
    return UserVerificationRequirement.PREFERRED


def _describe_credentials(person: Person) -> list[PublicKeyCredentialDescriptor]:
    return [
        PublicKeyCredentialDescriptor(
            type=PublicKeyCredentialType.PUBLIC_KEY, id=bytes(row.credential)
        )
        for row in list_passkeys(person)
    ]


def _parse_answer(answer: str) -> dict[str, Any]:
    if len(answer) > LONGEST_ANSWER:
        raise ValueError("the answer is too long")
    plain: dict[str, Any] = json.loads(answer)
    websafe_decode(plain["rawId"])
    return plain


def _name_registration(person: Person) -> str:
    return f"registration {person.public_id}"


def _compute_mac(head: bytes, purpose: str) -> bytes:
    value = head + purpose.encode()
    return salted_hmac(_SALT, value, algorithm="sha256").digest()


def _count_microseconds() -> int:
    now = clock.now()
    return int(now.timestamp()) * 1_000_000 + now.microsecond


def _log_passkey(kind: str, person: Person) -> None:
    data = {"person": person.public_id, "factor": "passkey"}
    log.append(kind, actor=people.build_actor(person), at=clock.now(), data=data)
