"""The YAML text of a stored document, for people who write the next version. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import indent
from typing import Any

import yaml

from .loading import restore_document

WIDTH = 100


class _Dumper(yaml.SafeDumper):
    """A YAML dumper without anchors, which documents must not have."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def write_source(data: Mapping[str, Any], *, in_ascii: bool = False) -> str:
    """The text of stored data, without what equals a default of this release. Comments
    of the text that was saved are not stored. `in_ascii` writes other characters as
    escapes, which mean the same.

    If leaving out the defaults would change the meaning, they are written out. Raises
    InvalidPolicy for data that no release stored.
    """
    return to_yaml(_shorten(data), in_ascii=in_ascii)


def split_source(data: Mapping[str, Any], part: str) -> tuple[str, str]:
    """The same text in two pieces: up to the first entry of a part such as `tools`, and
    from there."""
    brief = _shorten(data)
    names = list(brief)
    at = names.index(part)
    before = to_yaml({name: brief[name] for name in names[:at]}) if at else ""
    entries = indent(to_yaml(brief[part]), "  ") if brief[part] else ""
    after = {name: brief[name] for name in names[at + 1 :]}
    return f"{before}{part}:\n", entries + (to_yaml(after) if after else "")


def _shorten(data: Mapping[str, Any]) -> Mapping[str, Any]:
    document = restore_document(data)
    brief = document.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return brief if restore_document(brief) == document else data


def to_yaml(data: Mapping[str, Any], *, in_ascii: bool = False) -> str:
    """Plain data as YAML. With `in_ascii` every other character is escaped."""
    return yaml.dump(
        dict(data),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=not in_ascii,
        width=WIDTH,
    )
