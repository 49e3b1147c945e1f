"""The secrets of a private installation: created once, kept in files that only the
owner can read. If they are lost, the data they encrypt is lost too."""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from journal import bearer_tokens

from .layout import InstallationError


def generate_key() -> str:
    """32 random bytes in base64."""
    return base64.b64encode(secrets.token_bytes(32)).decode()


MAKERS: dict[str, Callable[[], str]] = {
    "secret_key": lambda: secrets.token_urlsafe(50),
    "data_key": generate_key,
    "tag_key": generate_key,
    "grant_key": generate_key,
    "webhook_secret": lambda: f"whsec_{generate_key()}",
    "database_password": lambda: secrets.token_urlsafe(24),
    "agent_key": lambda: bearer_tokens.create_token("cs").text,
}


def ensure_keys(folder: Path) -> None:
    """Create the missing keys, and say on standard error where they are.

    *Raises* InstallationError.
    """
    if create_keys(folder):
        sys.stderr.write(
            f"counterseal: wrote new keys to {folder}; keep them: what they"
            " encrypt is lost without them\n"
        )


def create_keys(folder: Path) -> list[str]:
    """Create the missing keys, each with mode 0600 from the first byte. Return their
    names.

    *Raises* InstallationError.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        missing = [name for name in MAKERS if not (folder / name).exists()]
        for name in missing:
            _write_key(folder / name, MAKERS[name]())
        return missing
    except OSError as error:
        raise InstallationError(
            f"STATE: keys cannot be written to {folder} ({error.strerror}): free "
            "some space or change its owner, or set STATE to a folder that you own"
        ) from error


def make_passing_keys() -> dict[str, str]:
    """Keys for a process that asks no database: they are never written."""
    return {name: make() for name, make in MAKERS.items()}


def read_key(folder: Path, name: str) -> str:
    """The text of a key's file. *Raises* InstallationError."""
    try:
        return (folder / name).read_text().strip()
    except OSError as error:
        raise InstallationError(
            f"STATE: {folder / name} cannot be read: change its owner"
        ) from error


def replace_key(path: Path, text: str) -> None:
    """Replace a key's file atomically."""
    with _write_draft(path, text) as draft:
        draft.rename(path)


def _write_key(path: Path, text: str) -> None:
    # Link the finished file into place: a crash half-way, or a second process that
    # creates the same key, must not leave a truncated key or two different ones.
    with _write_draft(path, text) as draft, contextlib.suppress(FileExistsError):
        os.link(draft, path)


@contextlib.contextmanager
def _write_draft(path: Path, text: str) -> Iterator[Path]:
    """Write a temporary file beside `path`; remove it on exit."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)
