"""People who are signed in, without and with htmx."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.agents.conftest import receiver as receiver
from tests.conftest import Gate
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
