"""Sessions: listed where they began, and ended by their person or an administrator."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from desk.account.session_views import describe_browser
from journal import clock
from journal.models import LogRecord
from policies import sign_ins
from policies.models import SignIn
from reviews import retention
from reviews.administration import accounts
from tests.assurance.planting import reload
from tests.conftest import Gate
from tests.desk.conftest import SignIn as SignInAs
from tests.factories import PASSWORD
from tests.markup import read_page

pytestmark = pytest.mark.django_db
PAGE, FIREFOX = "/me/sessions/", "Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0"


def sign_in(name: str, browser: str = FIREFOX) -> Client:
    client = Client(HTTP_USER_AGENT=browser, REMOTE_ADDR="192.0.2.7")
    client.post("/sign-in/", {"username": name, "password": PASSWORD})
    assert is_in(client)
    return client


def is_in(client: Client) -> bool:
    return client.get("/me/").status_code == 200


def test_a_person_sees_where_they_are_signed_in_and_ends_one(gate: Gate) -> None:
    here, there = sign_in("rita"), sign_in("rita", "<b>curl</b>")
    other = sign_in("tom")
    page = read_page(here.get(PAGE))
    assert "Firefox on Linux" in page
    assert "192.0.2.7" in page
    assert "curl" not in page
    row = SignIn.objects.get(session_key=there.session.session_key)
    assert here.post(PAGE, {"end": row.pk}).status_code == 302
    assert (is_in(here), is_in(there)) == (True, False)
    foreign = SignIn.objects.get(person=gate.tom)
    own = SignIn.objects.get(person=gate.rita)
    for wrong in (foreign.pk, own.pk):  # another person's, and the one that asks
        here.post(PAGE, {"end": wrong})
    for typed in ("", "x", "9" * 30):
        assert here.post(PAGE, {"end": typed}).status_code == 422
    assert is_in(other)
    assert is_in(here)
    assert LogRecord.objects.filter(kind="person.sessions_ended").count() == 1


def test_all_others_end_together(gate: Gate) -> None:
    clients = [sign_in("rita") for _ in range(3)]
    clients[1].post(PAGE, {"end": "others"})
    assert [is_in(client) for client in clients] == [False, True, False]


def test_an_administrator_ends_all_sessions_of_a_person(
    gate: Gate, as_: SignInAs
) -> None:
    rita, path = sign_in("rita"), f"/people/{gate.rita.public_id}/access/"
    adam, act = as_("adam"), {"act": "sessions", "reason": "lost laptop"}
    assert adam.post(path, {**act, "password": "wrong"}).status_code == 422
    assert is_in(rita)
    assert adam.post(path, {**act, "password": PASSWORD}).status_code == 302
    assert not is_in(rita)
    assert as_("sue").post(path, {**act, "password": PASSWORD}).status_code == 403


def test_a_session_ends_at_its_time_however_busy_it_is(gate: Gate) -> None:
    rita = sign_in("rita")
    row = Session.objects.get(pk=rita.session.session_key)
    session = rita.session
    session["busy"] = True
    session.save()
    again = Session.objects.get(pk=row.pk)
    assert again.expire_date == row.expire_date
    left = row.expire_date - clock.now()
    assert timedelta(hours=11, minutes=59) < left <= timedelta(hours=12)


def test_a_change_of_the_password_keeps_the_session_in_the_list(gate: Gate) -> None:
    here, there = sign_in("rita"), sign_in("rita")
    new = "a new long password"
    sent = {"present": PASSWORD, "password": new, "again": new}
    assert here.post("/me/password/", sent).status_code == 302
    assert (is_in(here), is_in(there)) == (True, False)
    page = read_page(here.get(PAGE))
    assert "this one" in page
    assert 'name="end"' not in page  # the other one is over
    assert len(sign_ins.list_sign_ins(reload(gate.rita))) == 1


def test_a_deactivation_leaves_no_session(gate: Gate) -> None:
    sign_in("rita")
    accounts.deactivate_account(person=gate.rita, by=gate.adam)
    assert not sign_ins.list_sign_ins(reload(gate.rita))


def test_the_last_use_is_written_down_at_times(gate: Gate) -> None:
    rita = sign_in("rita")
    key, hour = str(rita.session.session_key), timedelta(hours=1)
    rows = SignIn.objects.filter(session_key=key)
    rows.update(seen_at=clock.now() - hour)
    rita.get("/me/")
    assert rows.get().seen_at < clock.now() - hour / 2  # it was noted just now
    sign_ins._seen[key] -= hour
    rita.get("/me/")
    assert rows.get().seen_at > clock.now() - hour / 2


def test_lines_about_sessions_that_are_gone_go(gate: Gate) -> None:
    rita, tom = sign_in("rita"), sign_in("tom")
    tom.post("/sign-out/")
    assert not is_in(tom)
    retention.delete_expired_sessions()
    assert [row.person for row in SignIn.objects.all()] == [gate.rita]
    assert is_in(rita)


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        (FIREFOX, "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/142.0 Safari/537 Edg/142", "Edge on"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 19) Safari/604.1", "Safari on iPhone"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X) Safari/605", "Safari on macOS"),
        ("python-httpx", "Another program"),
    ],
)
def test_a_browser_in_words(user_agent: str, words: str) -> None:
    assert describe_browser(user_agent).startswith(words)
