"""The YAML text of a stored document, for people who write the next version. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from .loading import restore_document

WIDTH = 100


class _Dumper(yaml.SafeDumper):
    """A YAML dumper without anchors, which documents must not have."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def write_source(data: Mapping[str, Any]) -> str:
    """The text of stored data, without what equals a default of this release. Comments
    of the text that was saved are not stored.

    If leaving out the defaults would change the meaning, they are written out. Raises
    InvalidPolicy for data that no release stored.
    """
    document = restore_document(data)
    brief = document.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return _to_yaml(brief if restore_document(brief) == document else data)


def _to_yaml(data: Mapping[str, Any]) -> str:
    return yaml.dump(
        dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH
    )
