"""The parts of a presentation that every kind of tool shares. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from policies import money
from policies.documents import ToolDefinition

from . import inert
from .compare import Comparison, Rows
from .leaves import HIDDEN, Conceal, Leaf, cell, humanise, is_blob, label, leaves
from .shapes import (
    Cell,
    Pair,
    Part,
    Presentation,
    Reversal,
    Tag,
    Text,
    Uninspectable,
    Value,
)

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_STEP = re.compile(r"\[[^\]]*\]")
_WORDS = {
    "reversible": Reversal("Reversible", "back"),
    "partly": Reversal("Partly reversible", "partly"),
    "irreversible": Reversal("Irreversible", "never"),
}
_WITH = "this one included"
UNKNOWN_REVERSAL = Reversal("Unknown: treat as irreversible", "never")


@dataclass(frozen=True)
class Subject:
    """One effect to present: what will run, and what is known about it.

    `facts` are the stored facts of the rules (money in minor units); `conceal` makes
    the text that stands for a sensitive value, from its JSON.
    """

    definition: ToolDefinition
    args: Mapping[str, Any]
    before: Mapping[str, Any] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    conceal: Conceal = lambda _: HIDDEN

    @cached_property
    def leaves(self) -> list[Leaf]:
        return leaves(self.args)

    @cached_property
    def rows(self) -> Rows:
        return Comparison(self.cell, self.label).rows(self.args, self.before)

    def cell(self, leaf: Leaf) -> Cell:
        """The leaf as text and type, concealed where the schema says so."""
        return cell(leaf.value, self.conceal if self._is_sensitive(leaf.path) else None)

    def label(self, path: str) -> str:
        """The policy's label before the reader's."""
        return label(path, {**self.labels, **self.definition.labels})

    def amount(self) -> money.Money | None:
        """The first declared amount, when it is one."""
        for part in self.definition.money:
            if self._is_sensitive(part.amount):
                continue
            try:
                return money.parse(
                    self.args.get(part.amount), self.args.get(part.currency)
                )
            except money.InvalidMoney:
                continue
        return None

    def _is_sensitive(self, path: str) -> bool:
        plain = _STEP.sub("", path)
        hidden = self.definition.sensitive
        return any(plain == name or plain.startswith(f"{name}.") for name in hidden)


def present(subject: Subject, **parts: Any) -> Presentation:
    """The presentation that fits any tool; `parts` replace single fields of it."""
    rows = subject.rows
    fields: dict[str, Any] = {
        "title": subject.definition.title,
        "sentence": sentence(subject),
        "tags": tags(subject),
        "size": sums(subject),
        "changes": tuple(rows.changes),
        "unchanged": tuple(rows.unchanged),
        "now": tuple(rows.now),
        "other": tuple(rows.other),
        "uninspectable": tuple(uninspectable(subject)),
        "reversal": reversal(subject.definition),
        "before_known": subject.before is not None,
    }
    return Presentation(**{**fields, **parts})


def sentence(
    subject: Subject, said: Mapping[str, Part] | None = None
) -> tuple[Part, ...]:
    """The tool's effect sentence with its arguments as values.

    `said` overrides what a placeholder says. Without a sentence it is the title.
    """
    pattern = subject.definition.effect
    if not pattern:
        return (Text(subject.definition.title),)
    overrides = said or {}
    parts: list[Part] = []
    for index, piece in enumerate(_PLACEHOLDER.split(pattern)):
        if index % 2:
            parts.append(overrides.get(piece) or argument(subject, piece))
        elif piece:
            parts.append(Text(piece))
    return tuple(parts)


def argument(subject: Subject, name: str) -> Part:
    """One argument as a value: a few leaves joined, many counted."""
    found = [leaf for leaf in subject.leaves if leaf.name == name]
    if not found:
        return Value("(not given)", untrusted=False)
    texts = [subject.cell(leaf).text for leaf in found]
    if isinstance(subject.args[name], list) and len(texts) > 3:
        return Value(f"{len(texts)} entries", untrusted=False)
    return Value(", ".join(text for text in texts if text) or "(empty)")


def tags(subject: Subject, *more: Tag) -> tuple[Tag, ...]:
    """What the reviewer must not miss, the loud ones first."""
    found = [*more, *_warnings(subject), *_about(subject)]
    return tuple(sorted(dict.fromkeys(found), key=lambda tag: not tag.loud))


def sums(subject: Subject) -> tuple[Pair, ...]:
    """The rolling sums that the policy keeps, this proposal included."""
    amount = subject.amount()
    found = subject.facts.get("sum")
    if amount is None or not isinstance(found, Mapping):
        return ()
    return tuple(
        Pair(humanise(name), figure(money.Money(total, amount.currency)), _WITH)
        for name, total in found.items()
        if isinstance(total, int)
    )


def figure(amount: money.Money) -> str:
    """`12,500.00 USD`: grouped by thousands, point before the decimals."""
    whole, point, decimals = money.format_amount(amount).partition(".")
    return f"{int(whole):,}{point}{decimals} {amount.currency}"


def uninspectable(subject: Subject) -> Iterator[Uninspectable]:
    """Every leaf that the schema does not declare in full, or that hides its text."""
    for leaf in subject.leaves:
        reason = _reason(subject.definition, leaf)
        if reason:
            yield Uninspectable(subject.label(leaf.path), leaf.path, reason)


def reversal(definition: ToolDefinition) -> Reversal:
    """R3 from the declaration; nothing declared is told as irreversible."""
    declared = definition.reversal
    if declared is None:
        return UNKNOWN_REVERSAL
    base = _WORDS[declared.kind]
    return Reversal(base.word, base.icon, declared.undo, declared.stays, declared.check)


def _reason(definition: ToolDefinition, leaf: Leaf) -> str:
    if leaf.name not in definition.arguments.get("properties", {}):
        return "The tool does not declare it."
    if leaf.name not in definition.inspectable:
        return "The tool does not declare all of it."
    return "It looks encoded. It was not decoded." if is_blob(leaf.value) else ""


def _warnings(subject: Subject) -> Iterator[Tag]:
    count = sum(1 for _ in uninspectable(subject))
    if count:
        word = "argument" if count == 1 else "arguments"
        yield Tag(f"{count} {word} could not be inspected", loud=True)
    if not subject.definition.effect:
        yield Tag("No effect sentence", loud=True)
    shown = [leaf.value for leaf in subject.leaves if isinstance(leaf.value, str)]
    for warning in inert.warnings([*shown, *(leaf.path for leaf in subject.leaves)]):
        yield Tag(warning, loud=True)


def _about(subject: Subject) -> Iterator[Tag]:
    chosen = subject.definition.class_of(dict(subject.args))
    profile = chosen.profile if chosen else subject.definition.profile
    if subject.facts.get("uncertain"):
        yield Tag("The agent says it is not sure", loud=True)
    if chosen and chosen.title:
        yield Tag(chosen.title)
    for holds, said in (
        (profile.self_modifying, "Changes the gate itself"),
        (profile.regulated, "The law or a contract wants a person"),
        (profile.external, "Leaves the company"),
        (profile.novel, "A new kind of effect"),
    ):
        if holds:
            yield Tag(said)
