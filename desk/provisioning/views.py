"""Provisioning: where two administrators give the identity provider a token."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from reviews import permissions
from reviews.administration import provisioning_tokens
from reviews.roles import Permission

from ..components import frame
from ..components.frame import require_person
from ..people.forms import PasswordCheckedForm, SteppedUpForm
from . import page as pages


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password", "one_time_code")
def provisioning(request: HttpRequest) -> HttpResponse:
    """The tokens and groups of the provider; POST makes a token, which its answer
    shows."""
    by = require_person(request)
    if request.method != "POST":
        return _render_page(request)
    permissions.check_permission(by, Permission.MANAGE_PEOPLE)
    form, made = SteppedUpForm(request.POST), list[str]()

    def make() -> None:
        reason = form.cleaned_data["reason"]
        made.append(provisioning_tokens.make_token(reason=reason, by=by))

    if form.is_valid() and form.act(request, make):
        return _render_page(request, token=made[0])
    return _render_page(request, form=form)


@require_POST
@sensitive_post_parameters("password", "one_time_code")
def provisioning_confirm(request: HttpRequest, pk: int) -> HttpResponse:
    """Confirm the token of another administrator."""
    by = require_person(request)
    permissions.check_permission(by, Permission.MANAGE_PEOPLE)
    row, form = provisioning_tokens.load_token(pk), PasswordCheckedForm(request.POST)
    if form.is_valid() and form.act(
        request, lambda: provisioning_tokens.confirm_token(token_id=row.pk, by=by)
    ):
        messages.success(request, "Confirmed. The provider may use the token now.")
        return redirect("reviews:provisioning")
    return _render_page(request, answer=form, answered=row.pk)


@require_POST
def provisioning_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """End one token at once, or refuse one that waits."""
    by = require_person(request)
    permissions.check_permission(by, Permission.MANAGE_PEOPLE)
    provisioning_tokens.revoke_token(token_id=pk, by=by)
    messages.success(request, "Ended. Calls with that token are refused.")
    return redirect("reviews:provisioning")


def _render_page(
    request: HttpRequest,
    *,
    form: SteppedUpForm | None = None,
    token: str = "",
    answer: PasswordCheckedForm | None = None,
    answered: int = 0,
) -> HttpResponse:
    now = frame.get_frame(request).now
    context = {
        "page": pages.build_provisioning_page(require_person(request), now),
        "form": form or SteppedUpForm(),
        "token": token,
        "answer": answer or PasswordCheckedForm(),
        "answered": answered,
    }
    status = 422 if form is not None or answer is not None else 200
    template = "desk/provisioning/provisioning.html"
    response = render(request, template, context, status=status)
    response["Cache-Control"] = "no-store"
    return response
