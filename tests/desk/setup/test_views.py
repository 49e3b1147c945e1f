"""The first account: one link, one administrator."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from agents import keys
from journal.models import LogRecord
from policies import first_administrator
from policies.choices import Role
from policies.models import Person
from tests.conftest import Gate
from tests.markup import read_page

ACCOUNT = {
    "username": "ada",
    "full_name": "Ada Sörensen Vik",
    "email": "ada@example.com",
    "password": "blue-otter-paints-9",
}


@pytest.fixture
def link(capsys: pytest.CaptureFixture[str]) -> str:
    """The path of a fresh setup link, while nobody has an account."""
    call_command("setup_link")
    url = capsys.readouterr().out.strip()
    return "/" + url.split("/", 3)[3]


@pytest.mark.django_db
def test_the_link_makes_an_administrator_and_signs_them_in(link: str) -> None:
    client = Client()
    assert "First account" in read_page(client.get(link))
    answer = client.post(link, ACCOUNT, follow=True)
    assert answer.status_code == 200
    ada = Person.objects.get()
    assert (ada.username, ada.get_full_name()) == ("ada", ACCOUNT["full_name"])
    assert {group.name for group in ada.groups.all()} == {Role.ADMINISTRATOR}
    assert client.session["_auth_user_id"] == str(ada.pk)
    record = LogRecord.objects.get(kind="person.added")
    assert record.data["role"] == Role.ADMINISTRATOR
    for again in (
        client.get(link),
        Client().post(link, {**ACCOUNT, "username": "eve"}),
    ):
        assert again.status_code == 404
        assert "counterseal setup-link" in read_page(again)


@pytest.mark.django_db
def test_the_ready_agent_is_theirs(link: str, settings: Any) -> None:
    update = {"agent_key": keys.create_key()}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=update)
    Client().post(link, ACCOUNT)
    agent = keys.authenticate_key(update["agent_key"]).agent
    assert (agent.owner.username, agent.has_every_tool) == ("ada", True)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"password": "short"}, "12 characters"),
        ({"email": "ada"}, "valid email"),
        ({"username": "a b"}, "valid username"),
        ({"full_name": ""}, "required"),
    ],
)
def test_a_wrong_field_is_named_and_the_others_stay(
    link: str, change: dict[str, str], message: str
) -> None:
    answer = Client().post(link, {**ACCOUNT, **change})
    source = read_page(answer)
    assert answer.status_code == 422
    assert message in source
    kept = {**ACCOUNT, **change}
    assert all(kept[name] in source for name in ("username", "email", "full_name"))
    assert ACCOUNT["password"] not in source
    assert not Person.objects.exists()


@pytest.mark.django_db
def test_a_forged_or_old_link_opens_nothing(
    link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Client().get(link.replace("/setup/", "/setup/x")).status_code == 404
    monkeypatch.setattr(first_administrator, "LINK_SECONDS", -1)
    assert Client().post(link, ACCOUNT).status_code == 404
    assert not Person.objects.exists()


def test_there_is_no_link_once_there_is_an_administrator(gate: Gate) -> None:
    with pytest.raises(CommandError, match="counterseal people password"):
        call_command("setup_link")
