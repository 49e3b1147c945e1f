"""A scanner that breaks lets nothing through: what it could not check is not stored,
and the page says so."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents import keys
from reviews import redaction
from reviews.models import Revision
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.factories import count_of
from tests.markup import read_page
from tests.security.world import BACKEND

POISON = "poison-for-the-scanner"
SAID = "Could not be checked for secrets. Not shown."


def broken(text: str) -> Any:
    """A recogniser with a mistake: it breaks on one word, as a real one would."""
    if POISON in text:
        raise RecursionError(text)
    return []


@pytest.fixture
def caller(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Caller:
    monkeypatch.setattr(redaction, "RECOGNISERS", (*redaction.RECOGNISERS, (broken, 0)))
    return Caller(keys.issue_key(agent=gate.agent, by=gate.owen), iter(range(99)))


def ask(caller: Caller, **more: Any) -> Any:
    body = {
        "thread": "t-1",
        "tool": "write",
        "args": {"to": "a friend", "text": "hello"},
        "rationale": "because",
        **more,
    }
    return caller.post("/proposals", body, **{"Idempotency-Key": "k"})


def page(gate: Gate) -> str:
    client = Client()
    client.force_login(gate.sue, BACKEND)
    request = Revision.objects.get().proposal.request
    return read_page(client.get(f"/requests/{request.pk}/"))


@pytest.mark.parametrize("where", ["text", "source", "kind", "at"])
def test_evidence_that_cannot_be_checked_is_withheld(
    gate: Gate, caller: Caller, where: str
) -> None:
    bad = {"kind": "mail", "source": "ticket 1", "text": "zebra", where: POISON}
    good = {"kind": "note", "source": "ticket 2", "text": "second"}
    assert ask(caller, evidence=[bad, good]).status_code == 201
    source = page(gate)
    assert source.count(SAID) == 1
    assert POISON not in source
    assert "zebra" not in source
    assert "second" in source
    assert count_of(POISON) == 0


def test_any_other_text_says_that_it_is_withheld(gate: Gate, caller: Caller) -> None:
    said = {
        "rationale": POISON,
        "expected_outcome": POISON,
        "alternatives": [{"action": POISON, "why_not": "too slow"}],
        "on_behalf_of": {"kind": "customer", "id": POISON},
        "checkpoint": {"summary": POISON, "state": {"a": POISON, POISON: 1}},
    }
    assert ask(caller, **said).status_code == 201
    source = page(gate)
    assert SAID in source
    assert "too slow" in source
    assert POISON not in source
    assert count_of(POISON) == 0


def test_an_agent_cannot_say_that_its_evidence_was_withheld(
    gate: Gate, caller: Caller
) -> None:
    item = {"kind": "note", "text": "hidden", "unchecked": True}
    assert ask(caller, evidence=[item]).status_code == 422
    assert ask(caller, evidence=[{"kind": "note", "text": SAID}]).status_code == 201
    assert '<bdi dir="auto" translate="no" hx-disable>Could not be checked' in page(
        gate
    )
