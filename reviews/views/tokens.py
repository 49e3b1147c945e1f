"""A person's own API tokens: minted here, shown once, ended here."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from journal import clock
from reviews.desk.forms import TokenForm
from reviews.people import tokens as operations

from .who import person


@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """The list, and a form for one more; the answer to it is the only copy."""
    form, minted = TokenForm(request.POST or None), ""
    if form.is_valid():
        minted = operations.mint(person=person(request), **form.cleaned_data)
        form = TokenForm()
    own = operations.live().filter(person=person(request))
    live = own.order_by("-created_at")
    context = {"form": form, "minted": minted, "tokens": live, "now": clock.now()}
    status = 422 if form.errors else 200
    response = render(request, "reviews/tokens.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response


@require_POST
def token_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """End one of one's own tokens; it acts at once."""
    operations.revoke(person=person(request), token_id=pk)
    messages.success(request, "Ended. Nothing can use it any more.")
    return redirect("reviews:tokens")
