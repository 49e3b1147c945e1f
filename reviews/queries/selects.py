"""A filter as a select: its options, and which of them is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    value: str
    label: str
    selected: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """One filter as a select."""

    name: str
    label: str
    options: list[Option]


def choice(name: str, label: str, said: Mapping[str, str], chosen: str) -> Choice:
    """A select of these values and their labels."""
    options = [Option(value, text, value == chosen) for value, text in said.items()]
    return Choice(name, label, options)
