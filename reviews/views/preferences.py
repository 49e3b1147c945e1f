"""A person's own pages: how the desk looks, its keys, and what reaches them."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from reviews import preferences
from reviews.forms.preferences import DisplayForm, KeysForm

from .who import person

SAVED = "Saved."


@require_safe
def me(request: HttpRequest) -> HttpResponse:
    """What there is to choose, and how it is chosen now."""
    return render(
        request, "reviews/me.html", {"prefs": preferences.of(person(request))}
    )


@require_http_methods(["GET", "HEAD", "POST"])
def display(request: HttpRequest) -> HttpResponse:
    """What pages look like."""
    who = person(request)
    now = preferences.of(who).display
    form = DisplayForm(request.POST or None, initial=now.model_dump())
    if form.is_valid():
        preferences.save(person=who, display=form.shape)
        return _saved(request, "reviews:display")
    status = 422 if form.is_bound else 200
    return render(request, "reviews/display.html", {"form": form}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    """Single-key shortcuts: on or off, and other keys than the usual."""
    who = person(request)
    if "usual" in request.POST:
        preferences.save(person=who, keys=preferences.Keys())
        return _saved(request, "reviews:keys")
    form = KeysForm(preferences.of(who).keys, request.POST or None)
    if request.method == "POST" and not form.errors:
        preferences.save(person=who, keys=form.shape)
        return _saved(request, "reviews:keys")
    status = 422 if form.errors else 200
    return render(request, "reviews/keys.html", {"form": form}, status=status)


def _saved(request: HttpRequest, name: str) -> HttpResponse:
    messages.success(request, SAVED)
    return redirect(name)
