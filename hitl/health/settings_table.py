"""The settings in force in this process: name, value and where the value came from.
Secrets are only said to be set: the fields that the environment never prints."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from pydantic.fields import FieldInfo

from ..environment import Counterseal, find_state_folder

ENVIRONMENT, FILE, DEFAULT = "environment", "file", "default"
# Who may enter an address may have put a password into it.
_CREDENTIALS = re.compile(r"//[^/\s]*@")


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One setting. `is_secret` says that `value` is only "set" or "not set"."""

    name: str
    value: str
    source: str
    is_secret: bool


def list_settings(environ: Mapping[str, str] = os.environ) -> list[SettingLine]:
    """Every setting, by name."""
    names = {name.upper() for name in environ}
    return sorted(_list_lines(names), key=lambda line: line.name)


def _list_lines(names: set[str]) -> Iterator[SettingLine]:
    counterseal = settings.COUNTERSEAL
    keys = find_state_folder({"STATE": str(counterseal.state)}) / "keys"
    files = {path.name.upper() for path in keys.iterdir()} if keys.is_dir() else set()
    for field, info in Counterseal.model_fields.items():
        name = _find_name(field, info)
        value = getattr(counterseal, field)
        source = DEFAULT
        if name in names:
            source = ENVIRONMENT
        elif name in files:
            source = FILE
        is_secret = not info.repr
        text = _describe_secret(value) if is_secret else format_value(value)
        yield SettingLine(name, text, source, is_secret)


def _find_name(field: str, info: FieldInfo) -> str:
    return str(info.validation_alias or field).upper()


def _describe_secret(value: Any) -> str:
    if isinstance(value, list | dict) and len(value) > 1:
        return f"{len(value)} set"
    return "set" if value else "not set"


def format_value(value: Any) -> str:
    """A value as a person writes it in the environment, without credentials."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | dict):  # of a dict, its names
        return ", ".join(format_value(part) for part in value) or "not set"
    text = _CREDENTIALS.sub("//…@", str(value))
    return text or "not set"
