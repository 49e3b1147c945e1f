"""What a passkey's answer on a page is for: one form with exactly what it says, or one
step of a sign-in."""

from __future__ import annotations

import hashlib
import json

from django.http import HttpRequest, QueryDict

from policies.models import Person

SIGN_IN = "sign-in"
# The proof itself is no part of what it is for, and the token changes with each page.
_LEFT_OUT = {
    "csrfmiddlewaretoken",
    "password",
    "one_time_code",
    "code",
    "passkey",
    "at",
}


def name_second_factor(person: Person) -> str:
    """The purpose of an answer that follows the person's password."""
    return f"second factor {person.public_id}"


def name_form(person: Person, path: str, sent: QueryDict) -> str:
    """The purpose of an answer that the person gives for one form: its address, and
    every field as it is sent."""
    fields = [
        (name, [value.replace("\r\n", "\n") for value in values])
        for name, values in sorted(list_fields(sent))
    ]
    text = json.dumps([person.public_id, path, fields])
    return f"form {hashlib.sha256(text.encode()).hexdigest()}"


def list_fields(sent: QueryDict) -> list[tuple[str, list[str]]]:
    """The fields of a form with their values, in the order of the page, without any
    proof of who sends it."""
    return [(name, values) for name, values in sent.lists() if name not in _LEFT_OUT]


def name_own_form(http: HttpRequest, person: Person) -> str:
    """The purpose of an answer in the form that this request sends."""
    return name_form(person, http.path, http.POST)
