"""Preferences, help, signing in, and the pages of errors with addresses that raise
them."""

from __future__ import annotations

from typing import NoReturn

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest
from django.urls import path
from playwright.sync_api import Page

from desk.account.forms import NotificationsForm
from hitl import urls
from hitl.urls import handler400, handler403, handler404, handler500
from journal import errors
from policies.models import Person
from reviews.people import preferences, shortcuts, tokens
from reviews.people.preferences import DisplayPreferences, NotificationPreferences
from tests.factories import PASSWORD
from tests.gallery.scene import SceneGroup, Submission, at, send
from tests.gallery.scenes.outcomes import approved
from tests.gallery.store import StoreGate

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]

ME = SceneGroup(
    "me",
    shows=(
        "reviews:me",
        "reviews:display",
        "reviews:keys",
        "reviews:notifications",
        "reviews:tokens",
        "reviews:help",
        "docs",
    ),
)
KEYS, NOTIFICATIONS, TOKENS = "/me/shortcuts/", "/me/notifications/", "/me/tokens/"
ME.add("start", "Preferences", "/me/")
ME.add("display", "Density of lists", "/me/display/")
ME.add("keys", "Shortcuts", KEYS)
ME.add("notifications", "Critical", NOTIFICATIONS)
ME.add("notifications-supervisor", "Critical", NOTIFICATIONS, "sue")
ME.add("tokens-none", "You have no tokens.", TOKENS)
ME.add("help", "Help and shortcuts", "/help/")
ME.add("help-guest", "Help and shortcuts", "/help/", "")
ME.add("api", "API", "/api/v1/docs", "")


@ME.scene("keys-refused", "“Open Approve” and “Open Reject”")
def keys_refused(gate: StoreGate) -> Submission:
    known = shortcuts.list_shortcuts({})
    approve = next(row for row in known if row.shortcut.key == "a")
    return Submission(KEYS, {"on": "on", approve.field: "x"})


@ME.scene("notifications-refused", "Nothing was saved.")
def notifications_refused(gate: StoreGate) -> Submission:
    form = NotificationsForm(NotificationPreferences())
    usual = {field.html_name: field.value() or "" for field in form}
    odd = {"minutes": "99999", "zone": "Atlantis", "per_hour": ""}
    return Submission(NOTIFICATIONS, {**usual, **odd})


@ME.scene("tokens", "Copy the token now.")
def create_token(gate: StoreGate) -> Submission:
    tokens.create_token(person=gate.rita, name="nightly report")
    return Submission(TOKENS, {"name": "triage script", "days": "90"})


ME.add(
    "tokens-refused",
    "Enter what will use the token",
    Submission(TOKENS, {"name": "", "days": "90"}),
)


def ask_for_help(gate: StoreGate, page: Page) -> None:
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open] .keys")


def open_menus(gate: StoreGate, page: Page) -> None:
    """The menu of a narrow page, and what is under one's name on a wide one."""
    for selector in ("button[popovertarget=nav]", ".me summary"):
        if page.locator(selector).is_visible():
            page.click(selector)


ME.add("help-dialog", "Close", "/queue/", act=ask_for_help)
ME.add("menu", "Preferences", "/queue/", act=open_menus)


@ME.scene("compact", "Queue", "tom")
def compact(gate: StoreGate) -> str:
    gate.refund()
    gate.mail()
    preferences.save_preferences(
        person=Person.objects.get(pk=gate.tom.pk),
        display=DisplayPreferences(theme="dark", density="compact", timers="clock"),
    )
    return "/queue/"


RAISED: dict[str, Exception] = {
    "stale": errors.StaleVersion(),
    "expired": errors.RequestExpired(),
    "invalid": errors.InvalidInput(
        errors=[errors.build_field_error("days", "from 1 to 365")]
    ),
    "throttle": errors.ReviewerRateLimited(retry_after=60),
    "server": ZeroDivisionError(),
}


@login_not_required
def error(request: HttpRequest, name: str) -> NoReturn:
    raise RAISED[name]


urlpatterns = [path("raise/<str:name>/", error, name="error"), *urls.urlpatterns]

ERRORS = SceneGroup("error", shows=("reviews:sign_in", "reviews:recall"), urls=__name__)
ERRORS.add("sign-in", "Sign in", "/sign-in/?next=/log/", "")
ERRORS.add("400", "could not be read", "/log/?q=%00")
ERRORS.add("404", "Not found", "/requests/r-nothing/")
ERRORS.add("404-guest", "Not found", "/nothing-here/", "")
ERRORS.add("409", "This changed while you were working", "/raise/stale/")
ERRORS.add("410", "No longer possible", "/raise/expired/")
ERRORS.add("422", "Check your input", "/raise/invalid/")
ERRORS.add("429", "Too many requests", "/raise/throttle/")
ERRORS.add("500", "Something went wrong on our side", "/raise/server/")


def mistype_password(gate: StoreGate, page: Page) -> None:
    page.fill("#id_username", "rita")
    page.fill("#id_password", f"not {PASSWORD}")
    page.press("#id_password", "Enter")


ERRORS.add(
    "sign-in-refused",
    "Wrong username or password.",
    "/sign-in/",
    "",
    act=mistype_password,
)
ERRORS.add(
    "403", "You do not have permission", at(StoreGate.refund, "hold", "break"), "tom"
)
ERRORS.add(
    "403-signed-out",
    "Your session changed",
    send(StoreGate.refund, "recall", csrfmiddlewaretoken="old"),
)
ERRORS.add("409-running", "can no longer be undone", send(approved, "recall"))
