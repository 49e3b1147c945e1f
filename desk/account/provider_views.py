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
from reviews.administration import single_sign_on

from ..components import identity_provider
from ..components.frame import require_person
from ..components.sign_in import (
    BACKEND,
    expect_provider_proof,
    read_onward,
    record_fresh_sign_in,
    store_provider_proof,
)
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
        expect_provider_proof(request, require_person(request))
    try:
        return identity_provider.redirect_to_provider(request, fresh=fresh)
    except DomainError as error:
        return _refuse(request, error)


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
        if store_provider_proof(request, person, fresh=fresh):
            return redirect(onward or reverse("reviews:home"))
    except DomainError as error:
        return _refuse(request, error)
    login(request, person, backend=BACKEND)
    zones.record_browser_zone(request, person)
    if fresh:
        record_fresh_sign_in(request)
    return redirect(onward or reverse("reviews:home"))


def _check_offered() -> None:
    if not single_sign_on.is_offered():
        raise NotFound


def _refuse(request: HttpRequest, error: DomainError) -> HttpResponse:
    context = build_provider_context(error.detail)
    return render(request, "registration/login.html", context, status=error.status)
