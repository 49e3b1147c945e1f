"""A person's own pages: settings, API tokens, saved views, the start page, and help."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from journal import clock
from journal.errors import NotFound
from notifications import plan
from notifications.channels import push, registry, subscriptions
from policies import active, solo
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.effects.wording import format_duration
from reviews.people import preferences, shortcuts
from reviews.people import tokens as operations
from reviews.roles import Permission

from ..components import frame, htmx
from ..components.frame import require_person
from ..forms import SavedViewForm, TokenForm
from ..log import views
from ..log.filters import LogFilters as LogFilters
from ..queue import views as queue
from ..queue.page import QueueFilters as QueueFilters
from . import zones
from .forms import BrowserForm, DisplayForm, KeysForm, NotificationsForm

SAVED_MESSAGE = "Saved."
NOT_REGISTERED_MESSAGE = "This browser was not registered."
NO_ADDRESS_MESSAGE = "Nothing was sent: your account has no address on this channel."


@require_safe
def me(request: HttpRequest) -> HttpResponse:
    """The settings and their current values."""
    return render(
        request,
        "desk/account/me.html",
        {"prefs": preferences.load_preferences(require_person(request))},
    )


@require_http_methods(["GET", "HEAD", "POST"])
def display(request: HttpRequest) -> HttpResponse:
    """The display settings."""
    who = require_person(request)
    now = preferences.load_preferences(who).display
    form = DisplayForm(request.POST or None, initial=now.model_dump())
    if form.is_valid():
        preferences.save_preferences(person=who, display=form.shape)
        zones.update_session_zone(request, form.shape.zone)
        return _redirect_saved(request, "reviews:display")
    status = 422 if form.is_bound else 200
    return render(request, "desk/account/display.html", {"form": form}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    """Single-key shortcuts: on or off, and other keys than the default."""
    who = require_person(request)
    if "usual" in request.POST:
        preferences.save_preferences(person=who, keys=preferences.KeyPreferences())
        return _redirect_saved(request, "reviews:keys")
    form = KeysForm(preferences.load_preferences(who).keys, request.POST or None)
    if request.method == "POST" and not form.errors:
        preferences.save_preferences(person=who, keys=form.shape)
        return _redirect_saved(request, "reviews:keys")
    status = 422 if form.errors else 200
    return render(request, "desk/account/keys.html", {"form": form}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def notifications(request: HttpRequest) -> HttpResponse:
    """What is sent to this person, when, on which channels, and when not."""
    who = require_person(request)
    channels = registry.list_personal_channels()
    form = NotificationsForm(
        preferences.load_preferences(who).notifications,
        request.POST or None,
        channels=[(channel.name, channel.title) for channel in channels],
    )
    if form.is_valid():
        preferences.save_preferences(person=who, notifications=form.shape)
        return _redirect_saved(request, "reviews:notifications")
    role = permissions.find_deciding_role(who)
    context = {
        "form": form,
        "address": who.email,
        "reached": [(channel, channel.find_address(who)) for channel in channels],
        **_build_push_context(who),
        "decides": role is not None,
        "supervises": role is Role.SUPERVISOR,
    }
    status = 422 if form.is_bound else 200
    return render(request, "desk/account/notifications.html", context, status=status)


def _build_push_context(person: Person) -> dict[str, object]:
    """What the page needs to register browsers; nothing where the installation cannot
    push."""
    if not push.CHANNEL.is_configured():
        return {}
    return {
        "browsers": person.push_subscriptions.order_by("-created_at"),
        "push_key": push.get_public_key(),
        # Not the hashed name: a browser asks this address for a newer worker.
        "push_worker": f"{settings.STATIC_URL}push-worker.js",
    }


@require_POST
def register_browser(request: HttpRequest) -> HttpResponse:
    """Register the browser for push messages to the person."""
    who, form = require_person(request), BrowserForm(request.POST)
    if not form.is_valid():
        messages.warning(request, NOT_REGISTERED_MESSAGE)
        return redirect("reviews:notifications")
    agent = request.headers.get("User-Agent", "")
    error = htmx.catch_refusal(
        lambda: subscriptions.register_browser(
            person=who, agent=agent, **form.cleaned_data
        )
    )
    if error is None:
        messages.success(request, "This browser is registered for push messages.")
    else:
        messages.warning(request, f"{NOT_REGISTERED_MESSAGE} {error.detail}")
    return redirect("reviews:notifications")


@require_POST
def remove_browser(request: HttpRequest, pk: int) -> HttpResponse:
    """Send no more push messages to one of the person's browsers."""
    subscriptions.remove_browser(person=require_person(request), browser_id=pk)
    messages.success(request, "Removed. The browser gets no more push messages.")
    return redirect("reviews:notifications")


@require_POST
def send_test(request: HttpRequest) -> HttpResponse:
    """Send a test message to the person, the same way as every other message."""
    who, asked = require_person(request), request.POST.get("channel", "email")
    known = {channel.name: channel for channel in registry.list_personal_channels()}
    channel = known.get(asked)
    if channel is None:
        raise NotFound
    if address := channel.find_address(who):
        plan.enqueue_test_notice(person=who, channel=channel.name)
        messages.success(request, f"A test message is on its way to {address}.")
    else:
        messages.warning(request, NO_ADDRESS_MESSAGE)
    return redirect("reviews:notifications")


def _redirect_saved(request: HttpRequest, name: str) -> HttpResponse:
    messages.success(request, SAVED_MESSAGE)
    return redirect(name)


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Redirect to the page on which the person works."""
    person = require_person(request)
    oversees = permissions.has_permission(person, Permission.SEE_STATISTICS)
    if oversees and not solo.is_solo():  # who is alone has nobody to oversee
        return redirect("reviews:overview")
    if permissions.find_deciding_role(person) is not None:
        return redirect("reviews:queue")
    owns = Role.OWNER in permissions.roles_of(person)
    return redirect("agents:agents" if owns else "reviews:log")


@login_not_required
@require_safe
@htmx.vary_on_htmx
def help(request: HttpRequest) -> HttpResponse:
    """Keys and states in words; the dialog gets the keys alone."""
    places = shortcuts.group_shortcuts(frame.get_frame(request).prefs.keys.mine)
    template = htmx.choose_template(request, "desk/account/help.html", "keys")
    return render(request, template, {"places": places, "undo": _describe_undo()})


def _describe_undo() -> str:
    """How long the active policy lets an approval be undone: `5 s to 10 s`."""
    policy = active.find_active_policy()
    windows = active.load_document(policy).recall.values() if policy else ()
    seconds = {timedelta(seconds=window) for window in windows if window}
    ends = sorted({min(seconds), max(seconds)}) if seconds else []
    return " to ".join(map(format_duration, ends))


@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """The person's API tokens, and a form to create one. The response to the form is
    the only copy of the new token."""
    form, minted = TokenForm(request.POST or None), ""
    if form.is_valid():
        minted = operations.create_token(
            person=require_person(request), **form.cleaned_data
        )
        form = TokenForm()
    own = operations.select_live_tokens().filter(person=require_person(request))
    live = own.order_by("-created_at")
    context = {"form": form, "minted": minted, "tokens": live, "now": clock.now()}
    status = 422 if form.errors else 200
    response = render(request, "desk/account/tokens.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response


@require_POST
def token_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke one of the person's own tokens; this takes effect at once."""
    operations.revoke_token(person=require_person(request), token_id=pk)
    messages.success(request, "Revoked. The token no longer works.")
    return redirect("reviews:tokens")


MAX_QUERY_LENGTH = 1000  # characters of a query

# How each list parses its filters, and how it is rendered.
LISTS: dict[str, tuple[Callable[[QueryDict], Any], Callable[..., HttpResponse]]] = {
    "queue": (QueueFilters.read, queue.render_queue_page),
    "log": (LogFilters.read, views.render_log_page),
}


@require_POST
def view_save(request: HttpRequest, page: str) -> HttpResponse:
    """Save the current filter under a name."""
    if page not in LISTS:
        raise NotFound
    read, shown = LISTS[page]
    form = SavedViewForm(request.POST)
    filters = read(QueryDict(request.POST.get("query", "")[:MAX_QUERY_LENGTH]))
    if form.is_valid():
        name, query = form.cleaned_data["name"], filters.query()
        error = htmx.catch_refusal(
            lambda: preferences.create_saved_view(
                person=require_person(request), page=page, name=name, query=query
            )
        )
        if error is None:
            return redirect(filters.url())
        form.add_error("name", error.detail)
    return shown(request, filters, form)


@require_POST
def view_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete one of the person's own views."""
    page = preferences.delete_saved_view(person=require_person(request), view_id=pk)
    return redirect(f"reviews:{page}")
