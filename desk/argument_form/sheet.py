"""What all fields of one form share: the tool, what was sent, the errors, and how a
place is named for inputs, errors and people. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from journal.errors import FieldError
from policies import money, schemas
from policies.documents import ArgumentPath, ToolDefinition
from reviews.presenters.arguments import humanise_name

PREFIX = "arg"
STATE, ROWS, ZONE = ":is", ":rows", ":zone"  # suffixes of companion inputs

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_ESCAPES = str.maketrans({"~": "~0", ".": "~1", ":": "~2"})
_UNSAFE_IN_ID = re.compile(r"[^A-Za-z0-9_]")


def build_child_name(name: str, key: str) -> str:
    """The input name of a member or row: `arg.address.city`."""
    return f"{name}.{key.translate(_ESCAPES)}"


def build_child_path(place: str, key: str | int) -> str:
    """The path of a member or entry in errors, as `policies.schemas` writes it:
    `args.to[1]`."""
    if isinstance(key, int):
        return f"{place}[{key}]"
    if _PLAIN_KEY.fullmatch(key):
        return f"{place}.{key}"
    return f"{place}[{json.dumps(key[:64])}]"


def is_within(path: str, place: str) -> bool:
    """Whether an error's path is this place or lies inside it."""
    return path == place or (path.startswith(place) and path[len(place)] in ".[")


def build_element_id(name: str) -> str:
    """An element id that needs no quoting in a selector; different names give different
    ids."""
    return "id_" + _UNSAFE_IN_ID.sub(_escape_character, name)


def _escape_character(match: re.Match[str]) -> str:
    return "-" if match[0] == "." else f"-{ord(match[0]):x}-"


HIDDEN = "Hidden. Stays as proposed."
CURRENCY = "Locked by the tool."


@dataclass(frozen=True)
class FormContext:
    """The shared data of one form. `sent` is None for a form that nobody has
    submitted."""

    definition: ToolDefinition
    labels: Mapping[str, str]
    sent: Mapping[str, str] | None = None
    errors: tuple[FieldError, ...] = ()
    args: Mapping[str, Any] = field(default_factory=dict)  # as proposed
    locked: frozenset[str] = frozenset()  # names whose inputs are too many to be sent

    @property
    def root(self) -> Mapping[str, Any]:
        return self.definition.arguments

    def text(self, name: str) -> str | None:
        """The text sent under a name; None when nothing was sent, so that the proposed
        value stays."""
        if self.sent is None or name not in self.sent:
            return None
        return self.sent[name].replace("\r\n", "\n")

    def label(self, path: tuple[str, ...], title: Any = None) -> str:
        """The place's label: the policy's, the reader's, the schema's, or a name."""
        dotted = ".".join(path)
        known = self.definition.labels.get(dotted) or self.labels.get(dotted)
        return known or (str(title) if title else humanise_name(path[-1]))

    def is_hidden(self, path: tuple[str, ...]) -> bool:
        """Whether it or a place around it is sensitive: only a reveal shows it."""
        return any(path[: len(name)] == name for name in self._concealed)

    def is_money(self, path: tuple[str, ...]) -> bool:
        dotted = ".".join(path)
        return any(dotted == pair.amount for pair in self.definition.money)

    def is_currency(self, path: tuple[str, ...]) -> bool:
        dotted = ".".join(path)
        return any(dotted == pair.currency for pair in self.definition.money)

    def minor_unit(self, path: tuple[str, ...]) -> str | None:
        """The currency of an amount that the tool receives in minor units, as far as
        nobody can change it in this form; an empty text where somebody can, or where it
        is not known. None for any other place."""
        dotted = ".".join(path)
        for pair in self.definition.money:
            if pair.unit and pair.amount == dotted:
                code = self.args.get(pair.currency)
                known = isinstance(code, str) and money.CURRENCY.fullmatch(code)
                return str(code) if known else ""
        for amount in self.definition.amounts:
            if (
                amount.unit
                and amount.path
                and ArgumentPath(amount.path).dotted == dotted
            ):
                is_argument = schemas.find_declared(self.root, amount.currency or "")
                return "" if is_argument else amount.code
        return None

    def error(self, name: str) -> str:
        """The errors at the input of this name, as one text."""
        messages = self.wrong.get(name, [])
        if len(messages) < 2:
            return "".join(messages)
        return " ".join(
            message if message.endswith(".") else f"{message}." for message in messages
        )

    @cached_property
    def counted(self) -> dict[str, int]:
        """The number of inputs of the whole form, under "inputs"; `build_form` fills
        it."""
        return {}

    @cached_property
    def wrong(self) -> dict[str, list[str]]:
        """Messages by input name, filled by `place_errors`."""
        return {}

    def place_errors(self, known: Mapping[str, str]) -> list[FieldError]:
        """Assign each error to the deepest input around it, and return those without
        one.

        `known` has the input names by place.
        """
        above = []
        for error in self.errors:
            around = [p for p in known if is_within(error["path"], p)]
            if around:
                name = known[max(around, key=len)]
                self.wrong.setdefault(name, []).append(error["message"])
            else:
                above.append(error)
        return above

    @cached_property
    def _concealed(self) -> Iterable[tuple[str, ...]]:
        names = (*self.definition.sensitive, *self.definition.redact)
        return [tuple(name.split(".")) for name in names]
