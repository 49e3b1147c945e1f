"""Preferences, signing in, help, and the pages of errors."""

from __future__ import annotations

from playwright.sync_api import Page

from policies.models import Person
from reviews.desk.account.forms import NotificationsForm
from reviews.people import preferences, shortcuts, tokens
from reviews.people.preferences import DisplayPreferences, NotificationPreferences
from tests.factories import PASSWORD
from tests.gallery.scene import Room, Sent
from tests.gallery.stage import Stage, path

from .over import approved
from .review import REVIEW

ROOM = Room("me")
ROOM.page("start", "reviews:me", "/me/", "Preferences")
ROOM.page("display", "reviews:display", "/me/display/", "Density of lists")
ROOM.page("keys", "reviews:keys", "/me/shortcuts/", "Shortcuts")
ROOM.page("notifications", "reviews:notifications", "/me/notifications/", "Critical")
ROOM.page(
    "notifications-supervisor",
    "reviews:notifications",
    "/me/notifications/",
    "Critical",
    who="sue",
)
ROOM.page("tokens-none", "reviews:tokens", "/me/tokens/", "You have no tokens.")
ROOM.page("help", "reviews:help", "/help/", "Shortcuts")
ROOM.page("help-guest", "reviews:help", "/help/", "Shortcuts", who="")
ROOM.page("api", "docs", "/api/v1/docs", "API", who="")


@ROOM.scene("keys-refused", "reviews:keys", "“Arm Approve” and “Arm Reject”")
def keys_refused(stage: Stage) -> Sent:
    approve = next(
        one for one in shortcuts.list_shortcuts({}) if one.shortcut.key == "a"
    )
    return Sent("/me/shortcuts/", {"on": "on", approve.field: "x"})


@ROOM.scene("notifications-refused", "reviews:notifications", "Nothing was saved.")
def notifications_refused(stage: Stage) -> Sent:
    form = NotificationsForm(NotificationPreferences())
    usual = {field.html_name: field.value() or "" for field in form}
    odd = {"minutes": "99999", "zone": "Atlantis", "per_hour": ""}
    return Sent("/me/notifications/", {**usual, **odd})


@ROOM.scene("tokens", "reviews:tokens", "Copy it now.")
def minted(stage: Stage) -> Sent:
    tokens.create_token(person=stage.rita, name="nightly report")
    return Sent("/me/tokens/", {"name": "triage script", "days": "90"})


@ROOM.scene("tokens-refused", "reviews:tokens", "Name what will use it")
def tokens_refused(stage: Stage) -> Sent:
    return Sent("/me/tokens/", {"name": "", "days": "90"})


def _asked(stage: Stage, page: Page) -> None:
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open] .keys")


@ROOM.scene("help-dialog", "reviews:queue", "Close", act=_asked)
def help_dialog(stage: Stage) -> str:
    return "/queue/"


def _menu(stage: Stage, page: Page) -> None:
    """The menu of a narrow page, and what is under one's name on a wide one."""
    for selector in ("button[popovertarget=nav]", ".me summary"):
        if page.locator(selector).is_visible():
            page.click(selector)


@ROOM.scene("menu", "reviews:queue", "Preferences", act=_menu)
def menu(stage: Stage) -> str:
    return "/queue/"


@ROOM.scene("compact", "reviews:queue", "Queue", who="tom")
def compact(stage: Stage) -> str:
    stage.refund()
    stage.mail()
    preferences.save_preferences(
        person=Person.objects.get(pk=stage.tom.pk),
        display=DisplayPreferences(theme="dark", density="compact", timers="clock"),
    )
    return "/queue/"


ERRORS = Room("error", urls="tests.gallery.raising")
SIGN_IN = "reviews:sign_in"
ERRORS.page("sign-in", SIGN_IN, "/sign-in/?next=/log/", "Sign in", who="")
ERRORS.page("400", "error", "/log/?q=%00", "could not be read")
ERRORS.page("404", REVIEW, "/requests/r-nothing/", "Not found")
ERRORS.page("404-guest", REVIEW, "/nothing-here/", "Not found", who="")
ERRORS.page("409", "error", "/raise/stale/", "The world moved on")
ERRORS.page("410", "error", "/raise/expired/", "This is over")
ERRORS.page("422", "error", "/raise/invalid/", "Something is not right yet")
ERRORS.page("429", "error", "/raise/throttle/", "Too much at once")
ERRORS.page("500", "error", "/raise/server/", "Something failed on our side")


def _wrong(stage: Stage, page: Page) -> None:
    page.fill("#id_username", "rita")
    page.fill("#id_password", f"not {PASSWORD}")
    page.press("#id_password", "Enter")


@ERRORS.scene("sign-in-refused", SIGN_IN, "do not match", who="", act=_wrong)
def sign_in_refused(stage: Stage) -> str:
    return "/sign-in/"


@ERRORS.scene("403", "reviews:break_hold", "not yours", who="tom")
def forbidden(stage: Stage) -> str:
    return path(stage.refund(), "hold", "break")


@ERRORS.scene("403-signed-out", "reviews:recall", "You were signed out.")
def signed_out(stage: Stage) -> Sent:
    return Sent(path(stage.refund(), "recall"), {"csrfmiddlewaretoken": "old"})


@ERRORS.scene("409-running", "reviews:recall", "can no longer be recalled")
def running(stage: Stage) -> Sent:
    request = stage.refund()
    approved(request, stage)
    return Sent(path(request, "recall"), {})
