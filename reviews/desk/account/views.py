"""A person's own pages: how the desk looks, its keys, and what reaches them."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from policies.choices import Role
from reviews import permissions
from reviews.notifications import plan
from reviews.people import preferences
from reviews.views.who import person

from . import zones
from .forms import DisplayForm, KeysForm, NotificationsForm

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
        zones.follow(request, form.shape.zone)
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


@require_http_methods(["GET", "HEAD", "POST"])
def notifications(request: HttpRequest) -> HttpResponse:
    """What reaches this person, when, and when not."""
    who = person(request)
    form = NotificationsForm(preferences.of(who).notifications, request.POST or None)
    if form.is_valid():
        preferences.save(person=who, notifications=form.shape)
        return _saved(request, "reviews:notifications")
    role = permissions.deciding_role(who)
    context = {
        "form": form,
        "address": who.email,
        "decides": role is not None,
        "supervises": role is Role.SUPERVISOR,
    }
    status = 422 if form.is_bound else 200
    return render(request, "reviews/notifications.html", context, status=status)


@require_POST
def send_test(request: HttpRequest) -> HttpResponse:
    """A mail to oneself, by the way that all of them go."""
    who = person(request)
    if who.email:
        plan.ask_test(person=who)
        messages.success(request, f"A test is on its way to {who.email}.")
    else:
        messages.warning(request, "Nothing was sent: you have no address here.")
    return redirect("reviews:notifications")


def _saved(request: HttpRequest, name: str) -> HttpResponse:
    messages.success(request, SAVED)
    return redirect(name)
