"""A person's own second factor: set it up, make new recovery codes, remove it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from journal.errors import DomainError
from policies import passkeys, second_factors
from policies.models import Person

from ..components import qr_code
from ..components.frame import require_person
from ..people.forms import PasswordCheckedForm
from .forms import Act, CodeForm, FactorRemovalForm, choose_act

PAGE = "reviews:second_factor"


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password", "one_time_code", "code")
def second_factor(request: HttpRequest) -> HttpResponse:
    """The page; POST does what its field `act` says."""
    me = require_person(request)
    if request.method != "POST":
        return _render(request, me)
    acts: dict[str, Act] = {
        "begin": _begin,
        "confirm": _confirm,
        "renew": _renew,
        "remove": _remove,
    }
    return choose_act(request, acts)(request, me)


def _begin(request: HttpRequest, me: Person) -> HttpResponse:
    form = PasswordCheckedForm(request.POST)
    if form.is_valid() and form.act(
        request, lambda: second_factors.begin_enrolment(me)
    ):
        return redirect(PAGE)
    return _render(request, me, own=form)


def _confirm(request: HttpRequest, me: Person) -> HttpResponse:
    form = CodeForm(request.POST)
    if form.is_valid():
        codes = second_factors.confirm_enrolment(me, form.cleaned_data["code"])
        if codes is not None:
            return _render(request, me, codes=codes)
        form.add_error("code", second_factors.WRONG_CODE)
    return _render(request, me, first=form)


def _renew(request: HttpRequest, me: Person) -> HttpResponse:
    form, codes = PasswordCheckedForm(request.POST), list[str]()
    if form.is_valid() and form.act(
        request, lambda: codes.extend(second_factors.renew_recovery_codes(me))
    ):
        return _render(request, me, codes=codes)
    return _render(request, me, own=form)


def _remove(request: HttpRequest, me: Person) -> HttpResponse:
    form = FactorRemovalForm(request.POST)
    if not form.is_valid():
        return _render(request, me, removal=form)
    sent = form.cleaned_data
    try:
        form.confirm(request)
        if second_factors.is_right_code(request, me, sent["code"], recovery=True):
            second_factors.remove_own_app(me)
            messages.success(request, "Your authenticator app is removed.")
            return redirect(PAGE)
        form.add_error("code", second_factors.WRONG_CODE)
    except DomainError as error:
        form.add_error("password", error.detail)
    return _render(request, me, removal=form)


def _render(
    request: HttpRequest, me: Person, codes: Sequence[str] = (), **forms: Any
) -> HttpResponse:
    device = second_factors.find_device(me)
    secret = "" if device else second_factors.find_pending_secret(me)
    address = second_factors.build_enrolment_address(me, secret) if secret else ""
    context = {
        "device": device,
        "secret": " ".join(secret[at : at + 4] for at in range(0, len(secret), 4)),
        "address": address,
        "picture": qr_code.draw_qr_code(address) if address else None,
        "keys": len(passkeys.list_passkeys(me)),
        "left": second_factors.count_recovery_codes(me),
        "codes": codes,
        "own": PasswordCheckedForm(),
        "first": CodeForm(),
        "removal": FactorRemovalForm(),
        **forms,
    }
    status = 422 if forms else 200
    answer = render(request, "desk/account/second_factor.html", context, status=status)
    answer["Cache-Control"] = "no-store"
    return answer
