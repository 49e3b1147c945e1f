"""The policy, read only."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.conftest import Gate
from tests.markup import read_page


def signed_in(gate: Gate, name: str) -> Client:
    client = Client()
    client.force_login(gate.people[name], "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.mark.parametrize("name", ["rita", "sue", "adam", "otto"])
def test_those_who_work_under_it_read_it(gate: Gate, name: str) -> None:
    client = signed_in(gate, name)
    assert b'data-testid="version-active"' in client.get("/policies/").content
    source = read_page(client.get(f"/policies/{gate.policy.number}/"))
    assert "Payments over 500.00 need two supervisors." in source
    assert "args.amount &gt; 50000" in source
    assert "1 reviewer" in source
    assert "2 supervisors" in source


def test_an_owner_does_not(gate: Gate) -> None:
    owen = signed_in(gate, "owen")
    assert owen.get("/policies/").status_code == 404
    assert owen.get(f"/policies/{gate.policy.number}/").status_code == 404
    assert b'href="/policies/"' not in owen.get("/agents/").content


def test_there_is_nothing_to_write_here(gate: Gate) -> None:
    sue = signed_in(gate, "sue")
    assert sue.post("/policies/").status_code == 405
    assert sue.get("/policies/99/").status_code == 404
    assert Client().get("/policies/")["Location"].startswith("/sign-in/")
