"""Which version of each request this person was shown last, so that `--yes` decides on
what they have read and never on a newer version.

The file has digests of address, token and request, never any of them in clear.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..people import PeopleOperations
from ..settings import find_state_file, write_file
from ..terminal.decisions import ShownRequest

MOST_REMEMBERED = 200


def remember_request(people: PeopleOperations, shown: ShownRequest) -> None:
    """Keep what the person was shown of a request."""
    path = find_state_file("shown.json")
    kept = _load_file(path)
    name = _name_request(people, shown.id)
    kept.pop(name, None)
    kept[name] = asdict(shown)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    newest = dict(list(kept.items())[-MOST_REMEMBERED:])
    write_file(path, json.dumps(newest, indent=2) + "\n", mode=0o600)


def find_shown_request(people: PeopleOperations, request: str) -> ShownRequest | None:
    """What this person was shown of the request; None if nothing."""
    found = _load_file(find_state_file("shown.json")).get(
        _name_request(people, request)
    )
    try:
        return ShownRequest(**found) if isinstance(found, dict) else None
    except TypeError:  # of another release
        return None


def _name_request(people: PeopleOperations, request: str) -> str:
    connection = people.connection
    text = json.dumps([connection.url, connection.key, request])
    return hashlib.sha256(text.encode()).hexdigest()


def _load_file(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
