"""People in the browser: two administrators invite, change and reset."""

from __future__ import annotations

import re

import pytest
from django.core.mail import EmailMessage
from django.test import Client
from pytest_django.fixtures import Settings

from journal import clock
from journal.models import LogRecord, OutboxMessage
from notifications import plan
from policies.models import Person, ProvisionedPerson
from reviews.administration import accounts, authority
from reviews.choices import AuthorityKind, ChangeStatus
from reviews.models import AuthorityChange
from tests.assurance.planting import reload
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import PASSWORD
from tests.markup import read_page, read_text

pytestmark = pytest.mark.django_db
LIST = "/people/"
INVITED = {
    "full_name": "Ines <b>Example",
    "username": "ines",
    "email": "ines@example.org",
    "role": "reviewer",
    "queues": ["money"],
    "ceiling": "500.00",
    "currency": "usd",
    "reason": "New <b> in the team",
    "password": PASSWORD,
}
LONG = "a long new password"


def page_of(person: Person) -> str:
    return f"{LIST}{person.public_id}/"


def test_an_invitation_goes_from_one_to_two_to_the_person(
    gate: Gate, as_: SignIn
) -> None:
    adam, alma = as_("adam"), as_("alma")
    for name, status in (("rita", 403), ("sue", 403), ("owen", 403), ("otto", 200)):
        assert as_(name).get(LIST).status_code == status
        assert as_(name).get(f"{LIST}invite/").status_code == 403
        assert as_(name).post(f"{LIST}invite/", INVITED).status_code == 403
    sent = adam.post(f"{LIST}invite/", INVITED)
    ines = Person.objects.get(username="ines")
    assert sent["Location"] == page_of(ines)
    assert "Another administrator must answer." in read_text(
        adam.get(page_of(ines)), "why-not"
    )
    assert "Ines &lt;b&gt;Example" in read_page(alma.get(LIST))
    waiting = read_text(alma.get(LIST), "waiting")
    assert "Invitation, role Reviewer, decides in money" in waiting
    row = AuthorityChange.objects.get()
    answer = f"{LIST}changes/{row.pk}/answer/"
    confirm = {"answer": "confirm", "password": PASSWORD}
    assert as_("otto").post(answer, confirm).status_code == 403
    own = adam.post(answer, confirm)
    assert own.status_code == 422
    wrong = alma.post(answer, {**confirm, "password": "wrong", "reason": "Typed <i>"})
    assert wrong.status_code == 422
    assert "Typed &lt;i&gt;" in read_page(wrong)
    assert reload(ines).is_active is False
    done = alma.post(answer, confirm, follow=True)
    assert done.status_code == 200
    link = re.search(r"/password/[^<]+", read_text(done, "link"))
    assert link is not None
    assert 'data-testid="link"' not in read_page(alma.get(page_of(ines)))  # once
    stranger = Client()
    assert "ines" in read_page(stranger.get(link[0].split()[0]))
    weak = stranger.post(link[0].split()[0], {"password": "short", "again": "short"})
    assert weak.status_code == 422
    differs = {"password": LONG, "again": "something else"}
    assert stranger.post(link[0].split()[0], differs).status_code == 422
    chosen = stranger.post(link[0].split()[0], {"password": LONG, "again": LONG})
    assert chosen["Location"] == "/"
    assert stranger.get("/queue/").status_code == 200
    assert Client().get(link[0].split()[0]).status_code == 404


def test_an_invitation_without_a_queue_says_so(gate: Gate, as_: SignIn) -> None:
    as_("adam").post(f"{LIST}invite/", {**INVITED, "queues": []})
    waiting = read_text(as_("alma").get(LIST), "waiting")
    assert "role Reviewer, in no queue, so nothing to decide yet" in waiting


def test_a_change_narrows_now_and_widens_later(gate: Gate, as_: SignIn) -> None:
    adam, path = as_("adam"), page_of(gate.rita)
    now = {"email": gate.rita.email, "role": "reviewer", "queues": [], "reason": "x"}
    refused = adam.post(path, {**now, "ceiling": "12", "password": PASSWORD})
    assert refused.status_code == 422
    assert "currency" in read_text(refused, "error-ceiling")
    done = adam.post(path, {**now, "password": PASSWORD}, follow=True)
    assert "Changed." in read_page(done)
    assert "no queue" in read_text(done, "now")
    more = {**now, "role": "supervisor", "password": PASSWORD}
    waits = adam.post(path, more, follow=True)
    assert "role Supervisor" in read_text(waits, "open-change")
    assert 'data-testid="authority"' not in read_page(waits)
    row = AuthorityChange.objects.get()
    answer = f"{LIST}changes/{row.pk}/answer/"
    taken = {"answer": "withdraw", "password": PASSWORD}
    assert adam.post(answer, taken).status_code == 302
    assert AuthorityChange.objects.get().status == ChangeStatus.WITHDRAWN
    history = read_text(adam.get(path), "changes")
    assert "withdrew more authority for Rita Example" in history


def test_what_was_done_to_a_person_is_said_with_values(gate: Gate, as_: SignIn) -> None:
    adam, path = as_("adam"), page_of(gate.rita)
    now = {"email": gate.rita.email, "role": "reviewer", "password": PASSWORD}
    everywhere = sorted(authority.load_authority(gate.rita).queues)
    amount = {"ceiling": "100.00", "currency": "USD", "reason": "Newer <b> limit."}
    done = adam.post(path, {**now, **amount, "queues": everywhere}, follow=True)
    history = read_text(done, "changes")
    assert "Adam Example changed the highest amount of Rita Example" in history
    assert "any amount → 100.00 USD" in history
    assert "Newer <b> limit." in history
    adam.post(
        f"{path}access/",
        {"act": "deactivate", "reason": "Left us.", "password": PASSWORD},
    )
    assert "Left us." in read_text(adam.get(path), "changes")
    for typed in ("rita", gate.rita.public_id):
        log = read_text(adam.get("/log/", {"q": typed}), "log")
        assert "deactivated Rita Example" in log
        assert "any amount → 100.00 USD" in log
        assert "stopped reviewer Rita Example" in log
    record = LogRecord.objects.get(kind="person.changed")
    about = read_text(adam.get(f"/log/new/{record.pk}/", follow=True), "about")
    assert "Rita Example" in about
    assert "any amount → 100.00 USD" in about


def test_access_is_taken_at_once(gate: Gate, as_: SignIn) -> None:
    adam, access = as_("adam"), f"{page_of(gate.rita)}access/"
    rita = as_("rita")
    assert rita.get("/queue/").status_code == 200
    sent = {"act": "deactivate", "reason": "Left.", "password": PASSWORD}
    assert adam.post(access, {**sent, "act": "later"}).status_code == 422
    assert adam.post(access, {**sent, "password": "wrong"}).status_code == 422
    assert reload(gate.rita).is_active
    assert adam.post(access, sent).status_code == 302
    assert not reload(gate.rita).is_active
    assert rita.get("/queue/").status_code == 302
    assert "Reactivate…" in read_text(adam.get(page_of(gate.rita)), "access")
    back = adam.post(access, {**sent, "act": "reactivate"}, follow=True)
    assert "Reactivation waits" in read_text(back, "open-change")
    assert as_("adam").get(f"{LIST}u-unheard/").status_code == 404
    assert "Another administrator changes" in read_text(
        adam.get(page_of(gate.adam)), "own"
    )


def test_a_person_changes_their_own_password(gate: Gate, as_: SignIn) -> None:
    rita, elsewhere = as_("rita"), as_("rita")
    sent = {"present": PASSWORD, "password": LONG, "again": LONG}
    wrong = rita.post("/me/password/", {**sent, "present": "wrong"})
    assert "not right" in read_text(wrong, "error-present")
    weak = rita.post("/me/password/", {**sent, "password": "short", "again": "short"})
    assert "12" in read_text(weak, "error-password")
    assert reload(gate.rita).check_password(PASSWORD)
    assert rita.post("/me/password/", sent)["Location"] == "/me/"
    assert reload(gate.rita).check_password(LONG)
    assert rita.get("/queue/").status_code == 200
    assert elsewhere.get("/queue/").status_code == 302


def test_the_link_is_mailed_where_mail_is_set_up(
    gate: Gate, as_: SignIn, settings: Settings, mailoutbox: list[EmailMessage]
) -> None:
    mail = {"mail_url": "smtp://localhost:25"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=mail)
    row = authority.propose_access(
        person=gate.rita, kind=AuthorityKind.RESET, reason="Lost.", by=gate.adam
    )
    alma = as_("alma")
    sent = {"answer": "confirm", "password": PASSWORD}
    done = alma.post(f"{LIST}changes/{row.pk}/answer/", sent, follow=True)
    assert 'data-testid="link"' not in read_page(done)
    (message,) = OutboxMessage.objects.filter(topic="person.linked")
    plan.notify_of_event(message)
    (mail_sent,) = mailoutbox
    assert mail_sent.to == [gate.rita.email]
    link = re.search(r"/password/\S+", str(mail_sent.body))
    assert link is not None
    assert Client().get(link[0]).status_code == 200


def test_more_authority_without_a_password_makes_no_link(
    gate: Gate, as_: SignIn
) -> None:
    accounts.deactivate_account(person=gate.rita, by=gate.adam)
    accounts.reactivate_account(person=gate.rita, by=gate.adam)  # as a provider does
    more = {"email": gate.rita.email, "role": "supervisor", "reason": "Promoted."}
    as_("adam").post(page_of(gate.rita), {**more, "password": PASSWORD})
    answer = f"{LIST}changes/{AuthorityChange.objects.get().pk}/answer/"
    confirm = {"answer": "confirm", "password": PASSWORD}
    done = read_page(as_("alma").post(answer, confirm, follow=True))
    assert "Confirmed. It is in force." in done
    assert "/password/" not in done
    assert 'data-testid="link"' not in done


def test_whom_the_provider_deactivated_can_be_kept_out(gate: Gate, as_: SignIn) -> None:
    accounts.deactivate_account(person=gate.rita, by=gate.adam)
    alma, path = as_("alma"), page_of(gate.rita)
    assert "Keep deactivated" not in read_page(alma.get(path))
    ProvisionedPerson.objects.create(person=gate.rita, deactivated_at=clock.now())
    assert "Keep deactivated" in read_text(alma.get(path), "access")
    sent = {"act": "deactivate", "reason": "Left.", "password": PASSWORD}
    assert alma.post(f"{path}access/", sent).status_code == 302
    assert "Keep deactivated" not in read_page(alma.get(path))
