"""The declaration of a tool that agents call and the policy does not know: an entry for
`tools:`, made from what its calls showed, inside the text of a policy. Pure.

Nothing of it counts before two administrators have read it. The comments say what is a
guess, and what is the agent's own word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import indent
from typing import Any, NamedTuple

from .documents import Document, InvalidPolicy, UndeclaredTool, parse_document
from .documents.source import split_source, to_yaml
from .tool_descriptions import order_arguments

_STEP = "  "
_HEAD = (
    "Made from calls of a tool that this policy did not declare. A comment says what",
    "is a guess or the agent's own word: check those lines, then delete the comments.",
)
_AGENTS_SCHEMA = (
    "The agent's own word: check that these are all its arguments, and which it needs."
)
_SEEN_SCHEMA = (
    "Made from the calls that were seen: check the types, and which it needs."
)
_NOTES: Mapping[str, str] = {
    "description": "The agent's own word: rewrite it, or delete the line.",
    "money": "A guess from the names: the amount that ceilings and sums count.",
    "queue": "Name the queue of the people who know what this tool does.",
    "risk": "The cautious guess: low, medium, high or critical.",
    "profile": "The cautious guess: it cannot be undone and reaches other systems.",
    "floor": "A person decides on every call. Rules may ask for more, never for less.",
    "presenter": "A guess from the names: how the page shows a call.",
    "executor": "The agent performs it with a grant, as it did before.",
}


class Declaration(NamedTuple):
    """A policy's text with the new entry, and the entry's first line, from 1. `entry`
    is its text."""

    text: str
    entry: str
    line: int


def declare_tool(
    data: Mapping[str, Any],
    forms: Sequence[UndeclaredTool],
    *,
    further: Callable[[Document], Any] = lambda _: (),
) -> Declaration:
    """Add the tool to a stored policy. `forms` are the definitions of its calls, the
    newest first, at least one. The text passes every check of a policy if the policy
    itself does: what does not fit is left out, the guesses first."""
    made = [_insert(data, forms[0].name, *each) for each in _list_entries(forms)]
    for declaration in made:
        try:
            parse_document(declaration.text, further=further)
        except InvalidPolicy:
            continue
        return declaration
    return made[-1]


def _list_entries(
    forms: Sequence[UndeclaredTool],
) -> Iterator[tuple[dict[str, Any], str]]:
    """The entries that can be made, the one that says most first, each with what to
    say of its schema."""
    seen = _merge_schemas([form.arguments for form in forms])
    for schema, note in ((forms[0].seen_schema, _AGENTS_SCHEMA), (seen, _SEEN_SCHEMA)):
        if schema:
            yield _build_entry(forms[0], schema, guesses=True), note
            yield _build_entry(forms[0], schema, guesses=False), note


def _build_entry(
    form: UndeclaredTool, schema: Mapping[str, Any], *, guesses: bool
) -> dict[str, Any]:
    money = [pair.model_dump(mode="json", exclude_defaults=True) for pair in form.money]
    summary = " ".join(form.description.partition("\n\n")[0].split())
    named = {*form.shown.values(), *(pair.amount for pair in form.money)}
    fits = guesses and named <= set(schema.get("properties", {}))
    entry = {
        "title": form.title,
        "description": summary.replace("${", "$ {") if guesses else "",
        "schema": {**schema, "properties": order_arguments(schema)},
        "money": money if fits else [],
        "queue": form.queue,
        "risk": str(form.risk),
        "profile": form.profile.model_dump(mode="json", exclude_defaults=True),
        "floor": str(form.base),
        "presenter": form.presenter if fits and form.presenter != "record" else "",
        "shown": dict(form.shown) if fits else {},
        "execution_class": str(form.execution_class),
        "executor": {"kind": "agent"},
    }
    return {key: value for key, value in entry.items() if value}


def _merge_schemas(schemas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A schema that takes what each of these takes, as far as their arguments go."""
    parts: dict[str, list[Any]] = {}
    for schema in schemas:
        for name, part in schema.get("properties", {}).items():
            kinds = parts.setdefault(name, [])
            if part not in kinds:
                kinds.append(part)
    return {
        "type": "object",
        "properties": {
            name: kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
            for name, kinds in parts.items()
            if "${" not in name
        },
        "required": [
            name
            for name in parts
            if "${" not in name
            and all(name in schema.get("properties", {}) for schema in schemas)
        ],
    }


def _insert(
    data: Mapping[str, Any], name: str, entry: Mapping[str, Any], schema_note: str
) -> Declaration:
    before, after = split_source(data, "tools")
    text = indent(_write_entry(name, entry, schema_note), _STEP)
    return Declaration(before + text + after, text, before.count("\n") + 1)


def _write_entry(name: str, entry: Mapping[str, Any], schema_note: str) -> str:
    lines = [f"# {line}\n" for line in _HEAD]
    lines.append(to_yaml({name: 0}).removesuffix(" 0\n") + "\n")  # quotes `on`
    for key, value in entry.items():
        if note := schema_note if key == "schema" else _NOTES.get(key):
            lines.append(f"{_STEP}# {note}\n")
        lines.append(indent(to_yaml({key: value}), _STEP))
    return "".join(lines)
