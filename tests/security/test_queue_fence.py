"""Queues are the fence inside an installation: what happens in other people's queues
changes no list, count, search, stream, mail or answer of the API for a person outside.

One person is admitted to a queue in which nothing happens. Every page without an id is
read before and after one of everything happened elsewhere: they are the same. The
addresses with an id are in tests/security/test_bypass_matrix.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.core import mail
from django.test import Client
from guardian.shortcuts import assign_perm

from policies.choices import Role
from policies.models import Person, Queue
from reviews.people import tokens
from tests import factories
from tests.conftest import Gate
from tests.security import routes, world
from tests.security.routes import ROUTES
from tests.security.world import BACKEND

WORDS = ("C-2", "t-1", "riley")
# The policy that runs, and who may stand in for a person, are no queue's alone.
OF_EVERYBODY = {
    "reviews:help",
    "reviews:substitute",
    "policies:policies",
    "policies:tools",
    "docs",
}
SEARCHED = ("/queue/", "/search/", "/log/", "/batches/", "/announced/", "/agents/")
# What differs between two answers although nothing happened.
VARYING = re.compile(
    rb'name="csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"|data-now="[^"]*"'
    rb'|<p class="print-only".*?</p>|<footer.*?</footer>|datetime="[^"]*"'
    rb"|\d\d:\d\d(:\d\d)?|since=[^&\"]*|^id: \d+$",
    re.DOTALL | re.MULTILINE,
)


def list_addresses() -> Iterator[str]:
    """Every address that names nothing, and the lists searched for foreign words."""
    for name, row in ROUTES.items():
        if not row.ids and row.get and not row.query and name not in OF_EVERYBODY:
            yield routes.address(name, {})
    for page in SEARCHED:
        for word in WORDS:
            yield f"{page}?q={word}"


def read_all(clients: list[Client]) -> dict[str, bytes]:
    """What each address answers, without what always varies."""
    answers = {}
    for number, client in enumerate(clients):
        for address in list_addresses():
            answer = client.get(address)
            body = b"" if answer.streaming else answer.content
            if answer.status_code == 200:
                answers[f"{number} {address}"] = VARYING.sub(b"", body)
    return answers


def sign_in(person: Person) -> list[Client]:
    """The person at the browser, and with a token of the API."""
    client = Client()
    client.force_login(person, BACKEND)
    token = tokens.create_token(person=person, name="fence")
    return [client, Client(headers={"Authorization": f"Bearer {token}"})]


@pytest.mark.django_db
def test_other_queues_change_nothing_for_people_outside(gate: Gate) -> None:
    quiet = Queue.objects.create(name="quiet")
    una = factories.person("una", Role.REVIEWER)
    assign_perm("policies.decide", una, quiet)
    clients = sign_in(una)
    inside = sign_in(gate.rita)
    before, control = read_all(clients), read_all(inside)
    world.build(gate)
    after, changed = read_all(clients), read_all(inside)
    assert len(before) > 60
    assert sum(changed[address] != control.get(address) for address in changed) > 20
    differ = [address for address in before if after.get(address) != before[address]]
    assert differ == []
    assert not [letter for letter in mail.outbox if una.email in letter.to]
