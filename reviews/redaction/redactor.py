"""Redacts untrusted text under the key of its thread, including the values that the
tool's policy keeps out of texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from journal import encryption
from policies import tools
from policies.documents import ToolDefinition
from reviews import redaction
from reviews.models import Proposal, Revision

_FILE_MEMBERS = frozenset({"file", "table"})


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
        return [self._item(item) for item in values]

    def _item(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """The facts about a file are the gate's, all but its name."""
        said = {name: item[name] for name in item if name not in _FILE_MEMBERS}
        redacted = redaction.redact_item(said, self.key, self.hidden)
        if file := item.get("file"):
            redacted["file"] = {**file, "name": self.text(file["name"])}
        if table := item.get("table"):
            redacted["table"] = self._table(table)
        return redacted

    def _table(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Cells below a telling heading, or beside a telling name, are redacted like
        members of that name."""
        columns: list[str] = table["columns"]
        by_name = columns == ["Name", "Value"]

        def cell(names: list[str], text: str) -> str:
            value: Any = text
            for name in reversed(names):
                value = {name: value}
            redacted: Any = self.foreign(value)
            while isinstance(redacted, Mapping):
                (redacted,) = redacted.values()
            return str(redacted)

        def row(cells: list[str]) -> list[str]:
            if by_name:
                return [self.text(cells[0]), cell(cells[0].split("."), cells[1])]
            return [
                cell([name], text) for name, text in zip(columns, cells, strict=True)
            ]

        return {
            "columns": [self.text(name) for name in columns],
            "rows": [row(cells) for cells in table["rows"]],
        }

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
    key, *_ = list_thread_keys(agent, thread)
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


def list_thread_keys(agent: str, thread: str) -> list[bytes]:
    """The keys that tags of one thread may have, the present one first."""
    return [
        redaction.derive_thread_key(key, agent, thread)
        for key in encryption.list_tag_keys()
    ]


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
