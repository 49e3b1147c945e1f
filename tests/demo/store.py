"""Speaks to the store as the gate does: signed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
from standardwebhooks.webhooks import Webhook

SECRET = "whsec_bm9ydGhnYXRlLW5vcnRoZ2F0ZS1ub3J0aGdhdGU="


@dataclass(frozen=True)
class Store:
    url: str
    database: Path

    def effect(self, tool: str, args: Mapping[str, Any], key: str = "") -> Any:
        """The answer of the store to a signed effect."""
        key = key or uuid.uuid4().hex
        body = {
            "tool": tool,
            "tool_version": 1,
            "args": args,
            "execution": "x-1",
            "idempotency_key": key,
            "fence": 1,
        }
        response = self.post(f"/effects/{tool}", body)
        response.raise_for_status()
        return response.json()

    def post(
        self, path: str, body: Mapping[str, Any], **changes: Any
    ) -> httpx2.Response:
        """A signed post; `changes` as of `signed`."""
        text = json.dumps(body)
        return self.raw(path, text, signed(text, **changes))

    def raw(self, path: str, text: str, headers: Mapping[str, str]) -> httpx2.Response:
        return httpx2.post(
            self.url + path, content=text, headers=dict(headers), trust_env=False
        )

    def page(self, path: str) -> httpx2.Response:
        return httpx2.get(self.url + path, trust_env=False)


def signed(
    text: str, *, secret: str = SECRET, age: timedelta = timedelta(0)
) -> dict[str, str]:
    """The headers of Standard Webhooks for this text."""
    at = datetime.now(UTC) - age
    number = f"m_{uuid.uuid4().hex}"
    return {
        "content-type": "application/json",
        "webhook-id": number,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(number, at, text),
    }
