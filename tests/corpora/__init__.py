"""Texts and arguments that want to be mistaken for something else, as data.

`naughty`: strings that break what is careless with them. `trojan_source`: five families
of source that reads otherwise than it runs, in six languages. `lies`: what an agent may
say or propose to be waved through, each with the sign that must give it away.
`addressed`: phrases that speak to the reviewer, and what customers write every day.
`shell_abuses`: commands that do more than they seem to.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Families = dict[str, list[str]]


def naughty() -> Families:
    """Strings by family; those that could run call `xqz()`."""
    found: Families = _read("naughty")
    return found


def trojan_source() -> dict[str, dict[str, str]]:
    """Source by family and language."""
    found: dict[str, dict[str, str]] = _read("trojan_source")
    return found


def lies() -> list[dict[str, Any]]:
    """`family` and `sign`; then `slot` and `text`, or `tool` and `args`; with the sign
    `fact` also the text that must stand among the facts."""
    found: list[dict[str, Any]] = _read("lies")
    return found


def addressed() -> Families:
    """`addressed`, and `ordinary`: what must not be marked."""
    found: Families = _read("addressed")
    return found


def shell_abuses() -> Families:
    """Commands by family."""
    found: Families = _read("shell_abuses")
    return found


def flat(families: Families) -> list[str]:
    """All of them, in the files' order."""
    return [text for texts in families.values() for text in texts]


def _read(name: str) -> Any:
    return json.loads((HERE / f"{name}.json").read_text())
