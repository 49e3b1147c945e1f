"""People who are signed in, without and with htmx."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from oidc_provider_mock import run_server_in_thread

from desk.components import identity_provider
from tests.agents.conftest import receiver as receiver
from tests.conftest import Gate
from tests.desk.openid import Directory
from tests.reviews.conftest import own_note as own_note

HTMX = {"HTTP_HX_REQUEST": "true"}
SignIn = Callable[..., Client]


@pytest.fixture
def as_(gate: Gate) -> SignIn:
    """`as_("rita")`: a browser in which Rita is signed in; keywords are headers."""

    def sign_in(name: str, **headers: Any) -> Client:
        client = Client(**headers)
        client.force_login(
            gate.people[name], "django.contrib.auth.backends.ModelBackend"
        )
        return client

    return sign_in


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with run_server_in_thread() as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture
def directory(server: str, settings: Any) -> Iterator[Directory]:
    changed = {
        "oidc_issuer": server,
        "oidc_client_id": "counterseal",
        "oidc_client_secret": "secret",
        "oidc_name": "Example ID",
    }
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
    yield Directory(server)
    identity_provider._load_provider.cache_clear()
