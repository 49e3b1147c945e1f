"""Where the gate is, and who speaks to it. The first of these that says it wins:

1. the environment: `COUNTERSEAL_URL`, `COUNTERSEAL_KEY` (an agent's key) and
   `COUNTERSEAL_TOKEN` (a person's token);
2. the settings file that `counterseal init` writes: `counterseal/settings.json` in
   `XDG_CONFIG_HOME`, by default `~/.config`;
3. the file of the gate that runs on this machine, which `counterseal up` writes and
   removes: `counterseal/gate.json` in `XDG_STATE_HOME`, by default `~/.local/state`.

A key or token in a file belongs to the gate in it, and is never sent to another one.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from .errors import CountersealError

URL_VARIABLE = "COUNTERSEAL_URL"
KEY_VARIABLE = "COUNTERSEAL_KEY"
TOKEN_VARIABLE = "COUNTERSEAL_TOKEN"  # noqa: S105 - the name of a variable
KEY_PREFIX, TOKEN_PREFIX = "cs_", "csp_"
SECRET = re.compile(r"\b(?:cs[a-z]?|whsec)_[0-9A-Za-z+/=_-]{6,}")
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


class InvalidSettings(CountersealError):
    """The settings do not say where the gate is or who calls, or nobody may use
    them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The address of the gate, the agent's key, and the person's token; each may be
    empty."""

    url: str = ""
    key: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


def find_settings_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the settings file is, or would be."""
    return _find_folder(environment, "XDG_CONFIG_HOME", ".config") / "settings.json"


def find_running_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Where `counterseal up` says which gate runs on this machine."""
    return find_state_file("gate.json", environment)


def find_state_file(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Where the command line remembers something, in `XDG_STATE_HOME`, by default
    `~/.local/state`."""
    return _find_folder(environment, "XDG_STATE_HOME", ".local/state") / name


def _find_folder(environment: Mapping[str, str], variable: str, default: str) -> Path:
    given = environment.get(variable, "")
    # The specification of XDG: a relative path counts as none.
    base = Path(given) if os.path.isabs(given) else Path.home() / default
    return base / "counterseal"


def load_settings(
    environment: Mapping[str, str] = os.environ, *, url: str = ""
) -> Settings:
    """The settings that hold now, for the gate at `url` if one is given.

    Raises InvalidSettings for a file that others can read or that is no settings file,
    and for a value that cannot be one.
    """
    files = (find_settings_file(environment), find_running_file(environment))
    known = [load_file(file) for file in files]
    url = url or environment.get(URL_VARIABLE, "").strip()
    url = check_url(url) if url else next((s.url for s in known if s.url), "")
    stored = next((s for s in known if s.url == url), Settings())
    return Settings(
        url,
        check_key(environment.get(KEY_VARIABLE, "")) or stored.key,
        check_token(environment.get(TOKEN_VARIABLE, "")) or stored.token,
    )


def load_file(path: Path) -> Settings:
    """The settings in the file; empty ones if there is no file."""
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
                raise InvalidSettings(
                    f"Other users of this machine can read {path}.",
                    next_step=f"Run `chmod 600 {path}`, and replace the key in it.",
                )
            stored = json.load(file)
    except FileNotFoundError:
        return Settings()
    except ValueError:
        stored = None
    names = ("url", "key", "token")
    if not isinstance(stored, dict) or not all(
        isinstance(stored.get(name, ""), str) for name in names
    ):
        raise InvalidSettings(
            f"{path} is not a settings file.",
            next_step="Remove it and run `counterseal init` again.",
        )
    url, key, token = (stored.get(name, "") for name in names)
    return Settings(
        check_url(url) if url else "",
        check_key(key),
        check_token(token),
    )


def save_settings(
    settings: Settings, environment: Mapping[str, str] = os.environ
) -> Path:
    """Write the settings file; see `save_file`."""
    return save_file(find_settings_file(environment), settings)


def save_file(path: Path, settings: Settings) -> Path:
    """Write settings for this user alone, as a whole or not at all."""
    named = {"url": settings.url, "key": settings.key, "token": settings.token}
    given = {name: value for name, value in named.items() if value}
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_file(path, json.dumps(given, indent=2) + "\n", mode=0o600)
    return path


def write_file(path: Path, text: str, *, mode: int, replace: bool = True) -> None:
    """Write a file so that it is there as a whole or not at all, whatever interrupts.

    Raises FileExistsError if there is one and `replace` is false.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        if replace:
            os.replace(name, path)
        else:
            os.link(name, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def check_url(text: str) -> str:
    """The address of a gate in the form that settings have. Raises InvalidSettings."""
    url = text.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname)
        valid = valid and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid or parts.query or parts.fragment or not url.isprintable():
        raise InvalidSettings(
            "The address of the gate is not valid.",
            next_step="Give one like https://gate.example.com.",
        )
    if parts.username is not None:
        raise InvalidSettings(
            "The address of the gate contains a user name or password.",
            next_step="Leave them out: the key says who calls.",
        )
    return url


def is_encrypted(url: str) -> bool:
    """Whether what is sent to the gate cannot be read on the way."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in LOOPBACK_HOSTS


def check_key(text: str) -> str:
    """An agent's key. Raises InvalidSettings."""
    if text.startswith(TOKEN_PREFIX):
        raise InvalidSettings(
            "This is a person's token, not an agent's key.",
            next_step="Give the key that `counterseal agents register` printed.",
        )
    return _check_secret(text, "key")


def check_token(text: str) -> str:
    """A person's token. Raises InvalidSettings."""
    if text.startswith(KEY_PREFIX):
        raise InvalidSettings(
            "This is an agent's key, not a person's token.",
            next_step="A person makes a token at /me/tokens/ of the gate.",
        )
    return _check_secret(text, "token")


def _check_secret(text: str, name: str) -> str:
    """A secret as it can stand in a header. It is never part of the message."""
    text = text.strip()
    if not re.fullmatch(r"[\x21-\x7e]*", text):
        raise InvalidSettings(
            f"The {name} contains characters that none has.",
            next_step="Give exactly what the gate printed.",
        )
    return text


def mask_secrets(text: str) -> str:
    """A text without what looks like a key or token of a gate."""
    return SECRET.sub(lambda found: found[0].partition("_")[0] + "_***", text)


def find_credentials(
    url: str | None, key: str | None, environment: Mapping[str, str] = os.environ
) -> tuple[str, str]:
    """The gate's address and the agent's key: the given ones, or those of the settings.

    Raises InvalidSettings when neither says one of them.
    """
    if url is not None and key is not None:
        return url, key
    settings = load_settings(environment, url=url or "")
    key = settings.key if key is None else key
    if not settings.url or not key:
        missing = "where the gate is" if not settings.url else "the agent's key"
        raise InvalidSettings(
            f"The settings do not say {missing}.",
            next_step="Start a gate on this machine with `counterseal up`, connect to"
            f" one with `counterseal init`, or set {URL_VARIABLE} and {KEY_VARIABLE}.",
        )
    return settings.url, key
