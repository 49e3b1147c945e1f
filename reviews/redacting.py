"""Foreign words as they may be kept: redacted under the key of their thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from . import redaction


@dataclass(frozen=True, slots=True)
class Redactor:
    """What takes out of one thread's words whatever may not be kept."""

    key: bytes

    def text(self, text: str) -> str:
        """One text, with chips."""
        return redaction.redact(text, key=self.key).text

    def members(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """A JSON object with every text in it redacted, its keys as well."""
        return dict(redaction.redact_value(dict(value), key=self.key))

    def chip(self, kind: str, value: str) -> str:
        """What stands for a whole value."""
        return redaction.chip(kind, value, self.key)


def of(agent: str, thread: str) -> Redactor:
    """The redactor of one thread: equal values get equal tags within it alone."""
    return Redactor(redaction.thread_key(settings.HOLDPOINT.tag_key, agent, thread))
