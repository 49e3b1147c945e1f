"""Signing in and out: by password, with a second factor after it, and by a link."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from journal import notify
from journal.errors import NotPermitted
from policies import passkeys, second_factors, solo_account
from policies.models import Person
from policies.step_up import is_provider_offered

from ..components import passkey_purposes
from ..components.frame import require_person
from ..components.sign_in import (
    find_waiting_person,
    finish_sign_in,
    read_onward,
    sign_passkey_in,
    sign_person_in,
)
from . import zones
from .forms import SignInCodeForm


class SignInView(LoginView):
    """Sign in by name and password, or by a passkey alone. The browser also sends its
    time zone."""

    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **more: Any) -> HttpResponse:
        """Take the answer of a passkey where there is one, else name and password."""
        answer = request.POST.get("passkey", "")
        if not answer:
            return super().post(request, *args, **more)
        try:
            person = sign_passkey_in(request, answer)
        except NotPermitted as error:
            context = {"next": read_onward(request), "passkeys": passkeys.is_offered()}
            context |= build_provider_context(error.detail)
            return render(request, "registration/login.html", context, status=403)
        zones.record_browser_zone(request, person)
        return redirect(self.get_success_url())

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        """What the page shows, with the way through the identity provider."""
        more = {**build_provider_context(), "passkeys": passkeys.is_offered()}
        return {**super().get_context_data(**context), **more}

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        person = form.get_user()
        answer = sign_person_in(self.request, person, self.get_success_url())
        if self.request.user.is_authenticated:
            zones.record_browser_zone(self.request, require_person(self.request))
        return answer


class SignOutView(LogoutView):
    """End the session, and tell the other open pages of the person."""

    def post(self, request: HttpRequest, *args: Any, **more: Any) -> HttpResponse:
        who = request.user.public_id if request.user.is_authenticated else ""
        answer = super().post(request, *args, **more)
        if who:
            notify.announce(notify.name_caller("person", who))
        return answer


def build_provider_context(refusal: str = "") -> dict[str, str]:
    """What the sign-in page says of the identity provider; `refusal` is its answer."""
    offered = is_provider_offered()
    label = settings.COUNTERSEAL.oidc_label if offered else ""
    return {"provider": label, "refusal": refusal}


@login_not_required
@never_cache
@sensitive_post_parameters("code", "passkey")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_code(request: HttpRequest) -> HttpResponse:
    """The second factor, after a right password: a code of the app or for recovery, or
    a passkey."""
    person = find_waiting_person(request)
    if person is None:
        return redirect("reviews:sign_in")
    form, onward = SignInCodeForm(request.POST or None), read_onward(request)
    if form.is_valid() and _is_right_factor(request, person, form):
        finish_sign_in(request, person)
        zones.record_browser_zone(request, person)
        return redirect(onward or "reviews:home")
    context = {
        "form": form,
        "next": onward,
        "app": second_factors.find_device(person) is not None,
        "passkeys": passkeys.is_offered() and second_factors.has_passkey(person),
    }
    status = 422 if form.is_bound else 200
    return render(request, "desk/account/sign_in_code.html", context, status=status)


def _is_right_factor(
    request: HttpRequest, person: Person, form: SignInCodeForm
) -> bool:
    """Whether the code or the passkey of the valid form is right; else mark it."""
    code, answer = form.cleaned_data["code"], form.cleaned_data["passkey"]
    if code:
        right = second_factors.is_right_code(request, person, code, recovery=True)
    else:
        purpose = passkey_purposes.name_second_factor(person)
        right = passkeys.is_right_passkey(
            request, person, answer, purpose, verified=False
        )
    if not right:
        wrong = second_factors.WRONG_CODE if code else passkeys.WRONG_PASSKEY
        form.add_error("code", wrong)
    return right


sign_in = SignInView.as_view()
sign_out = SignOutView.as_view()


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in the one person of solo mode. Sending the form uses the link; opening it
    does not, because programs open addresses before people do. 404 for a used one."""
    person = solo_account.check_link_token(token)
    if request.method != "POST":
        return render(request, "desk/account/sign_in_link.html", {"person": person})
    answer = sign_person_in(request, solo_account.use_link_token(token))
    if request.user.is_authenticated:
        zones.record_browser_zone(request, person)
    return answer
