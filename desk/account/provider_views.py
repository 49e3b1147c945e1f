"""Signing in through the identity provider: to it, and back with its answer."""

from __future__ import annotations

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from journal.errors import DomainError, NotFound
from policies import passkeys, second_factors
from policies.step_up import is_provider_offered
from reviews.administration import single_sign_on

from ..components import fresh_sign_in, identity_provider
from ..components.frame import require_person
from ..components.fresh_sign_in import WaitingForm
from ..components.sign_in import BACKEND, read_onward
from . import zones
from .sign_in_views import build_provider_context

ONWARD = "onward"  # in the session


@login_not_required
@never_cache
@require_safe
def provider_sign_in(request: HttpRequest) -> HttpResponse:
    """Lead to the provider; with `fresh`, to sign in there anew. 404 without one."""
    _check_offered()
    request.session[ONWARD] = read_onward(request)
    fresh = request.user.is_authenticated and "fresh" in request.GET
    if fresh:
        fresh_sign_in.expect_provider_proof(request, require_person(request))
    try:
        return identity_provider.redirect_to_provider(request, fresh=fresh)
    except DomainError as error:
        return _refuse(request, error, request.session.pop(ONWARD))


@login_not_required
@never_cache
@require_safe
def provider_callback(request: HttpRequest) -> HttpResponse:
    """Where the provider sends the browser back to. 404 without one."""
    _check_offered()
    onward = request.session.pop(ONWARD, "")
    try:
        account, fresh = identity_provider.read_answer(request)
        person = single_sign_on.admit_account(account)
        if fresh_sign_in.store_provider_proof(request, person, fresh=fresh):
            return redirect(onward or reverse("reviews:home"))
    except DomainError as error:
        return _refuse(request, error, onward)
    login(request, person, backend=BACKEND)
    zones.record_browser_zone(request, person)
    return redirect(onward or reverse("reviews:home"))


@never_cache
@require_safe
def confirm_form(request: HttpRequest) -> HttpResponse:
    """The form that waits for a fresh sign-in: what it says, the way to the provider,
    and once the person is back a button that sends it. Without one, their own page."""
    form = fresh_sign_in.find_waiting_form(request)
    if form is None:
        return redirect("reviews:me")
    return _render_form(request, form)


def _render_form(
    request: HttpRequest, form: WaitingForm, error: DomainError | None = None
) -> HttpResponse:
    person = require_person(request)
    context = {
        "form": form,
        "passkey": passkeys.is_offered() and second_factors.has_passkey(person),
        "confirmed": fresh_sign_in.is_confirmed(request, form),
        "token": fresh_sign_in.build_proof_token(person, form.bound),
        **build_provider_context(error.detail if error else ""),
    }
    status = error.status if error else 200
    return render(request, "desk/account/confirm_form.html", context, status=status)


def _check_offered() -> None:
    if not is_provider_offered():
        raise NotFound


def _refuse(request: HttpRequest, error: DomainError, onward: str) -> HttpResponse:
    """The sign-in page with the error; the form that waits, where it was for that."""
    if onward == reverse("reviews:confirm_form") and request.user.is_authenticated:
        form = fresh_sign_in.find_waiting_form(request)
        if form is not None:
            return _render_form(request, form, error)
    context = build_provider_context(error.detail)
    return render(request, "registration/login.html", context, status=error.status)
