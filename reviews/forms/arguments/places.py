"""How a place of the arguments is called: by its input, by errors, by people. Pure."""

from __future__ import annotations

import json
import re

PREFIX = "arg"
STATE, ROWS, ZONE = ":is", ":rows", ":zone"  # what belongs to an input beside its text

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_ESCAPES = str.maketrans({"~": "~0", ".": "~1", ":": "~2"})
_UNFIT = re.compile(r"[^A-Za-z0-9_]")


def child(name: str, key: str) -> str:
    """The input's name of a member or row: `arg.address.city`."""
    return f"{name}.{key.translate(_ESCAPES)}"


def step(place: str, key: str | int) -> str:
    """The path that errors name: `args.to[1]`, as `policies.schemas` writes it."""
    if isinstance(key, int):
        return f"{place}[{key}]"
    if _PLAIN_KEY.fullmatch(key):
        return f"{place}.{key}"
    return f"{place}[{json.dumps(key[:64])}]"


def within(path: str, place: str) -> bool:
    """Whether an error's path is this place or lies inside it."""
    return path == place or (path.startswith(place) and path[len(place)] in ".[")


def element_id(name: str) -> str:
    """An id that needs no quoting in a selector; different names differ."""
    return "id_" + _UNFIT.sub(_coded, name)


def humanise(name: str) -> str:
    """`order_id` as `Order id`."""
    words = re.sub(r"[_.\s-]+", " ", name).strip() or name
    return words[:1].upper() + words[1:]


def _coded(match: re.Match[str]) -> str:
    return "-" if match[0] == "." else f"-{ord(match[0]):x}-"
