"""/me/ and its pages: what is saved is how the next page looks."""

from __future__ import annotations

import json
import re
from datetime import time

import pytest

from desk.account.forms import NotificationsForm
from desk.account.views import NO_ADDRESS_MESSAGE, SAVED_MESSAGE
from policies.choices import Risk
from policies.models import Person
from reviews.people import preferences, shortcuts
from reviews.people.preferences import NotificationPreferences
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.markup import read_page, read_text

DISPLAY = {
    "theme": "dark",
    "density": "compact",
    "diff": "side",
    "advance": "on",
    "timers": "clock",
}
FIELDS = {one.shortcut.key: one.field for one in shortcuts.list_shortcuts({})}


@pytest.mark.parametrize(
    "path", ["/me/", "/me/display/", "/me/shortcuts/", "/me/notifications/"]
)
def test_every_role_has_them(gate: Gate, as_: SignIn, path: str) -> None:
    for name in gate.people:
        assert as_(name).get(path).status_code == 200


def test_the_page_itself_says_how_it_is_to_look(gate: Gate, as_: SignIn) -> None:
    client = as_("rita")
    assert '<html lang="en">' in read_page(client.get("/queue/"))
    answer = client.post("/me/display/", DISPLAY, follow=True)
    assert read_text(answer, "message") == SAVED_MESSAGE
    source = read_page(client.get("/queue/"))
    root = source[source.index("<html") :].partition(">")[0]
    assert 'data-theme="dark"' in root
    assert 'data-density="compact"' in root
    assert 'data-diff="side"' in root
    assert 'data-timers="clock"' in root
    assert b"data-theme" not in as_("tom").get("/queue/").content


def test_what_is_no_choice_is_refused_and_the_rest_is_kept(
    gate: Gate, as_: SignIn
) -> None:
    answer = as_("rita").post("/me/display/", {**DISPLAY, "theme": "plaid"})
    assert answer.status_code == 422
    source = read_page(answer)
    assert 'data-testid="not-saved"' in source
    assert re.search(r'value="compact" checked', source)
    assert preferences.load_preferences(gate.rita).display.density == "comfortable"


def keys(**mine: str) -> dict[str, str]:
    return {"on": "on", **{FIELDS[key]: own for key, own in mine.items()}}


def test_keys_are_chosen_anew(gate: Gate, as_: SignIn) -> None:
    client = as_("rita")
    sent = {**keys(a="Y"), FIELDS["g q"]: "w"}
    assert client.post("/me/shortcuts/", sent).status_code == 302
    source = client.get("/queue/").content.decode()
    found = re.search(r'data-keys="([^"]*)"', source)
    assert found
    assert json.loads(found[1].replace("&quot;", '"')) == {"a": "y", "g q": "g w"}
    help_page = read_page(client.get("/help/", headers={"HX-Request": "true"}))
    assert "<kbd>Y</kbd>" in help_page
    assert "<tr><td><kbd>A</kbd>" not in help_page
    assert "<tr><td><kbd>X</kbd>" in help_page


def test_a_collision_is_refused_and_names_both(gate: Gate, as_: SignIn) -> None:
    answer = as_("rita").post("/me/shortcuts/", keys(a="x", m="y"))
    source = read_page(answer)
    assert answer.status_code == 422
    (problem,) = shortcuts.list_key_problems({"a": "x", "m": "y"}).values()
    assert problem in read_text(answer, "not-saved")
    assert 'aria-invalid="true"' in source
    assert 'value="Y"' in source  # what was typed beside it
    assert preferences.load_preferences(gate.rita).keys == preferences.KeyPreferences()


def test_keys_are_switched_off_and_back_to_the_usual(gate: Gate, as_: SignIn) -> None:
    client = as_("rita")
    client.post("/me/shortcuts/", {FIELDS["a"]: "y"})
    source = read_page(client.get("/queue/"))
    assert 'data-keys="off"' in source
    assert read_text(client.get("/queue/"), "keys").endswith(": off")
    client.post("/me/shortcuts/", {"usual": "1", FIELDS["a"]: "x"})
    source = client.get("/queue/").content.decode()
    assert 'data-keys=""' in source


def test_the_dialog_gets_the_keys_alone(gate: Gate, as_: SignIn) -> None:
    source = read_page(as_("rita", **HTMX).get("/help/"))
    assert source.startswith("<table")
    assert 'data-testid="statuses"' not in source
    assert 'data-testid="statuses"' in read_page(as_("rita").get("/help/"))


@pytest.mark.parametrize(
    ("windows", "said"),
    [
        ({}, ""),
        ({"high": 10}, "10 s"),
        ({"low": 7, "medium": 8, "high": 9}, "7 s to 9 s"),
    ],
)
def test_help_says_for_how_long_the_policy_lets_an_approval_be_undone(
    gate: Gate, as_: SignIn, windows: dict[str, int], said: str
) -> None:
    document = {**factories.document_of_tests(), "recall": windows}
    factories.policy(gate.people, document)
    page = read_text(as_("rita").get("/help/"), "statuses")
    assert ("can be undone" in page) is bool(said)
    assert not said or f"can be undone for {said} " in page


def notifying(**said: str) -> dict[str, str]:
    usual = {f"{where}-{risk}": "now" for where in ("email", "desk") for risk in Risk}
    times = {"digest_at": "08:00", "quiet_from": "", "quiet_until": ""}
    return {**usual, **times, "minutes": "10", "per_hour": "60", "zone": "UTC", **said}


def test_what_reaches_one_is_chosen_by_risk(gate: Gate, as_: SignIn) -> None:
    client = as_("rita")
    sent = notifying(
        **{"email-low": "digest", "desk-low": "never", "email-critical": "unclaimed"},
        quiet_from="22:00",
        quiet_until="07:30",
        zone="Europe/Berlin",
        once_taken="on",
    )
    assert client.post("/me/notifications/", sent).status_code == 302
    said = preferences.load_preferences(
        Person.objects.get(pk=gate.rita.pk)
    ).notifications
    chosen = [said.choose_timing("email", risk) for risk in ("low", "critical")]
    assert chosen == ["digest", "unclaimed"]
    assert said.muted == ["low"]
    assert said.quiet_until == time(7, 30)
    assert said.once_taken
    source = client.get("/me/notifications/").content.decode()
    assert 'value="22:00"' in source
    assert 'value="digest" selected' in source


@pytest.mark.parametrize(
    ("wrong", "fields"),
    [
        ({"zone": "Atlantis"}, ["zone"]),
        ({"minutes": "0"}, ["minutes"]),
        ({"quiet_from": "22:00"}, ["quiet_until"]),
        ({"quiet_from": "soon", "quiet_until": "later"}, ["quiet_from", "quiet_until"]),
        ({"email-high": "pigeon"}, ["email-high"]),
        ({"per_hour": "9" * 30}, ["per_hour"]),
    ],
)
def test_what_does_not_fit_is_said_and_kept(
    gate: Gate, as_: SignIn, wrong: dict[str, str], fields: list[str]
) -> None:
    sent = notifying(**wrong)
    answer = as_("rita").post("/me/notifications/", sent)
    source = read_page(answer)
    errors = NotificationsForm(NotificationPreferences(), sent).errors
    assert answer.status_code == 422
    assert list(errors) == fields
    text = read_text(answer, "not-saved")
    assert "Ensure" not in text
    assert all(str(one) in text for messages in errors.values() for one in messages)
    typed = [value for name, value in wrong.items() if not name.startswith("email")]
    assert all(f'value="{value}"' in source for value in typed)


def test_a_supervisor_reads_what_cannot_be_muted(gate: Gate, as_: SignIn) -> None:
    sue = read_page(as_("sue").get("/me/notifications/"))
    assert 'data-testid="always"' in sue
    assert 'name="on_call"' in sue
    rita = read_page(as_("rita").get("/me/notifications/"))
    assert 'data-testid="always"' not in rita
    assert 'name="on_call"' not in rita
    assert 'data-testid="no-messages"' not in rita
    otto = read_page(as_("otto").get("/me/notifications/"))
    assert 'data-testid="no-messages"' in otto


def test_without_an_address_nothing_is_sent(gate: Gate, as_: SignIn) -> None:
    Person.objects.filter(pk=gate.rita.pk).update(email="")
    answer = as_("rita").post("/me/notifications/test/", follow=True)
    assert read_text(answer, "message") == NO_ADDRESS_MESSAGE
