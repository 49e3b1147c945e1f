"""The edit form of a tool's arguments: native typed inputs made from its JSON Schema.

Pure. A value that the form could not return exactly as it was is locked, so that nobody
approves a change they did not make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from journal.errors import FieldError
from policies.documents import ToolDefinition

from .fields import FieldPlace, FormField
from .nested import GroupField, ListField, find_excess
from .schema import build_spec
from .sheet import PREFIX, ROWS, FormContext, is_within

__all__ = ["ArgumentForm", "apply_button", "build_form", "parse_edits"]

ROOT = "args"


@dataclass(frozen=True)
class ArgumentForm:
    """All inputs for one tool's arguments."""

    root: GroupField
    above: tuple[FieldError, ...] = ()  # errors that belong to no input

    @property
    def fields(self) -> tuple[FormField, ...]:
        return self.root.children

    def walk(self) -> Iterator[FormField]:
        for field in self.fields:
            yield from field.walk()

    @cached_property
    def changes(self) -> int:
        """How many inputs and lists differ from the proposal."""
        return sum(node.changed for node in self.walk())

    def read(self) -> tuple[dict[str, Any], list[FieldError]]:
        """The edited arguments, and an error for each unreadable input."""
        wrong: list[FieldError] = []
        return self.root.read(wrong), wrong

    def label_of(self, path: str) -> str:
        """The label of the deepest field around an error's path; empty for none."""
        around = [n for n in self.walk() if is_within(path, n.at.place)]
        return max(around, key=lambda n: len(n.at.place)).label if around else ""


def build_form(
    definition: ToolDefinition,
    args: Mapping[str, Any],
    *,
    labels: Mapping[str, str] | None = None,
    sent: Mapping[str, str] | None = None,
    errors: Iterable[FieldError] = (),
) -> ArgumentForm:
    """Build the form of these proposed arguments, filled with them or with what was
    `sent`.

    `labels` are the reader's labels by dotted path; `errors` are shown at their inputs,
    or in `above` where they belong to none.
    """
    proposed = _build_root(FormContext(definition, labels or {}, args=args), args)
    excess = find_excess(proposed)
    sheet = FormContext(definition, labels or {}, sent, tuple(errors), args, excess)
    made = ArgumentForm(_build_root(sheet, args))
    root = made.root
    sheet.counted["inputs"] = sum(node.inputs for node in made.walk())
    known = {node.at.place: node.name for node in made.walk()}
    return ArgumentForm(root, tuple(sheet.place_errors(known)))


def _build_root(sheet: FormContext, args: Mapping[str, Any]) -> GroupField:
    spec = build_spec(sheet.root, sheet.root, args)
    return GroupField(FieldPlace(sheet, PREFIX, ROOT, (), "", spec, dict(args)))


def parse_edits(
    definition: ToolDefinition, args: Mapping[str, Any], sent: Mapping[str, str]
) -> tuple[dict[str, Any], list[FieldError]]:
    """The edited arguments, and an error for each unreadable input."""
    return build_form(definition, args, sent=sent).read()


def apply_button(
    made: ArgumentForm, sent: Mapping[str, str], asked: str
) -> dict[str, str]:
    """The sent values with the effect of one button.

    `asked` is `add:arg.to`, `remove:arg.to.1`, `up:` or `down:` and a row, or `revert:`
    and an input or list. Anything else changes nothing.
    """
    verb, _, name = asked.partition(":")
    result = dict(sent)
    if verb == "revert":
        return {
            key: text
            for key, text in result.items()
            if not _belongs_to_input(key, name)
        }
    above, _, key = name.rpartition(".")
    lists = {node.name: node for node in made.walk() if isinstance(node, ListField)}
    rows = lists.get(name if verb == "add" else above)
    if rows is None:
        return result
    keys = _reorder_rows(verb, list(rows.keys), rows.fresh_key(), key)
    result[rows.name + ROWS] = " ".join(keys)
    return result


def _reorder_rows(verb: str, keys: list[str], fresh: str, key: str) -> list[str]:
    if verb == "add":
        return [*keys, fresh]
    if key not in keys:
        return keys
    index = keys.index(key)
    if verb == "remove":
        del keys[index]
    elif verb == "up" and index:
        keys[index - 1 : index + 1] = [key, keys[index - 1]]
    elif verb == "down":
        keys[index : index + 2] = [*keys[index + 1 : index + 2], key]
    return keys


def _belongs_to_input(key: str, name: str) -> bool:
    return key == name or key.startswith((f"{name}.", f"{name}:"))
