"""The page behind a setup link: the account of the first administrator."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from agents import ready_agent
from journal.errors import Conflict, InvalidInput
from policies import first_administrator

from ..components.sign_in import BACKEND
from .forms import SetupForm


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def setup(request: HttpRequest, token: str) -> HttpResponse:
    """Ask for the account, create it, and sign its person in. 404 once there is an
    administrator."""
    first_administrator.check_token(token)
    form = SetupForm(request.POST or None)
    if form.is_valid():
        try:
            person = first_administrator.add_first_administrator(
                token, **form.cleaned_data
            )
        except (Conflict, InvalidInput) as error:
            form.add_refusal(error)
        else:
            ready_agent.ensure_ready_agent(owner=person, by=person)
            login(request, person, backend=BACKEND)
            messages.success(request, "Your account is ready.")
            return redirect("reviews:home")
    status = 422 if form.is_bound else 200
    return render(request, "desk/setup/page.html", {"form": form}, status=status)
