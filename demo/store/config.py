"""What the store's process is told by its environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


class NotConfigured(Exception):
    """The environment lacks something; the text says what to set."""


@dataclass(frozen=True, slots=True)
class Config:
    """`secret` signs what the gate sends; `state` holds the database."""

    port: int
    state: Path
    secret: str

    @property
    def database(self) -> Path:
        return self.state / "store.sqlite3"


def load() -> Config:
    """Read the environment. Raises NotConfigured."""
    secret = os.environ.get("HOLDPOINT_WEBHOOK_SECRET", "")
    if not secret.startswith("whsec_"):
        raise NotConfigured(
            "HOLDPOINT_WEBHOOK_SECRET is not set: give the store the gate's webhook"
            " secret, which begins with whsec_."
        )
    return Config(
        port=int(os.environ.get("STORE_PORT", "8010")),
        state=Path(os.environ.get("STATE", "var")).resolve(),
        secret=secret,
    )
