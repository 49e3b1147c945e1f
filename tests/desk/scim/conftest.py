"""An identity provider that calls the gate with a token of two administrators."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from policies.group_access import parse_groups
from policies.models import ProvisioningToken
from reviews.administration import provisioning_tokens
from tests.conftest import Gate

GROUPS = """{"gate-supervisors": {"role": "supervisor", "queues": ["money"]},
 "gate-money": {"role": "reviewer", "queues": ["money"]},
 "gate-mail": {"role": "reviewer", "queues": ["mail"]}}"""
Call = Callable[..., Any]


@pytest.fixture
def groups(settings: Any) -> None:
    """What the groups of the provider mean here."""
    changed = {"oidc_groups": parse_groups(GROUPS)}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)


@pytest.fixture
def token(gate: Gate) -> str:
    text = provisioning_tokens.make_token(reason="Our directory.", by=gate.adam)
    row = ProvisioningToken.objects.get()
    provisioning_tokens.confirm_token(token_id=row.pk, by=gate.alma)
    return text


@pytest.fixture
def call(token: str, groups: None) -> Call:
    """`call("PATCH", "/Users/u-1", body)`: the provider's call, and its answer."""
    client = Client()

    def make(method: str, path: str, body: Any = None, bearer: str = token) -> Any:
        return client.generic(
            method,
            f"/scim/v2{path.partition('?')[0]}",
            "" if body is None else json.dumps(body),
            content_type="application/scim+json",
            QUERY_STRING=quote(path.partition("?")[2], safe="=&"),
            HTTP_AUTHORIZATION=f"Bearer {bearer}",
        )

    return make


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    """The body of a PATCH."""
    schema = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
    return {"schemas": [schema], "Operations": list(operations)}
