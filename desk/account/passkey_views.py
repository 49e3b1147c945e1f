"""Passkeys: a person's own, and what a browser needs to ask an authenticator."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from journal import clock
from journal.errors import DomainError, NotPermitted
from policies import passkeys, second_factors
from policies.models import Person

from ..components import passkey_purposes
from ..components.frame import require_person
from ..components.sign_in import find_waiting_person
from .forms import Act, PasskeyForm, PasskeyRemovalForm, choose_act

PAGE = "reviews:passkeys"
ADDS_WITHIN = timedelta(minutes=10)
ADDING = "adding_passkey"  # in the session: the name, and until when


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password", "one_time_code", "code", "passkey")
def own_passkeys(request: HttpRequest) -> HttpResponse:
    """The page; POST does what its field `act` says."""
    me = require_person(request)
    if request.method != "POST":
        return _render(request, me)
    acts: dict[str, Act] = {"begin": _begin, "add": _add, "remove": _remove}
    return choose_act(request, acts)(request, me)


def _begin(request: HttpRequest, me: Person) -> HttpResponse:
    """Check who it is; the passkey is made in the next step."""
    form = PasskeyForm(request.POST)
    if form.is_valid() and form.act(request, lambda: None):
        until = clock.now() + ADDS_WITHIN
        request.session[ADDING] = [form.cleaned_data["name"], until.isoformat()]
        return redirect(PAGE)
    return _render(request, me, own=form)


def _add(request: HttpRequest, me: Person) -> HttpResponse:
    name = _find_awaited_name(request)
    try:
        codes = passkeys.add_passkey(me, name, request.POST.get("passkey", ""))
    except DomainError as error:
        return _render(request, me, refusal=error.detail)
    del request.session[ADDING]
    messages.success(request, f"The passkey “{name}” is added.")
    return _render(request, me, codes) if codes else redirect(PAGE)


def _remove(request: HttpRequest, me: Person) -> HttpResponse:
    request.session.pop(ADDING, None)  # the page shows one of the two
    form = PasskeyRemovalForm(request.POST)
    if not form.is_valid():
        return _render(request, me, removal=form)
    sent = form.cleaned_data
    try:
        form.confirm(request)
        if _is_right_factor(request, me, sent["code"], sent["passkey"]):
            passkeys.remove_own_passkey(me, sent["which"])
            messages.success(request, "The passkey is removed.")
            return redirect(PAGE)
        form.add_error("code", second_factors.WRONG_CODE)
    except DomainError as error:
        form.add_error("password", error.detail)
    return _render(request, me, removal=form)


def _is_right_factor(request: HttpRequest, me: Person, code: str, passkey: str) -> bool:
    if code:
        return second_factors.is_right_code(request, me, code, recovery=True)
    purpose = passkey_purposes.name_own_form(request, me)
    return passkeys.is_right_passkey(request, me, passkey, purpose)


@require_POST
def new_passkey(request: HttpRequest) -> HttpResponse:
    """What a browser needs to make a passkey, once the person proved who they are."""
    me = require_person(request)
    _find_awaited_name(request)
    return JsonResponse({"create": passkeys.build_creation_options(me)})


@require_POST
@sensitive_post_parameters("password", "one_time_code", "code")
def form_passkey(request: HttpRequest) -> HttpResponse:
    """What a browser needs to confirm the form that is sent here, with its address as
    `at`, by a passkey."""
    me = require_person(request)
    purpose = passkey_purposes.name_form(me, request.POST.get("at", ""), request.POST)
    return JsonResponse(
        {"get": passkeys.build_request_options(purpose, me, verified=True)}
    )


@login_not_required
@never_cache
@require_POST
def sign_in_passkey(request: HttpRequest) -> HttpResponse:
    """What a browser needs to sign somebody in by a passkey: alone, or with `after`
    after their password."""
    if "after" not in request.GET:
        purpose = passkey_purposes.SIGN_IN
        options = passkeys.build_request_options(purpose, None, verified=True)
        return JsonResponse({"get": options})
    person = find_waiting_person(request)
    if person is None:
        raise NotPermitted("Enter your password first.")
    purpose = passkey_purposes.name_second_factor(person)
    options = passkeys.build_request_options(purpose, person, verified=False)
    return JsonResponse({"get": options})


def _find_awaited_name(request: HttpRequest) -> str:
    """The name of the passkey that may be made. Raises NotPermitted for none."""
    name, until = request.session.get(ADDING) or ("", "")
    if not name or clock.now() >= datetime.fromisoformat(until):
        raise NotPermitted("Name the passkey and confirm who you are first.")
    return str(name)


def _render(
    request: HttpRequest, me: Person, codes: Sequence[str] = (), **more: Any
) -> HttpResponse:
    try:
        adding = _find_awaited_name(request)
    except NotPermitted:
        adding = ""
    context = {
        "rows": passkeys.list_passkeys(me),
        "adding": adding,
        "codes": codes,
        "offered": passkeys.is_offered(),
        "at_localhost": passkeys.find_localhost(),
        "own": PasskeyForm(),
        "removal": PasskeyRemovalForm(),
        **more,
    }
    status = 422 if more else 200
    answer = render(request, "desk/account/passkeys.html", context, status=status)
    answer["Cache-Control"] = "no-store"
    return answer
