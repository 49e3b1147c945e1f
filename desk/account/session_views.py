"""A person's own sessions: where they are signed in, and the end of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from journal.errors import TextMissing
from policies import sign_ins
from policies.models import Person, SignIn

from ..components.frame import require_person

# The part of a User-Agent that only this program sends, the more special one first.
BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One session in the list."""

    row: SignIn
    label: str
    present: bool


@require_http_methods(["GET", "HEAD", "POST"])
def sessions(request: HttpRequest) -> HttpResponse:
    """The list; POST ends the session that `end` names, or with `others` all but the
    one that sends it."""
    me, present = require_person(request), str(request.session.session_key)
    if request.method != "POST":
        lines = build_session_lines(me, present)
        return render(request, "desk/account/sessions.html", {"lines": lines})
    wanted = request.POST.get("end", "")
    if wanted == "others":
        ended = sign_ins.end_sign_ins(me, by=me, keep=present)
    elif wanted.isdecimal() and len(wanted) < 19:
        ended = sign_ins.end_sign_ins(me, by=me, only=int(wanted), keep=present)
    else:
        raise TextMissing("Choose the session that is to end. Nothing was changed.")
    text = "Ended: 1 session." if ended == 1 else f"Ended: {ended} sessions."
    messages.success(request, text)
    return redirect("reviews:sessions")


def build_session_lines(person: Person, present: str) -> Sequence[SessionLine]:
    """The person's sessions; `present` is the key of the one that asks."""
    return [
        SessionLine(row, describe_browser(row.browser), row.session_key == present)
        for row in sign_ins.list_sign_ins(person)
    ]


def describe_browser(user_agent: str) -> str:
    """What a browser says of itself, in words: a hint, which can be a lie."""
    browser = next((name for mark, name in BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    if browser and system:
        return f"{browser} on {system}"
    return browser or system or "Another program"
