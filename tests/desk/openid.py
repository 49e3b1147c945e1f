"""An OpenID provider that runs here: a real server, real tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
from django.test import Client

# What the provider of the tests is built on warns of its own methods.
OLD = "ignore:.*is deprecated and will be removed:DeprecationWarning"
BEGIN = "/sign-in/provider/"


@dataclass
class Directory:
    """The provider, as its administrator and as people's browsers meet it."""

    address: str

    def put(self, subject: str, **claims: Any) -> None:
        httpx2.put(
            f"{self.address}/users/{subject}", json=claims, trust_env=False
        ).raise_for_status()

    def consent(self, address: str, subject: str) -> str:
        """Sign in at the provider; returns where it leads the browser back to."""
        answer = httpx2.post(address, data={"sub": subject}, trust_env=False)
        parts = urlsplit(answer.headers["Location"])
        return f"{parts.path}?{parts.query}"


def sign_in(
    directory: Directory, subject: str, client: Client | None = None, query: str = ""
) -> tuple[Client, Any]:
    client = client or Client()
    onward = client.get(f"{BEGIN}{query}")
    assert onward.status_code == 302
    back = directory.consent(onward["Location"], subject)
    return client, client.get(back)
