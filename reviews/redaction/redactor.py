"""Foreign words as they may be kept: redacted under the key of their thread, without
the values that their tool's policy keeps out of texts (gate.md 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from policies.documents import ToolDefinition
from reviews import redaction
from reviews.models import Revision


@dataclass(frozen=True, slots=True)
class Redactor:
    """What takes out of one thread's words whatever may not be kept."""

    key: bytes
    fields: frozenset[str] = frozenset()  # arguments whose values are taken out
    hidden: tuple[redaction.Concealed, ...] = ()

    def text(self, text: str) -> str:
        """One text, with chips."""
        return redaction.checked(text, key=self.key, hidden=self.hidden).text

    def members(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """An object whose names are ours: every text in it redacted."""
        return {
            name: redaction.redact_value(item, self.key, (), self.hidden, ours=True)
            for name, item in value.items()
        }

    def items(self, values: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Evidence: what cannot be scanned is withheld, item by item."""
        return [redaction.redact_item(one, self.key, self.hidden) for one in values]

    def foreign(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """An object whose names an agent or a service chose: what is called like an
        argument that is kept out of texts goes as a whole."""
        return dict(
            redaction.redact_value(dict(value), self.key, self.fields, self.hidden)
        )

    def chip(self, kind: str, value: str) -> str:
        """What stands for a whole value."""
        return redaction.chip(kind, value, self.key)


def of(
    agent: str,
    thread: str,
    definition: ToolDefinition | None = None,
    args: Mapping[str, Any] | None = None,
    *,
    proposal: str = "",
) -> Redactor:
    """The redactor of one thread: equal values get equal tags within it alone.

    With a tool and its arguments, their values that the tool's policy names are taken
    out too, and with a proposal those of its earlier revisions.
    """
    key = redaction.thread_key(settings.HOLDPOINT.tag_key, agent, thread)
    fields = kept_out(definition)
    if not fields:
        return Redactor(key)
    known = [args or {}]
    if proposal:
        known += [row.args for row in Revision.objects.filter(proposal=proposal)]
    hidden = redaction.concealed({"args": known}, [f"args.{name}" for name in fields])
    return Redactor(key, fields, hidden)


def kept_out(definition: ToolDefinition | None) -> frozenset[str]:
    """Arguments whose values stand in no text: those to be redacted, and those that
    only a reveal shows, which a text would give away."""
    if definition is None:
        return frozenset()
    return frozenset([*definition.redact, *definition.sensitive])
