"""The one account of solo mode, and the link that signs its person in."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from journal.errors import Conflict
from journal.log import SYSTEM
from journal.models import LogRecord
from policies import people, solo_account, versions
from policies.choices import Role
from policies.models import Person, Queue
from policies.solo_account import LinkUsed
from reviews import permissions
from tests import factories
from tests.journeys.test_solo_mode import set_solo
from tests.markup import read_page

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(settings: Any) -> Person:
    set_solo(settings, True)
    Queue.objects.create(name="approvals", title="Approvals")
    return solo_account.ensure_solo_person("ann", factories.PASSWORD)


def test_the_account_has_every_role_and_queue_once(ann: Person) -> None:
    assert permissions.roles_of(ann) == set(Role)
    Queue.objects.create(name="more", title="More")
    assert solo_account.ensure_solo_person("ann", "another one") == ann
    assert ann.check_password(factories.PASSWORD)
    kinds = [row.kind for row in LogRecord.objects.order_by("pk")]
    assert kinds == ["person.added", "person.admitted", "person.admitted"]
    assert permissions.find_deciding_role(ann) is Role.SUPERVISOR


def test_a_new_queue_of_an_activated_policy_is_theirs(ann: Person) -> None:
    draft = versions.save_draft(
        text_or_mapping=factories.document_of_tests(), author=ann
    )
    versions.activate_version(version_id=draft.pk, by=ann)
    for queue in Queue.objects.all():
        permissions.check_admitted_to_queue(ann, queue.pk)


def test_nobody_else_is_there(settings: Any, ann: Person) -> None:
    with pytest.raises(Conflict):
        solo_account.ensure_solo_person("bob", factories.PASSWORD)
    set_solo(settings, False)
    with pytest.raises(Conflict):
        solo_account.ensure_solo_person("ann", factories.PASSWORD)
    people.add_person(
        people.NewPerson("bob", "bob@example.com", factories.PASSWORD, Role.OWNER),
        by=SYSTEM,
    )
    assert solo_account.find_others("ann") == ["bob"]


def test_the_link_signs_in_once_and_opening_it_uses_nothing(ann: Person) -> None:
    link = f"/sign-in/{solo_account.create_link_token(ann)}/"
    client = Client()
    for _ in range(2):
        assert "Sign in as ann" in read_page(client.get(link))
    assert client.post(link).headers["Location"] == "/"
    assert client.session["_auth_user_id"] == str(ann.pk)
    assert client.get("/").headers["Location"] == "/queue/"
    for again in (Client().get(link), Client().post(link)):
        assert again.status_code == 404
        assert "counterseal setup-link" in read_page(again)


def test_two_uses_at_once_sign_in_once(
    ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = solo_account.create_link_token(ann)
    monkeypatch.setattr(solo_account, "check_link_token", lambda _: ann)
    assert solo_account.use_link_token(token) == ann
    with pytest.raises(LinkUsed):
        solo_account.use_link_token(token)


def test_a_link_is_good_for_solo_mode_and_for_a_day(
    ann: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = solo_account.create_link_token(ann)
    assert solo_account.check_link_token(token) == ann
    for wrong in (token[:-1], "x", ""):
        with pytest.raises(LinkUsed):
            solo_account.check_link_token(wrong)
    set_solo(settings, False)
    with pytest.raises(LinkUsed):
        solo_account.use_link_token(token)
    set_solo(settings, True)
    monkeypatch.setattr(solo_account, "LINK_AGE", -solo_account.LINK_AGE)
    with pytest.raises(LinkUsed):
        solo_account.use_link_token(token)
