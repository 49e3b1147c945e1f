"""What follows a right password or a link, on every page that signs a person in: they
are signed in, or asked for their second factor first."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme

from journal import clock
from journal.errors import NotPermitted
from policies import passkeys, second_factors
from policies.models import Person

from . import passkey_purposes

BACKEND = "django.contrib.auth.backends.ModelBackend"
FACTOR_WITHIN = timedelta(minutes=10)
_WAITING = "signing_in"  # in the session


def sign_person_in(
    request: HttpRequest, person: Person, onward: str = ""
) -> HttpResponse:
    """Sign the person in and lead on; a person with a second factor to its page, where
    they are not signed in yet."""
    onward = onward or reverse("reviews:home")
    if not second_factors.has_second_factor(person):  # guard: sign-in-factor
        login(request, person, backend=BACKEND)
        return redirect(onward)
    request.session.cycle_key()
    request.session[_WAITING] = [
        person.public_id,
        person.get_session_auth_hash(),
        (clock.now() + FACTOR_WITHIN).isoformat(),
    ]
    return redirect(f"{reverse('reviews:sign_in_code')}?{urlencode({'next': onward})}")


def find_waiting_person(request: HttpRequest) -> Person | None:
    """Who gave a right password in this session a moment ago, and no second factor
    yet. A change of the password ends it."""
    who, state, until = request.session.get(_WAITING) or ("", "", "")
    if not who or clock.now() >= datetime.fromisoformat(until):
        return None
    person = Person.objects.filter(public_id=who, is_active=True).first()
    if person is None:
        return None
    unchanged = constant_time_compare(state, person.get_session_auth_hash())
    return person if unchanged else None


def finish_sign_in(request: HttpRequest, person: Person) -> None:
    """Sign in a person who waited, and has given a second factor."""
    del request.session[_WAITING]
    login(request, person, backend=BACKEND)


def sign_passkey_in(request: HttpRequest, answer: str) -> Person:
    """Sign in the person whose passkey answered: their authenticator checked who used
    it, so nothing else is asked. Raises NotPermitted for a wrong answer, and where the
    identity provider decides who comes in."""
    person = passkeys.find_owner(answer)
    purpose = passkey_purposes.SIGN_IN
    if person is None or not passkeys.is_right_passkey(
        request, person, answer, purpose
    ):
        raise NotPermitted(passkeys.WRONG_PASSKEY)
    if not passkeys.may_sign_in_alone(person):  # guard: passkey-federated
        raise NotPermitted("Sign in at your identity provider.")
    login(request, person, backend=BACKEND)
    return person


def read_onward(request: HttpRequest) -> str:
    """The page of this site that the person wanted to open; else ""."""
    wanted = request.POST.get("next") or request.GET.get("next", "")
    hosts, https = {request.get_host()}, request.is_secure()
    return wanted if url_has_allowed_host_and_scheme(wanted, hosts, https) else ""
