"""The store's public inbox: what there is to work on."""

from __future__ import annotations

from typing import Any

import httpx2

from .case import Message


class Inbox:
    """Reads over HTTP. Every call raises httpx2.HTTPError when the store is away."""

    def __init__(self, http: httpx2.Client, url: str) -> None:
        self._http = http
        self._url = url.rstrip("/")

    def listed(self) -> list[str]:
        """The numbers of all messages, oldest first."""
        return [str(m["id"]) for m in self._get("/inbox.json")["messages"]]

    def read(self, number: str) -> Message:
        """One message."""
        data = self._get(f"/inbox/{number}.json")
        return Message(
            id=data["id"],
            received_at=data["received_at"],
            sender=data["from"],
            name=data["name"],
            subject=data["subject"],
            text=data["body"],
        )

    def _get(self, path: str) -> Any:
        response = self._http.get(self._url + path, timeout=10.0)
        return response.raise_for_status().json()
