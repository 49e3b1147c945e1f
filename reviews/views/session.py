"""Signing in and out."""

from __future__ import annotations

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpResponse

from reviews.desk.account import zones

from .who import person


class SignIn(LoginView):
    """By name and password; the browser says in which time zone it is."""

    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_valid(form)
        zones.learn(self.request, person(self.request))
        return answer


sign_in = SignIn.as_view()
sign_out = LogoutView.as_view()
