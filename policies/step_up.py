"""Proof of who a person is, where a page asks for it again: their password, the code of
their authenticator app, or a passkey."""

from __future__ import annotations

from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest

from journal.errors import ReauthenticationRequired

from . import passkeys, people, second_factors, sign_ins, solo
from .models import Person


class TypedProof(NamedTuple):
    """What a person gave to prove who they are: one of these, or nothing."""

    password: str
    code: str
    passkey: str = ""  # the answer of an authenticator, as JSON


def is_provider_offered() -> bool:
    """Whether people sign in to this gate through an identity provider."""
    return bool(settings.COUNTERSEAL.oidc_issuer) and not solo.is_solo()


def confirm_identity(
    http: HttpRequest, person: Person, typed: TypedProof, purpose: str
) -> str:
    """Check the password or, without one, the code or the passkey that the person just
    gave. A passkey must have answered for exactly this purpose. The session gets
    another key. Returns which of them it was. Raises ReauthenticationRequired for a
    wrong one."""
    method = _check_proof(http, person, typed, purpose)
    sign_ins.rotate_key(http)
    return method


def _check_proof(
    http: HttpRequest, person: Person, typed: TypedProof, purpose: str
) -> str:
    if typed.password or not (typed.code or typed.passkey):
        people.confirm_password(http, person, typed.password)
        return "password"
    if typed.code:
        if not second_factors.is_right_code(http, person, typed.code):
            raise ReauthenticationRequired(second_factors.WRONG_CODE)
        return "totp"
    if not passkeys.is_right_passkey(http, person, typed.passkey, purpose):
        raise ReauthenticationRequired(passkeys.WRONG_PASSKEY)
    return "passkey"
