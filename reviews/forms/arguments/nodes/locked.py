"""What no input could give back exactly: it is shown, and stays as it was proposed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from journal.errors import FieldError
from reviews.desk.argument_form import values
from reviews.desk.argument_form.fields import At, Node
from reviews.desk.argument_form.schema import MISSING, NUMBERS, same
from reviews.desk.argument_form.sheet import CURRENCY, HIDDEN

DEEPEST = 6
MOST_ROWS = 50  # of one list; a longer one is edited by whoever proposes it
INVISIBLE = "Has characters that a form would lose or hide. It stays as proposed."
LOCKED = "Cannot be edited here. It stays as proposed."
FIXED = "Fixed by the tool."
TOO_MANY = "Too long to be edited here. It stays as proposed."


@dataclass(frozen=True)
class Locked(Node):
    """Shown, and given back as it is."""

    why: str = LOCKED
    kind: ClassVar[str] = "locked"

    @property
    def value(self) -> str:
        if self.why == HIDDEN:
            return ""
        return "not given" if self.at.was is MISSING else values.shown(self.at.was)

    def read(self, wrong: list[FieldError]) -> Any:
        fixed = self.at.spec.schema.get("const", MISSING)
        if self.at.new and self.at.required and self.at.was is MISSING:
            return fixed
        return self.at.was


def why_locked(where: At) -> str:
    """Empty for what can be edited."""
    spec, sheet = where.spec, where.sheet
    if sheet.is_hidden(where.path):
        return HIDDEN
    if sheet.is_currency(where.path):
        return CURRENCY
    if "const" in spec.schema:
        return FIXED
    if len(where.path) > DEEPEST or not _has_inputs(where):
        return LOCKED
    if values.loses(where.was):
        return INVISIBLE
    too_many = isinstance(where.was, list) and len(where.was) > MOST_ROWS
    return TOO_MANY if too_many else ""


def _has_inputs(where: At) -> bool:
    """Whether there is a kind of input for what is declared and for what is there."""
    spec, value = where.spec, where.was
    if spec.options:
        known = any(same(item, value) for item in spec.options)
        return known or value is MISSING or value is None
    if value is MISSING or value is None:
        fits = bool(spec.kind)
    else:
        fits = _holds(spec.kind, value)
    if spec.kind == "object":
        return fits and bool(spec.properties)
    if spec.kind == "array":
        return fits and "prefixItems" not in spec.schema and "items" in spec.schema
    return fits and spec.kind in {"string", "boolean", *NUMBERS}


def _holds(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    types: dict[str, Any] = {
        "string": str,
        "integer": int | float,
        "number": int | float,
        "array": list,
        "object": Mapping,
    }
    return kind in types and isinstance(value, types[kind])
