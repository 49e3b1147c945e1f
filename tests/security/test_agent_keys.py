"""Keys and tokens at rest, in use, and ended."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from agents import keys
from agents.models import AgentKey
from journal import bearer_tokens, clock, ids
from reviews.grants.tokens import load_token
from reviews.models import Execution, PersonalToken
from reviews.people import tokens
from tests.conftest import Gate
from tests.factories import PASSWORD, decide, propose


def call(text: str, path: str = "/whoami", **headers: str) -> int:
    given = {"Authorization": f"Bearer {text}", **headers}
    return Client().get(f"/api/v1{path}", headers=given).status_code


def everything_stored() -> str:
    """Every row of every table, as text."""
    parts = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT t::text FROM "{table}" AS t')
            parts += [row for (row,) in cursor.fetchall()]
    return "\n".join(parts)


def test_no_secret_is_anywhere_in_the_database(gate: Gate) -> None:
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    token = tokens.create_token(person=gate.rita, name="script")
    assert call(key) == 200
    assert call(token, "/requests") == 200
    Client().post("/sign-in/", {"username": "rita", "password": PASSWORD})
    Client().post("/sign-in/", {"username": "rita", "password": "wrong-password"})
    request = propose(gate.agent, "deploy").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    grant = load_token(Execution.objects.get().grant_id)
    blob = b"c2VjcmV0LWJsb2I="
    stored = everything_stored()
    assert len(stored) > 1000
    for text in (key, token, grant, PASSWORD, "wrong-password", blob.decode()):
        assert text not in stored
        assert text.encode().hex() not in stored
    for text in (key, token):
        secret = text.rsplit("_", 1)[1]
        assert secret not in stored
        assert text.split("_")[1] in stored  # the prefix finds it


def test_a_key_is_long_and_tells_what_it_is(gate: Gate) -> None:
    for text, mark in (
        (keys.issue_key(agent=gate.agent, by=gate.owen), "cs"),
        (tokens.create_token(person=gate.rita, name="a"), "csp"),
    ):
        first, prefix, secret = text.split("_")
        assert first == mark
        assert len(prefix) == 8
        assert len(secret) * 5 >= 128  # bits
        assert set(secret) <= set(ids.ALPHABET)


def test_no_two_are_alike() -> None:
    made = [bearer_tokens.create_token("cs") for _ in range(1000)]
    assert len({one.text.rsplit("_", 1)[1] for one in made}) == 1000
    assert len({one.prefix for one in made}) == 1000


def _ended(gate: Gate) -> str:
    text = keys.issue_key(agent=gate.agent, by=gate.owen)
    keys.revoke_key(key=AgentKey.objects.latest("pk"), by=gate.owen)
    return text


def _expired(gate: Gate) -> str:
    past = clock.now() - timedelta(seconds=1)
    return keys.issue_key(agent=gate.agent, by=gate.owen, expires_at=past)


def _of_another(gate: Gate) -> str:
    first, second = (keys.issue_key(agent=gate.agent, by=gate.owen) for _ in range(2))
    return "_".join([*first.split("_")[:2], second.split("_")[2]])


def _upper(gate: Gate) -> str:
    return keys.issue_key(agent=gate.agent, by=gate.owen).upper()


def _longer(gate: Gate) -> str:
    return keys.issue_key(agent=gate.agent, by=gate.owen) + "0"


def _stored(gate: Gate) -> str:
    """What somebody who read the database would try."""
    text = keys.issue_key(agent=gate.agent, by=gate.owen)
    row = AgentKey.objects.latest("pk")
    return "_".join([*text.split("_")[:2], row.digest])


@pytest.mark.parametrize(
    "make", [_ended, _expired, _of_another, _upper, _longer, _stored]
)
def test_a_key_that_is_not_alive_says_nothing(
    gate: Gate, make: Callable[[Gate], str]
) -> None:
    text = make(gate)
    response: Any = Client().get(
        "/api/v1/whoami", headers={"Authorization": f"Bearer {text}"}
    )
    assert response.status_code == 401
    assert response.json()["detail"].startswith("This key is missing, wrong, expired")


@pytest.mark.parametrize("text", ["", "cs_", "cs__", "_", "cs_x", "Bearer", "\u00fc"])
def test_what_is_no_key_is_refused(gate: Gate, text: str) -> None:
    assert call(text) == 401
    # What is marked as an agent's is refused as such, whatever it is.
    assert call(text, "/requests") == (403 if text.startswith("cs_") else 401)


@pytest.mark.parametrize("scheme", ["Basic", "bearer:", "Token", "Digest"])
def test_no_other_scheme_is_taken(gate: Gate, scheme: str) -> None:
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    headers = {"Authorization": f"{scheme} {key}"}
    for path in ("/whoami", "/requests"):
        assert Client().get(f"/api/v1{path}", headers=headers).status_code == 401


def test_a_key_in_the_address_or_a_cookie_is_none(gate: Gate) -> None:
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    client = Client()
    client.cookies["__Host-session"] = key
    for path in (f"/whoami?key={key}", f"/whoami?Authorization=Bearer {key}"):
        assert client.get(f"/api/v1{path}").status_code == 401


@pytest.mark.parametrize("scope", list(keys.AgentScope))
def test_a_scope_covers_its_calls_and_no_more(
    gate: Gate, scope: keys.AgentScope
) -> None:
    text = keys.issue_key(agent=gate.agent, by=gate.owen, scopes=(scope,))
    headers = {"Authorization": f"Bearer {text}", "Idempotency-Key": "k"}
    body = {"thread": "t", "tool": "look", "args": {"q": "a"}}
    sent = Client().post(
        "/api/v1/proposals", body, content_type="application/json", headers=headers
    )
    reads, writes = call(text), sent.status_code
    expected = (200, 403) if scope is keys.AgentScope.READ else (403, 201)
    assert (reads, writes) == expected


def test_a_token_is_ended_by_its_person_alone(gate: Gate) -> None:
    text = tokens.create_token(person=gate.rita, name="a")
    row = PersonalToken.objects.get()
    client = Client()
    client.post("/sign-in/", {"username": "tom", "password": PASSWORD})
    assert client.post(f"/me/tokens/{row.pk}/revoke/").status_code == 404
    assert call(text, "/requests") == 200
    tokens.revoke_token(person=gate.rita, token_id=row.pk)
    assert call(text, "/requests") == 401


def test_secrets_are_compared_in_constant_time() -> None:
    tree = ast.parse(inspect.getsource(bearer_tokens.is_matching_secret))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    assert "compare_digest" in inspect.getsource(bearer_tokens.is_matching_secret)
    for authenticate in (keys.authenticate_key, tokens.authenticate_token):
        source = inspect.getsource(authenticate)
        assert "bearer_tokens.is_matching_secret(" in source
        assert "digest=" not in source  # never looked up by what must be secret
