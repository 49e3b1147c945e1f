"""Where Riley's gate and store are, and how fast it works."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class NotConfigured(Exception):
    """The environment lacks something; the text says what to set."""


@dataclass(frozen=True, slots=True)
class Config:
    """Addresses, key, pace in seconds between two new cases, and the notebook."""

    gate: str
    key: str
    store: str
    pace: float
    notebook: Path


def load(environ: Mapping[str, str] = os.environ) -> Config:
    """From the environment; what is not there, from `$STATE/demo.json`.

    Raises NotConfigured.
    """
    state = Path(environ.get("STATE", "var"))
    seeded = _seeded(state / "demo.json")

    def value(name: str, known_as: str) -> str:
        text = environ.get(name) or seeded.get(known_as)
        if not text:
            raise NotConfigured(
                f"{name} is not set, and {state / 'demo.json'} does not have it."
            )
        return str(text)

    return Config(
        gate=value("HOLDPOINT_URL", "base_url"),
        key=value("HOLDPOINT_KEY", "agent_key"),
        store=value("STORE_URL", "store_url"),
        pace=float(environ.get("RILEY_PACE", "30")),
        notebook=state / "riley.json",
    )


def _seeded(path: Path) -> Mapping[str, Any]:
    try:
        data: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return data
