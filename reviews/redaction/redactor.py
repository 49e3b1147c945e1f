"""Redacts untrusted text under the key of its thread, including the values that the
tool's policy keeps out of texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from policies import tools
from policies.documents import ToolDefinition
from reviews import redaction
from reviews.models import Proposal, Revision


@dataclass(frozen=True, slots=True)
class Redactor:
    """Redacts the texts of one thread before they are stored."""

    key: bytes
    fields: frozenset[str] = frozenset()  # arguments whose values are redacted
    hidden: tuple[redaction.ConcealedValue, ...] = ()

    def text(self, text: str) -> str:
        """One text, with chips."""
        return redaction.redact_or_withhold(text, key=self.key, hidden=self.hidden).text

    def members(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """An object with trusted member names: every text in it redacted."""
        return {
            name: redaction.redact_value(item, self.key, (), self.hidden, ours=True)
            for name, item in value.items()
        }

    def items(self, values: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Items of evidence; an item that cannot be scanned is withheld."""
        return [redaction.redact_item(item, self.key, self.hidden) for item in values]

    def foreign(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """An object with member names chosen by an agent or a service. A member named
        like an argument in `fields` is replaced whole."""
        return dict(
            redaction.redact_value(dict(value), self.key, self.fields, self.hidden)
        )

    def chip(self, kind: str, value: str) -> str:
        """The chip for a whole value."""
        return redaction.format_chip(kind, value, self.key)


def load_redactor(
    agent: str,
    thread: str,
    definition: ToolDefinition | None = None,
    args: Mapping[str, Any] | None = None,
    *,
    proposal: str = "",
) -> Redactor:
    """The redactor of one thread. Equal values get equal tags within this thread only.
    With a tool's definition and arguments, the redactor also removes the values of
    arguments that the tool's policy names; with a proposal, those values in its earlier
    revisions too."""
    key = redaction.derive_thread_key(settings.COUNTERSEAL.tag_key, agent, thread)
    fields = list_withheld_arguments(definition)
    if not fields:
        return Redactor(key)
    known = [args or {}]
    if proposal:
        known += [row.args for row in Revision.objects.filter(proposal=proposal)]
    hidden = redaction.collect_concealed(
        {"args": known}, [f"args.{name}" for name in fields]
    )
    return Redactor(key, fields, hidden)


def load_redactor_of(proposal: Proposal, revision: Revision) -> Redactor:
    """The redactor for texts about a stored revision of a proposal."""
    definition = tools.load_definition(revision.known_tool)
    agent, thread = proposal.agent, proposal.thread
    return load_redactor(agent, thread, definition, revision.args, proposal=proposal.pk)


def list_withheld_arguments(definition: ToolDefinition | None) -> frozenset[str]:
    """The arguments whose values may appear in no text: those the policy redacts, and
    those shown only by a reveal."""
    if definition is None:
        return frozenset()
    return frozenset([*definition.redact, *definition.sensitive])
