"""What one run of the hook leaves for the next: the claim of a call that may run now,
and the proposal of a call that people had not decided in time.

Each is a file for this user alone in the state folder (`settings.find_state_file`),
written as a whole or not at all. Names are digests; no token or argument is stored.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import CountersealError
from ..models import Claim
from ..settings import find_state_file, write_file

FOLDER = "claude_code"


@dataclass(frozen=True, slots=True)
class StoredClaim:
    """The claim under which a call runs, and the digest of the approved input."""

    execution: str
    fence: int
    action_hash: str
    input_digest: str

    def build_claim(self) -> Claim:
        """The claim, as far as a report needs it."""
        return Claim(
            execution=self.execution,
            fence=self.fence,
            action_hash=self.action_hash,
            args={},
            idempotency_key="",
        )


def build_digest(*parts: Any) -> str:
    """A name for these values, which does not show them."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def save_claim(name: str, claim: Claim, approved: dict[str, Any]) -> None:
    """Store the claim before the call may run."""
    kept = StoredClaim(
        claim.execution, claim.fence, claim.action_hash, build_digest(approved)
    )
    _write(_find_file("claim", name), asdict(kept))


def load_claim(name: str) -> StoredClaim | None:
    """The claim of the call, or None if it needed none. Raises CountersealError for a
    file that is none of ours."""
    found = _read(_find_file("claim", name))
    try:
        return StoredClaim(**found) if found is not None else None
    except TypeError as error:
        raise _refuse(_find_file("claim", name)) from error


def remove_claim(name: str) -> None:
    """Forget the claim once its outcome is reported."""
    _find_file("claim", name).unlink(missing_ok=True)


def save_waiting(name: str, proposal: str) -> None:
    """Remember the proposal that this call waits for."""
    _write(_find_file("waiting", name), {"proposal": proposal})


def load_waiting(name: str) -> str:
    """The proposal that an earlier, equal call waits for; empty if there is none."""
    found = _read(_find_file("waiting", name)) or {}
    return str(found.get("proposal", ""))


def remove_waiting(name: str) -> None:
    """Forget the proposal once it is decided."""
    _find_file("waiting", name).unlink(missing_ok=True)


def _find_file(kind: str, name: str) -> Path:
    return find_state_file(FOLDER) / f"{kind}-{name}.json"


def _write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_file(path, json.dumps(value) + "\n", mode=0o600)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise _refuse(path) from error
    if not isinstance(found, dict):
        raise _refuse(path)
    return found


def _refuse(path: Path) -> CountersealError:
    step = "Remove it; the outcome of its call is unknown to the gate."
    return CountersealError(f"This command did not write {path}.", next_step=step)
