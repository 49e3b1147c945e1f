"""Preferences, help, signing in, and the pages of errors with addresses that raise
them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import NoReturn

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest
from django.urls import path
from playwright.sync_api import Page

from desk.account.forms import NotificationsForm
from hitl import urls
from hitl.urls import handler400, handler403, handler404, handler500
from journal import clock, errors
from policies import second_factors, substitutes
from policies.models import Person
from policies.substitutes import Absence
from reviews.people import preferences, shortcuts, tokens
from reviews.people.preferences import DisplayPreferences, NotificationPreferences
from tests.factories import PASSWORD
from tests.gallery.scene import SceneGroup, Submission, at, send
from tests.gallery.scenes.outcomes import approved
from tests.gallery.store import StoreGate
from tests.policies.authenticator import enrol
from tests.policies.security_key import give_key

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]

ME = SceneGroup(
    "me",
    shows=(
        "reviews:me",
        "reviews:display",
        "reviews:keys",
        "reviews:notifications",
        "reviews:tokens",
        "reviews:second_factor",
        "reviews:passkeys",
        "reviews:sessions",
        "reviews:substitute",
        "reviews:sign_in_code",
        "reviews:help",
        "docs",
        "client",
    ),
)
KEYS, NOTIFICATIONS, TOKENS = "/me/shortcuts/", "/me/notifications/", "/me/tokens/"
SECOND_FACTOR = "/me/second-factor/"
ME.add("start", "Preferences", "/me/")
ME.add("display", "Density of lists", "/me/display/")
ME.add("keys", "Shortcuts", KEYS)
ME.add("notifications", "Critical", NOTIFICATIONS)
ME.add("notifications-supervisor", "Critical", NOTIFICATIONS, "sue")
ME.add("tokens-none", "You have no tokens.", TOKENS)
ME.add("sessions", "Where you are signed in.", "/me/sessions/")
ME.add("second-factor-none", "Set up an app", SECOND_FACTOR)
ME.add("passkeys-none", "You have no passkey.", "/me/passkeys/")
ME.add("help", "Help and shortcuts", "/help/")
ME.add("help-guest", "Help and shortcuts", "/help/", "")
ME.add("api", "API", "/api/v1/docs", "")
ME.add("client", "Hold your own function", "/client/", "")


@ME.scene("substitute", "Stands in")
def substitute(gate: StoreGate) -> str:
    here = Person.objects.create(
        username="nora",
        first_name="Nora",
        last_name="Lind",
        ceiling_minor=gate.rita.ceiling_minor,
        ceiling_currency=gate.rita.ceiling_currency,
    )
    here.groups.set(gate.rita.groups.all())
    (queue, *_) = substitutes.list_own_queues(gate.rita)
    until = clock.now() + timedelta(days=12)
    absence = Absence(here, [queue.name], until)
    substitutes.appoint_substitute(gate.rita, absence)
    return "/me/substitute/"


@ME.scene("substitute-refused", "Correct the marked fields")
def substitute_refused(gate: StoreGate) -> Submission:
    return Submission("/me/substitute/", {"until": "2020-01-01T10:00", "queues": "x"})


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


@ME.scene("second-factor-scan", "Scan this with the app", "tom")
def scan_key(gate: StoreGate) -> str:
    second_factors.begin_enrolment(Person.objects.get(username="tom"))
    return SECOND_FACTOR


def enrol_otto(gate: StoreGate) -> str:
    """The auditor has an app from now on; the page about it."""
    otto = Person.objects.get(username="otto")
    if not second_factors.has_second_factor(otto):
        enrol(otto)
    return SECOND_FACTOR


def give_password(gate: StoreGate, page: Page, name: str = "otto") -> None:
    # At the second width the password was given already.
    page.goto(page.url.replace("/sign-in/code/", "/sign-in/"))
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def renew_codes(gate: StoreGate) -> Submission:
    return Submission(enrol_otto(gate), {"act": "renew", "password": PASSWORD})


def give_alma(gate: StoreGate) -> str:
    """An administrator has passkeys from now on; the page about them."""
    alma = Person.objects.get(username="alma")
    if not second_factors.has_second_factor(alma):
        give_key(alma)
    return "/me/passkeys/"


def begin_passkey(gate: StoreGate) -> Submission:
    sent = {"act": "begin", "name": "Laptop", "password": PASSWORD}
    return Submission(give_alma(gate), sent)


def refuse_removal(gate: StoreGate) -> Submission:
    sent = {"act": "remove", "which": "", "password": "", "code": ""}
    return Submission(give_alma(gate), sent)


ME.add("passkeys", "Remove a passkey", give_alma, "alma")
ME.add("passkeys-refused", "Choose a passkey.", refuse_removal, "alma")
ME.add("passkeys-begun", "Make it in this browser", begin_passkey, "alma")
ME.add("second-factor", "Replace the recovery codes", enrol_otto, "otto")
ME.add("second-factor-codes", "They are shown only now.", renew_codes, "otto")
ME.add(
    "sign-in-code",
    "Code of your authenticator app",
    lambda gate: enrol_otto(gate) and "/sign-in/code/",  # the password comes first
    "",
    act=give_password,
)
ME.add(
    "sign-in-passkey",
    "Use your passkey",
    lambda gate: give_alma(gate) and "/sign-in/code/",
    "",
    act=partial(give_password, name="alma"),
)
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
