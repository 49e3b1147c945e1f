"""The words of a person's own pages, of signing in, and of the error pages."""

from __future__ import annotations

import pytest
from django.test import Client

from desk.account.views import NO_ADDRESS_MESSAGE
from reviews.people import preferences, shortcuts
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.markup import read_text

SENT = [
    ("/me/tokens/", {"name": ""}, "token-error", "Enter what will use the token."),
    (
        "/views/queue/",
        {"name": "", "query": "risk=high"},
        "view-error",
        "Give the view a name.",
    ),
    (
        "/views/queue/",
        {"name": "   ", "query": "risk=high"},
        "view-error",
        "Give the view a name.",
    ),
    (
        "/views/queue/",
        {"name": "Mine", "query": "risk=high"},
        "view-error",
        "You already have a view with this name. Nothing was saved.",
    ),
    (
        "/me/display/",
        {"theme": "plaid"},
        "not-saved",
        "Nothing was saved. Choose one option for each setting.",
    ),
]


@pytest.mark.parametrize(("path", "sent", "testid", "text"), SENT)
def test_a_form_says_what_is_wrong(
    gate: Gate, as_: SignIn, path: str, sent: dict[str, str], testid: str, text: str
) -> None:
    preferences.create_saved_view(
        person=gate.rita, page="queue", name="Mine", query="risk=low"
    )
    answer = as_("rita").post(path, sent)
    assert answer.status_code == 422
    assert read_text(answer, testid) == text


def test_a_failed_sign_in_says_why(gate: Gate) -> None:
    answer = Client().post("/sign-in/", {"username": "rita", "password": "wrong"})
    assert read_text(answer, "signin-error") == (
        "Wrong username or password. After several failed attempts, sign-in is blocked"
        " for a while."
    )


@pytest.mark.parametrize("path", ["/nothing-here/", "/requests/r-nothing/"])
def test_a_page_that_is_missing_or_hidden_says_so(
    gate: Gate, as_: SignIn, path: str
) -> None:
    text = read_text(as_("rita").get(path), "error")
    assert "ot found, or you do not have access." in text


def test_a_person_without_tokens_reads_what_they_are_for(
    gate: Gate, as_: SignIn
) -> None:
    text = read_text(as_("rita").get("/me/tokens/"), "no-tokens")
    assert text == (
        "You have no tokens. You need one only for scripts that use the API."
    )


def test_the_navigation_names_the_pages(gate: Gate, as_: SignIn) -> None:
    text = read_text(as_("sue").get("/help/"), "nav")
    for label in ("Queue", "Escalations", "Batches", "Activity", "Agents"):
        assert label in text
    assert text.index("Alarms") < text.index("Audit log") < text.index("Policy")


def test_bad_keys_are_named() -> None:
    collision = shortcuts.list_key_problems({"a": "x", "m": "y"})
    reserved = shortcuts.list_key_problems({"a": "1"})
    long = shortcuts.list_key_problems({"a": "ab"})
    assert [*collision.values(), *reserved.values(), *long.values()] == [
        "X is assigned to both “Open Approve” and “Open Reject”.",
        "1 is reserved. Choose another key for “Open Approve”.",
        "“Open Approve” needs one printable character.",
    ]


def test_a_person_without_an_address_reads_why_no_mail_comes() -> None:
    assert NO_ADDRESS_MESSAGE == (
        "Nothing was sent: your account has no address on this channel."
    )
    assert preferences.NO_ZONE_MESSAGE == (
        "Enter a time zone such as Europe/Berlin, or UTC."
    )
